"""A user's script runs; its types, and mistakes that must be found, are checked by mypy with those of the package."""

from users import user_script


def test_the_users_script_runs():
    user_script.main()
