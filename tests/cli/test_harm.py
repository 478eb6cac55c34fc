"""Full disks at the command line: what was computed stays, and what is said can be read."""

import errno
import os

BUDGET = [word for stage in ("instance_selection", "ensemble") for word in ("--set", f"{stage}.generations=1")]


def test_a_run_whose_result_finds_the_disk_full_is_resumed_without_training(command, tmp_path, monkeypatch):
    here = tmp_path / "here"
    sync = os.fsync

    def full(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(f"{here}/.result.json"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    def undrawn(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        outcome = command("run", "TINY", *BUDGET, "--out", here)
    reason = f"cannot write {here / 'result.json'}: No space left on device; make room, or choose another folder with"
    assert (outcome.exit_code, outcome.stderr.splitlines()[-1]) == (2, f"error: {reason} --out")
    assert not list(here.glob("*.json"))
    assert "generation" not in command("run", "TINY", *BUDGET, "--out", here, "--resume").stderr
    assert (here / "result.json").is_file()
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", undrawn)  # the result is on disk before anything is drawn
    assert command("run", "TINY", *BUDGET, "--out", "there").exit_code == 2
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["front.csv", "model.json", "result.json"]
