"""What commands say and to whom: --quiet, -h, folders of others."""

import json

import pytest

from moerank.studies.result import read_result

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.mark.parametrize("words", [["run"], ["study"], ["merge"], ["report"], ["data", "describe"], []])
def test_every_command_answers_to_h(command, words):
    assert command(*words, "-h").stdout == command(*words, "--help").stdout != ""


def test_help_breaks_its_paragraphs_where_the_terminal_ends(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = [line.strip() for line in command("run", "-h").stdout.splitlines()]
    begin = next(number for number, line in enumerate(lines) if line.startswith("The table shows"))
    paragraph = lines[begin : lines.index("", begin)]
    assert all(45 < len(line) <= 60 for line in paragraph[:-1])


def test_a_quiet_run_prints_the_verdict_alone(command, tmp_path):
    outcome = command("run", "TINY", "--quiet", "--out", "here")
    verdict = read_result(tmp_path / "here").verdict
    assert outcome.stdout == f"{verdict.sentence}.\n"
    assert outcome.stderr == ""
    assert command("run", "TINY", "-q", "--out", "here").stderr == ""
    ranker = command("run", "TINY", "-q", "--solver", "rankrls", "--out", "there")
    assert ranker.stdout.startswith("Wrote to there: ")
    assert command("run", "TINY", "-q", "--fold", "9").stderr.startswith("error: --fold 9")


def test_settings_of_a_study_are_those_of_its_problems(command, tmp_path):
    words = ("study", "TINY", "--solvers", "rankrls", "--folds", "1", "--out", "s", "--set", "metric.name=MAP")
    assert command(*words, "-q").exit_code == 0
    stored = json.loads((tmp_path / "s" / "study.json").read_text())
    assert stored["grids"][0]["problems"][0]["metric"]["name"] == "MAP"
    wrong = command("study", "TINY", "--solvers", "rankrls", "--set", "metric=MAP")
    assert wrong.stderr.startswith("error: --set metric=MAP: write --set STAGE.KEY=VALUE")


def test_files_of_others_are_neither_replaced_nor_claimed(command, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    outcome = command("run", "TINY", "--out", "here")
    assert outcome.exit_code == 0
    (last,) = [line for line in outcome.stdout.splitlines() if line.startswith("Wrote to here: ")]
    written = last.removeprefix("Wrote to here: ").split(", ")
    assert sorted([*written, "notes.txt"]) == sorted(path.name for path in folder.iterdir())
    for name in ("front.csv", "features.png"):
        other = tmp_path / f"other-{name}"
        other.mkdir()
        (other / name).write_text("mine")
        outcome = command("run", "TINY", "--out", other)
        assert outcome.exit_code == 2
        assert f"holds {name}, but not from a run; choose another folder with --out" in outcome.stderr
        assert [path.name for path in other.iterdir()] == [name]
        assert (other / name).read_text() == "mine"
