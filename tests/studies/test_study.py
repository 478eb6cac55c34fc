"""Studies of files and of what a user has in Python: cells that run in any order, and never twice."""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from helpers.study_files import contents

import moerank
from moerank.rankers import RankSVM
from moerank.runs.result import write_result
from moerank.runs.run_fold import run_fold
from moerank.runs.solver import NamedSolver
from moerank.solvers import solvers
from moerank.studies.study import Cell, Study, read_results

SOLVERS = ["fsmrank", "ranksvm-primal", "mofsrank"]

RUNNER = f"""
import sys
from moerank.studies.study import Study
problem, out = sys.argv[1:]
Study([problem], {SOLVERS}, out, folds=[1, 2], seeds=2).run()
"""


def starts(folder):
    return Counter(line.split()[0] for line in (folder / "starts.log").read_text().splitlines())


def test_cells_are_solvers_times_folds_times_seeds_of_those_that_draw(tiny_problem_file):
    assert [cell.fold for cell in Study(tiny_problem_file, "rankrls", folds=2).cells()] == [2]
    cells = Study([tiny_problem_file], SOLVERS, "nowhere", folds=[1, 2], seeds=2).cells()
    labels = Counter(cell.solver.label for cell in cells)
    assert labels == {"fsmrank": 2, "ranksvm-primal": 2, "mofsrank": 4}
    assert len({cell.key for cell in cells}) == 8


def test_all_stands_for_the_whole_table(tiny_problem):
    asked = [NamedSolver(name="fsmrank", parameters={"lambda1": 0.1}), "all"]
    study = Study([tiny_problem], asked, "nowhere", folds=[1])
    assert [solver.label for solver in study.solvers] == ["fsmrank[lambda1=0.1]", *solvers()]


def test_all_solvers_of_a_study_draw_alike(tiny_problem):
    cell = Cell(tiny_problem, 1, NamedSolver(name="mofsrank"), 0)
    same = Study([tiny_problem], ["rankrls", "mofsrank"], "nowhere", folds=[1]).cells()[1]
    assert same == cell
    assert same.random_state == cell.random_state
    others = [
        Cell(tiny_problem, 2, cell.solver, 0),
        Cell(tiny_problem, 1, cell.solver, 1),
        Cell(tiny_problem.model_copy(update={"name": "other"}), 1, cell.solver, 0),
    ]
    assert len({other.random_state for other in [cell, *others]}) == 4
    for solver in ("mofsrank[ensemble=false]", "mofsrank-paper", "rank-fourier"):
        assert Cell(tiny_problem, 1, NamedSolver.parse(solver), 0).random_state == cell.random_state
    others.append(Cell(tiny_problem, 1, NamedSolver(name="mofsrank", parameters={"adaptive_mutation": False}), 0))
    assert len({other.key for other in [cell, *others]}) == 5


def test_results_are_those_of_single_runs(undisturbed, tiny_problem_file, tiny_problem):
    study = Study([tiny_problem_file], SOLVERS, undisturbed, folds=[1, 2], seeds=2)
    frame = study.frame()
    assert len(frame) == 8
    for cell, result in zip(study.cells(), study.results(), strict=True):
        assert (result.solver, result.fold, result.seed) == (cell.solver.label, cell.fold, cell.seed)
        alone = run_fold(tiny_problem, cell.fold, cell.solver, cell.random_state, baselines=False)
        assert result.front == alone.front
    row = frame.iloc[-1]
    assert row["solver"] == "mofsrank"
    assert row["test MAP"] == study.results()[-1].best.scores["test"]["MAP"]


def test_a_finished_cell_is_never_run_again(undisturbed, tiny_problem_file):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*.json")}
    seen = []
    study = Study([tiny_problem_file], SOLVERS, undisturbed, folds=[1, 2], seeds=2)
    study.run(done=lambda cell, succeeded: seen.append(succeeded))
    assert seen == [True] * 8
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*.json")} == before
    assert set(starts(undisturbed).values()) == {1}


def test_a_cell_with_a_result_is_finished_even_if_another_process_failed(tiny_problem_file, tmp_path):
    study = Study([tiny_problem_file], "rankrls", tmp_path, folds=[1]).run()
    (cell,) = study.cells()
    (tmp_path / "failures" / f"{cell.key}.json").write_text("{}")
    assert study.states() == {cell: "finished"}


def test_results_of_older_data_are_named(tmp_path):
    lines = (f"{row % 2} qid:{row // 4} 1:{row % 7} 2:{row % 9}\n" for row in range(80))
    (tmp_path / "set.txt").write_text("".join(lines))
    text = 'name = "set"\n[data]\nsource = "letor"\nfile = "set.txt"\nsplit = {folds = 4}\n'
    (tmp_path / "set.toml").write_text(text)
    study = Study([tmp_path / "set.toml"], "rankrls", tmp_path / "s", folds=[1, 2]).run()
    study.run()  # without a warning
    (tmp_path / "set.txt.weight").write_text("1\n" * 79 + "2\n")
    later = (tmp_path / "set.txt.weight").stat().st_mtime + 10
    os.utime(tmp_path / "set.txt.weight", (later, later))
    with pytest.warns(UserWarning, match="set.txt.weight is newer than 2 of 2 results of set, .* older data"):
        study.run()
    assert "set.txt.weight is newer than 2 of 2 results of set" in study.report().read_text()
    (tmp_path / "set.txt").unlink()
    study.run()  # whoever has the results need not have the data


@pytest.mark.parametrize("killed", [False, True])
def test_two_processes_share_the_work(tiny_problem_file, undisturbed, tmp_path, killed):
    other = subprocess.Popen([sys.executable, "-c", RUNNER, str(tiny_problem_file), str(tmp_path)])
    while other.poll() is None and not (tmp_path / "starts.log").exists():
        time.sleep(0.01)
    study = Study([tiny_problem_file], SOLVERS, tmp_path, folds=[1, 2], seeds=2)
    study.run(done=lambda *_: other.kill() if killed else None)
    assert other.wait() == 0 or killed
    assert contents(tmp_path) == contents(undisturbed)
    *others, most = sorted(starts(tmp_path).values())
    assert set(others) == {1} and most <= 1 + killed  # the cell that was under way is begun again


@pytest.mark.filterwarnings("ignore:2 of 4 cells failed")  # again
def test_a_cell_that_fails_stops_no_other(tiny_problem_file, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(RankSVM, "fit", fail)
    study = Study([tiny_problem_file], ["ranksvm-primal", "rankrls"], tmp_path, folds=[1, 2])
    seen = Counter()
    with pytest.warns(UserWarning, match="2 of 4 .*, first tiny, fold 1, ranksvm-primal: RuntimeError: out of luck"):
        study.run(done=lambda cell, succeeded: seen.update([(cell.solver.name, succeeded)]))
    assert seen == {("ranksvm-primal", False): 2, ("rankrls", True): 2}
    (failure, _) = study.failures().values()
    assert failure["error"] == "RuntimeError: out of luck"
    assert "in fail" in failure["traceback"]
    study.run()
    assert sum(starts(tmp_path).values()) == 4
    monkeypatch.undo()
    study.run(retry_failed=True)
    assert not study.failures()
    assert len(study.results()) == 4


def test_a_folder_keeps_what_was_asked_for(tiny_problem_file, tiny_problem, undisturbed, tmp_path):
    Study([tiny_problem_file], ["rankrls"], tmp_path, folds=[1]).run()
    Study([tiny_problem_file], ["ranksvm-primal"], tmp_path, folds=[2]).run()
    Study([tiny_problem_file], ["rankrls"], tmp_path, folds=[1]).run()
    study = Study.load(tmp_path)
    assert [cell.label for cell in study.cells()] == ["tiny, fold 1, rankrls", "tiny, fold 2, ranksvm-primal"]
    assert len(study.frame()) == 2
    other = tiny_problem.model_copy(update={"metric": tiny_problem.metric.model_copy(update={"name": "MAP"})})
    with pytest.raises(ValueError, match="holds another problem tiny, with other code or settings"):
        Study([other], ["rankrls"], tmp_path).run()


def test_cells_that_ran_in_another_folder_are_taken(tiny_problem_file, tmp_path):
    for name, solver in (("office", "rankrls"), ("home", "ranksvm-primal")):
        Study([tiny_problem_file], solver, tmp_path / name, folds=[1]).run()
    shutil.copytree(tmp_path / "office" / "cells", tmp_path / "home" / "cells", dirs_exist_ok=True)
    both = Study([tiny_problem_file], ["rankrls", "ranksvm-primal"], tmp_path / "home", folds=[1]).run()
    assert len(both.results()) == 2
    assert sum(starts(tmp_path / "home").values()) == 1


def test_results_are_read_as_one_table(undisturbed, tiny_problem, tmp_path):
    assert len(read_results(undisturbed)) == 8
    for fold in (1, 2, 10):
        (tmp_path / f"fold{fold}").mkdir()
        write_result(run_fold(tiny_problem, 1, "greedy-rankrls", fold, baselines=False), tmp_path / f"fold{fold}")
    assert read_results(tmp_path)["seed"].tolist() == [1, 2, 10]
    members = read_results(tmp_path / "fold2", members=True)
    assert members["member"].tolist() == list(range(1, len(members) + 1))
    assert members[members["chosen"]]["test MAP"].tolist() == [read_results(tmp_path)["test MAP"][1]]
    with pytest.raises(FileNotFoundError):
        read_results("nowhere")


def test_a_study_writes_its_report(undisturbed, tmp_path):
    path = Study.load(undisturbed).report(tmp_path / "page.html")
    assert path == tmp_path / "page.html" and "<h1>Feature selection on tiny</h1>" in path.read_text()


def test_states_are_told_by_the_files_alone(undisturbed, tiny_problem_file, tmp_path):
    study = Study([tiny_problem_file], SOLVERS, tmp_path, folds=[1, 2], seeds=2)
    assert set(study.states().values()) == {"open"}
    assert not list(tmp_path.iterdir())
    first, second, third, *others = study.cells()
    for part in ("cells", "failures"):
        (tmp_path / part).mkdir()
    for cell, part in ((first, "cells"), (second, "failures"), (third, "cells"), (third, "failures")):
        (tmp_path / part / f"{cell.key}.json").write_text("not read")
    (tmp_path / "cells" / f"{others[0].key}.json.tmp").write_text("half")
    states = study.states()
    assert [states[cell] for cell in (first, second, third)] == ["finished", "failed", "finished"]
    assert {states[cell] for cell in others} == {"open"}


def test_a_worker_has_one_thread_and_its_death_is_that_of_its_cell_alone(tiny_problem, tmp_path, monkeypatch):
    """One solver ends its process every time, and another one tells of the threads; the cell beside them is done."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if any('popen_loky' in word for word in sys.orig_argv):\n"
        "    import os\n"
        "    import moerank.runs.run_fold as module\n"
        "    run_fold = module.run_fold\n"
        "    def faulty(problem, fold, solver, seed, **settings):\n"
        "        if solver.name == 'fsmrank':\n"
        "            os._exit(9)\n"
        "        if solver.name == 'rankrls':\n"
        "            return run_fold(problem, fold, solver, seed, **settings)\n"
        "        import lightgbm, numba\n"
        "        from threadpoolctl import threadpool_info\n"
        "        found = [(library['user_api'], library['num_threads']) for library in threadpool_info()]\n"
        "        raise RuntimeError(sorted({*found, ('numba', numba.get_num_threads())}))\n"
        "    module.run_fold = faulty\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(moerank.__file__).parents[1])]))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    study = Study([tiny_problem], ["fsmrank", "single", "rankrls"], tmp_path / "s", folds=[1])
    with pytest.warns(UserWarning, match="2 of 3 cells failed"):
        study.run(workers=2)
    by_solver = {cell.solver.name: state for cell, state in study.states().items()}
    assert by_solver == {"fsmrank": "failed", "single": "failed", "rankrls": "finished"}
    errors = {cell.solver.name: failure["error"] for cell, failure in study.failures().items()}
    assert errors["fsmrank"].startswith("its process died: ")
    assert errors["single"] == "RuntimeError: [('blas', 1), ('numba', 1), ('openmp', 1)]"


def test_the_label_of_a_solver_reads_back():
    for text in (
        "fsmrank[lambda1=0.1]",
        "mofsrank[ensemble=false]",
        "mofsrank[adaptive_mutation=true]",
        "fsmrank",
        'mofsrank[ensemble={"generations":5,"population":8},final=train]',
        'mofsrank[objectives=["features","error"]]',
        'gas[importance="1"]',
    ):
        spec = NamedSolver.parse(text)
        assert spec.label == text
        assert NamedSolver.parse(spec.label) == spec
