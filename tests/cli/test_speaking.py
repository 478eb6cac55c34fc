"""What commands say and to whom: --quiet, -h, folders of others."""

import re

import pytest
import typer

from moerank.cli.app import app
from moerank.runs.result import read_result

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.mark.parametrize("words", [["run"], ["study"], ["report"], ["data", "describe"], []])
def test_every_command_answers_to_h(command, words):
    assert command(*words, "-h").stdout == command(*words, "--help").stdout != ""


def parameters(group, words=()):
    """Yield the parameters of all commands of a group, with the words of the command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from parameters(command, (*words, name))
        else:
            yield from ((" ".join((*words, name)), parameter) for parameter in command.params)


def test_every_argument_and_option_says_what_it_is_for():
    entries = list(parameters(typer.main.get_command(app)))
    assert len(entries) > 100
    assert [(words, entry.name) for words, entry in entries if not getattr(entry, "help", "")] == []
    names = {(words, entry.name): entry.opts for words, entry in entries}
    assert names["data ingest", "id_"] == ["--id"]
    assert not any(entry.secondary_opts for _, entry in entries), "no --no-…"


def test_a_quiet_run_prints_the_verdict_alone(command, tmp_path):
    outcome = command("run", "TINY", "--quiet", "--out", "here")
    verdict = read_result(tmp_path / "here").verdict
    assert outcome.stdout == f"{verdict.sentence}.\n"
    assert outcome.stderr == ""
    assert command("run", "TINY", "-q", "--out", "here").stderr == ""
    ranker = command("run", "TINY", "-q", "--solver", "rankrls", "--out", "there")
    assert ranker.stdout.startswith("Files in there: ")
    assert command("run", "TINY", "-q", "--fold", "9").stderr.startswith("error: fold must be at most 5, not 9")


def test_files_of_others_are_neither_replaced_nor_claimed(command, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    outcome = command("run", "TINY", "--out", "here")
    assert outcome.exit_code == 0
    written = re.search(r"Files in here: (.*?\w+)\s+Next: ", outcome.stdout, re.DOTALL)[1].replace(",", "").split()
    assert sorted([*written, "notes.txt"]) == sorted(path.name for path in folder.iterdir())
    for name in ("front.csv", "features.png"):
        other = tmp_path / f"other-{name}"
        other.mkdir()
        (other / name).write_text("mine")
        outcome = command("run", "TINY", "--out", other)
        assert outcome.exit_code == 2
        assert f"holds {name}, which no run wrote; choose another folder with --out" in outcome.stderr
        assert [(path.name, path.read_text()) for path in other.iterdir()] == [(name, "mine")]
