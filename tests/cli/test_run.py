import json
import shlex
import statistics

import ir_measures
import numpy as np
import pytest
from matplotlib.figure import Figure

from moerank.cli.progress import StageProgress
from moerank.runs import sources
from moerank.runs.result import Result
from moerank.solvers import solvers

pytestmark = pytest.mark.usefixtures("undrawn")

PROGRESS = "moerank.cli.progress.StageProgress"
FILES = ["front.csv", "front.png", "model.json", "result.json"]


def what_stays(text):
    result = json.loads(text)
    assert result.pop("times")
    assert result.pop("versions")
    return result


def test_run_prints_the_decision_and_writes_the_files(command, tmp_path, tiny_result):
    outcome = command("run", "TINY", "--fold", 2, "--seed", 4)
    out = tmp_path / "results" / "tiny-fold2-seed4"
    assert outcome.exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert what_stays((out / "result.json").read_text()) == what_stays(tiny_result.to_json())
    lines = outcome.stdout.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 80
    assert [line.split(":")[0] for line in outcome.stderr.splitlines()] == [
        "baselines",
        *(stage.replace("_", " ") for stage in tiny_result.convergence),
    ]
    d = np.subtract(*(m.per_query["validation"]["NDCG@10"] for m in (tiny_result.best, tiny_result.baselines[0])))
    n = len(tiny_result.best.features)
    assert d.mean() >= -d.std(ddof=1) / len(d) ** 0.5
    assert lines[2].startswith(f"  TRY {n} OF 20 FEATURES. Only {np.count_nonzero(d == d)} validation queries can tell")
    assert lines[-2] == "  Next: label more queries, so that 30 or more validation queries decide, or"
    text = " ".join(outcome.stdout.split())
    assert tiny_result.verdict.outcome[1:] in text and text.count("estimated") + text.count("Estimated") == 1
    sizes, validation, test = ([*line.split()[1:]] for line in lines if line.startswith(("  feat", "  vali", "  test")))
    ranked = {f"{len(m.features)}{'*' * (m is tiny_result.best)}": m for m in tiny_result.front}
    ranked["20"] = tiny_result.baselines[0]
    assert sizes == [size for size in ranked if size in sizes] and sizes[-1] == "20"
    for number, size in enumerate(sizes):
        member = ranked[size]
        for part, values in (("validation", validation), ("test", test)):
            assert float(values[number]) == pytest.approx(member.scores[part]["NDCG@10"], abs=5.1e-4)
    weights = dict(zip(tiny_result.names(tiny_result.best.features), tiny_result.best.weights, strict=True))
    names = sorted(weights, key=lambda name: -abs(weights[name]))
    assert f"The {n}: {', '.join(names)}"[:100] in text
    course = tiny_result.convergence["feature_selection"]
    half = course.evaluations[-1] / 2
    first = max(h for seen, h in zip(course.evaluations, course.hypervolume, strict=True) if seen <= half)
    added = 1 - first / course.hypervolume[-1]
    assert f"In its second half the search improved the hypervolume of its front by {100 * added:.1f} %." in text
    assert f"Files in results/tiny-fold2-seed4: {', '.join(FILES)}" in text
    assert lines[-1] == "  moerank export results/tiny-fold2-seed4 --format solr"


def test_the_table_has_every_member(command, tiny_result):
    rows = [line.split() for line in command("run", "TINY", "--fold", 2, "--seed", 4, "--table").stdout.splitlines()]
    for number, member in enumerate(tiny_result.front):
        values = [f"{member.scores[part][m]:.4f}" for m in tiny_result.metrics for part in member.scores]
        name = [str(number + 1), *(["chosen"] if number == tiny_result.chosen else [])]
        assert [*name, str(len(member.features)), *values] in rows
    for baseline in tiny_result.baselines:
        values = [f"{baseline.scores[part][m]:.4f}" for m in tiny_result.metrics for part in baseline.scores]
        assert [*baseline.name.split(), str(len(baseline.features)), *values] in rows


def test_the_decision_is_printed_and_stored_before_its_figure_is_drawn(command, tmp_path, monkeypatch):
    def fail(figure, path):
        assert (path.parent / "result.json").exists()
        raise OSError(28, "no space left", "front.png")

    monkeypatch.setattr("moerank.figures.style.save_figure", fail)
    outcome = command("run", "TINY", "--out", "here")
    assert outcome.exit_code == 2
    assert " OF 20 FEATURES" in outcome.stdout


def test_other_figures_of_a_run_are_drawn_when_they_are_asked_for(command, tmp_path, monkeypatch):
    command("run", "TINY", "--out", "here")
    asked = []
    monkeypatch.setattr("moerank.figures.RunFigure.draw", lambda *figure: asked.append(figure) or Figure())
    for words, path in [(("features",), "here/features.png"), (("convergence", "--out", "c.pdf"), "c.pdf")]:
        assert command("plot", words[0], "here", *words[1:], "--width", 84).stderr == f"wrote {path}\n"
        assert (tmp_path / path).exists()
    assert [(result.problem, paper["width"]) for _, result, paper in asked] == [("tiny", 84)] * 2
    assert command("plot", "shapes", "here").stderr.startswith("error: figure must be one of 'convergence', 'features'")
    for option in ("--fold=1", "--exact", "--solvers=gas"):
        assert "here is one run; its figures take only --no-title" in command("plot", "front", "here", option).stderr


def test_a_finished_run_is_shown_from_its_result(command, tmp_path):
    words = ["run", "TINY", "--out", "here"]
    shown = command(*words).stdout
    again = command(*words)
    assert again.stdout == shown
    assert again.stderr == "here already holds the finished run (--again repeats it)\n"
    default = command("run", "TINY").stdout
    assert command("run", "TINY").stdout == default != command("run", "TINY", "--seed", 1).stdout
    result = json.loads((tmp_path / "here" / "result.json").read_text())
    (tmp_path / "here" / "result.json").write_text(json.dumps(result | {"seed": 7}))  # somebody changed it later
    assert "seed 7" in command(*words).stdout


def test_where_all_features_are_better_another_ranker_is_next(command, tmp_path):
    command("run", "TINY", "--out", "here")
    path = tmp_path / "here" / "result.json"
    stored = json.loads(path.read_text())
    stored["verdict"]["advice"] = "On validation every set lost"
    keep, trees = "KEEP ALL 20 FEATURES", "--set=serve.rankers=lambdamart"
    for decision, rival, head, words, option in (
        ("keep", "", keep, "label more queries, or try another ranker:", "--backend=additive"),
        ("keep", "LambdaMART is better", keep, "try another ranker:", trees),
        ("loss", "LambdaMART is better", "OF 20 FEATURES RANK WORSE", "try another ranker:", trees),
    ):
        stored["verdict"] |= {"decision": decision, "rival": rival}
        path.write_text(json.dumps(stored))
        lines = command("run", "TINY", "--out", "here").stdout.splitlines()
        assert lines[2].endswith(f"{head}. On validation every set lost.")
        assert lines[-2] == f"  Next: {words}"
        assert f".toml {option} --out here-" in lines[-1]
        assert command(*shlex.split(lines[-1])[1:]).exit_code == 0
    stored["verdict"]["decision"] = "limits"
    path.write_text(json.dumps(stored))
    text = command("run", "TINY", "--out", "here").stdout
    assert "  RAISE THE LIMITS. " in text
    assert text.splitlines()[-1].startswith("  Next: raise the limits")


def test_labels_without_a_signal_are_named(command, tmp_path):
    rng = np.random.default_rng(0)
    rows = ["query,label,a,b,c", *(f"{q},{rng.integers(3)},{rng.random():.3f},{rng.random():.3f},{rng.random():.3f}"
                                   for q in range(200) for _ in range(8))]  # fmt: skip
    (tmp_path / "x.csv").write_text("\n".join(rows))
    command("init", "x.csv")
    text = command("run", "x.toml", "--out", "r").stdout
    assert " OF 3 FEATURES, NOT DETECTABLY BETTER THAN A RANDOM ORDER" in text
    assert text.splitlines()[-1] == "  Next: check which columns hold the labels and the queries, or label more queries"
    chosen = Result.read_file(tmp_path / "r" / "result.json").best
    rest = command("run", "TINY").stdout
    assert ("RANDOM" not in rest and chosen.difference_interval is None) or chosen.difference_interval[0] < 0


def test_the_verdict_on_a_selection_is_printed_and_stored(command, tmp_path):
    outcome = command("run", "TINY", "--solver", "gas", "--set", "search.margin=0.02")
    verdict = json.loads((tmp_path / "results" / "tiny-gas-fold1-seed0" / "result.json").read_text())["verdict"]
    assert f"  {verdict['n_features']} OF 20 FEATURES.\n" in outcome.stdout  # validation compared nothing
    assert " against RankSVM(C=" in " ".join(outcome.stdout.split())
    assert verdict["margin"] == 0.02 and "test queries: too few to tell" in verdict["sentence"]
    assert " OF 20 FEATURES" not in command("run", "TINY", "--solver", "rankrls").stdout


def test_set_changes_the_problem(command):
    changes = ["feature_selection.generations=2", "data.n_noise=1", "metric.name=MAP", "search.final=train"]
    outcome = command("run", "TINY", "--json", *[word for change in changes for word in ("--set", change)])
    result = json.loads(outcome.stdout)
    assert result["metrics"] == ["MAP", "NDCG@10"]
    assert len(result["feature_names"]) == 16
    assert result["convergence"]["feature_selection"]["generation"] == [1, 2]
    assert result["chosen"] == len(result["front"]) - 1


def test_solver_and_backend_are_chosen_by_name(command, tmp_path):
    outcome = command("run", "TINY", "--solver", "rankrls")
    assert outcome.exit_code == 0
    assert "rankrls" in outcome.stdout
    files = sorted(path.name for path in (tmp_path / "results" / "tiny-rankrls-fold1-seed0").iterdir())
    assert files == FILES
    outcome = command("run", "TINY", "--backend", "ranksvm-primal", "--json")
    assert json.loads(outcome.stdout)["configuration"]["backend"]["name"] == "ranksvm-primal"


def test_a_run_reads_its_data_once(command, monkeypatch):
    read = []
    make = sources.MadeData._read
    monkeypatch.setattr(sources, "_last_fold", {})
    monkeypatch.setattr(sources.MadeData, "_read", lambda self, *of: read.append(of[0]) or make(self, *of))
    assert command("run", "TINY", "--fold", 2, "--solver", "rankrls").exit_code == 0
    assert read == [2]


def test_all_folds_are_averaged_and_finished_ones_not_run_again(command, tmp_path, monkeypatch):
    first = command("run", "TINY", "--fold", "all", "--json")
    rows = json.loads(first.stdout)
    out = tmp_path / "results" / "tiny-seed0"
    assert [row["fold"] for row in rows if row["solver"] == "mofsrank"] == [1, 2, 3, 4, 5]
    assert all(sorted(path.name for path in (out / f"fold{k}").iterdir()) == FILES for k in range(1, 6))
    (out / "fold3" / "result.json").unlink()
    runs = []
    enter = StageProgress.__enter__
    monkeypatch.setattr(StageProgress, "__enter__", lambda self: runs.append(1) or enter(self))
    again = command("run", "TINY", "--fold", "all", "--resume")
    assert len(runs) == 1
    assert again.stderr.count("already holds the finished run") == 4
    for name in ("mofsrank", "all features", "best single feature"):
        mean = statistics.fmean(row["test NDCG@10"] for row in rows if row["solver"] == name)
        assert any(
            line.startswith(name) and f" {mean:.3f}".replace("0.", ".") in line for line in again.stdout.splitlines()
        )
    sentence = "Test NDCG@10 against all features, query by query (15). Too few to tell: mofsrank, best single feature."
    assert sentence in " ".join(again.stdout.split())


@pytest.mark.parametrize("stage", ["instance_selection", "feature_selection", "ensemble", "writing"])
def test_an_interrupted_run_says_how_to_resume_and_ends_the_same(command, tmp_path, monkeypatch, tiny_result, stage):
    def interrupt(self, *state):
        if stage == "writing" or state[::2] == (stage, "generation 2"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        target = "moerank.runs.run_folder.write_result" if stage == "writing" else f"{PROGRESS}.__call__"
        patch.setattr(target, interrupt)
        stopped = command("run", "TINY", "--fold", 2, "--seed", 4, "--out", "here")
    assert (stopped.exit_code, stopped.stdout) == (130, "")
    words = stopped.stderr.splitlines()[-1].split()
    assert (words[:2], words[-1]) == (["moerank", "run"], "--resume")
    assert (tmp_path / "here" / f"search.memo.{'ensemble' if stage == 'writing' else stage}").is_file()
    shown = []
    with monkeypatch.context() as patch:
        patch.setattr(StageProgress, "__call__", lambda self, *state: shown.append(state[::2]))
        assert command(*words[1:]).exit_code == 0
    generations = [state for state in shown if state[1].startswith("generation") and stage in (state[0], "writing")]
    assert generations[:1] == ([] if stage == "writing" else [(stage, "generation 3")])
    assert what_stays((tmp_path / "here" / "result.json").read_text()) == what_stays(tiny_result.to_json())
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == FILES


def test_a_new_run_discards_an_old_memo_with_a_notice(command, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "search.memo.ensemble").write_bytes(b"left behind")
    outcome = command("run", "TINY", "--out", "here")
    assert "search.memo.ensemble of an interrupted run (to continue a run, use --resume)" in outcome.stderr
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == FILES


def test_what_happens_to_a_finished_run(command, tmp_path):
    command("run", "TINY", "--out", "here", "--resume")
    before = (tmp_path / "here" / "result.json").read_text()
    outcome = command("run", "TINY", "--out", "here", "--resume", "--json")
    assert "here already holds the finished run" in outcome.stderr
    assert before == Result.from_json(before).to_json()
    assert json.loads(outcome.stdout) == json.loads(before) and outcome.stdout.isascii()
    outcome = command("run", "TINY", "--out", "here")
    assert outcome.stderr == "here already holds the finished run (--again repeats it)\n"
    assert "ensemble: generation" in command("run", "TINY", "--out", "here", "--again").stderr
    outcome = command("run", "TINY", "--out", "here", "--set", "ensemble.population=9")
    assert outcome.exit_code == 2
    assert "of another configuration (ensemble.population is 8 there and 9 here)" in outcome.stderr


def test_solvers_lists_the_table(command):
    listed = json.loads(command("solvers", "--json").stdout)
    assert [entry["name"] for entry in listed] == list(solvers())
    assert listed[0]["family"] == "evolutionary"
    words = command("solvers").stdout.split()
    assert set(solvers()) <= set(words)


@pytest.fixture
def shop(tmp_path):
    """A problem of tables, with ids of documents."""
    rng = np.random.default_rng(3)
    folder = tmp_path / "shop"
    folder.mkdir()
    for part, first in (("train", 0), ("vali", 20), ("test", 40)):
        rows = ["qid,label,doc,good,noise"]
        for query in range(first, first + 20):
            for doc in rng.permutation(6):
                label = int(rng.integers(0, 3))
                rows.append(f"{query},{label},p{doc},{label + rng.random():.3f},{rng.random():.3f}")
        (folder / f"{part}.csv").write_text("\n".join(rows))
    path = tmp_path / "shop.toml"
    path.write_text(
        'name = "shop"\n[data]\nsource = "table"\nfolder = "shop"\nlabel = "label"\nquery = "qid"\ndocument = "doc"\n'
    )
    return path


def test_runs_of_trec_go_out(command, tmp_path, shop):
    out = tmp_path / "results" / "shop-rankrls-fold1-seed0"
    first = command("run", shop, "--solver", "rankrls", "--trec")
    assert first.exit_code == 0, first.stderr
    assert "test.qrels, test.run" in " ".join(first.stdout.split())
    result = Result.from_json((out / "result.json").read_text())
    qrels, run = (read(str(out / name)) for read, name in READERS)
    theirs = ir_measures.calc_aggregate([ir_measures.AP], list(qrels), list(run))[ir_measures.AP]
    assert theirs == pytest.approx(result.best.score("test", "MAP"), abs=1e-12)
    no_ids = command("run", "TINY", "--trec", "--out", tmp_path / "unnamed")
    assert "the documents have no ids" in no_ids.stderr
    assert not (tmp_path / "unnamed").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "test.run").write_text("of somebody")
    refused = command("run", shop, "--solver", "rankrls", "--trec", "--out", tmp_path / "mine")
    assert (refused.exit_code, (tmp_path / "mine" / "test.run").read_text()) == (2, "of somebody")


READERS = ((ir_measures.read_trec_qrels, "test.qrels"), (ir_measures.read_trec_run, "test.run"))
