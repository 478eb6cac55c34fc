"""Bad days and bad files at the command line: what was computed stays, and what is said can be read."""

import errno
import os

BUDGET = [word for stage in ("instance_selection", "ensemble") for word in ("--set", f"{stage}.generations=1")]


def test_figures_that_cannot_be_drawn_lose_no_result(command, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left\non device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    outcome = command("run", "TINY", *BUDGET, "--out", "here")
    assert outcome.exit_code == 1
    assert outcome.stderr.splitlines()[-1].startswith("error: the figures could not be drawn (")
    assert outcome.stderr.splitlines()[-1].endswith("); the result is in here")
    assert "No space left on device" in outcome.stderr
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["front.csv", "model.json", "result.json"]
    assert "Wrote to here: front.csv, model.json, result.json" in outcome.stdout
    assert "best single feature" in outcome.stdout


def test_a_run_whose_result_finds_the_disk_full_is_resumed_without_training(command, tmp_path, monkeypatch):
    here = tmp_path / "here"
    sync = os.fsync

    def full(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(f"{here}/.result.json"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        outcome = command("run", "TINY", *BUDGET, "--out", here)
    reason = f"cannot write {here / 'result.json'}: No space left on device; make room, or choose another folder with"
    assert (outcome.exit_code, outcome.stderr.splitlines()[-1]) == (2, f"error: {reason} --out")
    assert not list(here.glob("*.json"))
    assert "generation" not in command("run", "TINY", *BUDGET, "--out", here, "--resume").stderr
    assert (here / "result.json").is_file()
