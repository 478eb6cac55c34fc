import csv
import json
import platform
import re
import shutil
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from helpers.browser import Browser
from helpers.changes import replace
from helpers.further_objective import cost

from moerank.figures import FIGURES
from moerank.reports.rendering import html_report
from moerank.reports.study_report import Report, ReportTable, illustrations, results_section, sections, verdict_section
from moerank.runs.result import Certificate
from moerank.studies.comparison import compare_solvers
from moerank.studies.results import chosen_solver
from moerank.studies.study import Study


class Reader(HTMLParser):
    """Collects the cells of each table, the tags, and whatever a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.open, self.fetched, self.texts, self.scripts = {}, [], [], [], []
        self._table = self._cell = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.fetched += [values[key] for key in ("src", "href", "xlink:href", "data") if values.get(key)]
        if tag not in ("meta", "link", "br", "input"):
            self.open.append(tag)
        if tag == "div" and values.get("class") == "table":
            self._table = self.tables.setdefault(values["id"], [])
        if tag == "tr" and self._table is not None:
            self._table.append([])
        if tag in ("td", "th"):
            self._table[-1].append("")
            self._cell = True
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self._cell = None
        if tag == "table":
            self._table = None

    def handle_data(self, data):
        if self._cell:
            self._table[-1][-1] += data
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        self.texts.append(data)


def test_progress_tells_how_far_the_page_is(page, heard, shown):
    n = len(shown)
    assert heard == [("page", round((i + 1) / n, 3), section.title) for i, section in enumerate(shown)]


def test_the_page_loads_nothing_and_is_well_formed(page):
    reader = Reader(page)
    assert reader.open == []
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in reader.fetched)
    assert not re.search(r"@import|url\((?!#)", page)
    assert page.count("<svg") >= 6


def test_the_page_holds_every_table(page, shown):
    reader = Reader(page)
    for table in (table for section in shown for table in section.tables):
        head, *rows = [[cell.strip() for cell in row] for row in reader.tables[table.name]]
        assert head == table.columns
        assert rows == table.texts.to_numpy().tolist()


def test_the_page_holds_every_member_of_every_run(page, report):
    """Decoded here as the script does, but for the picture."""
    fronts = json.loads(Reader(page).scripts[0])["tiny"]
    keys = {(cell.solver.label, cell.fold, cell.seed): f"cells/{cell.key}.json" for cell in report.study.cells()}
    assert len(fronts["runs"]) == len(report.results)
    for result, (solver, fold, seed, chosen, key, members) in zip(report.results, fronts["runs"], strict=True):
        cell = fronts["solvers"][solver], fold, seed
        assert cell == (result.solver, result.fold, result.seed)
        assert (key, chosen) == (keys[cell], result.chosen)
        for (columns, *scores), ranker in zip(members, result.front, strict=True):
            assert [fronts["names"][column] for column in columns] == result.names(ranker.features)
            values = [ranker.scores[part][name] for part in ("train", "validation", "test") for name in result.metrics]
            assert scores == [round(value, 4) for value in values]
    assert len(Reader(page).scripts[0]) < 80 * sum(len(result.front) for result in report.results)  # a member is short


def test_hostile_names_are_only_text(tiny_study, report_of, monkeypatch):
    monkeypatch.setattr("moerank.reports.study_report.FIGURES", {"frequency": FIGURES["frequency"]})  # with their names
    evil = '</script><script>alert("1")</script>&<b>'
    results = tiny_study.results()
    for result in results:
        result.feature_names[:] = [f"{evil}{number}" for number in range(len(result.feature_names))]
    reader = Reader(html_report(report_of(results)))
    assert len(reader.scripts) == 3
    assert evil + "1" in json.dumps(json.loads(reader.scripts[0])).replace('\\"', '"')


def test_no_text_shows_what_was_to_be_filled_in(page):
    words = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<script.*?</script>", "", page, flags=re.S)
    assert not re.search(r"\{[A-Za-z_.]+\}|\bnan\b|\bNone\b", words)


def test_names_in_the_page_are_its_only_ones(page):
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(names)) == len(names)
    assert set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page)) <= set(names)


def test_the_same_study_gives_the_same_page_with_a_caption_for_each_figure(tiny_study, monkeypatch):
    monkeypatch.setattr("moerank.reports.study_report.FIGURES", {name: FIGURES[name] for name in ("cost", "frequency")})
    first, second = (html_report(Report(tiny_study)) for _ in range(2))
    assert first == second
    assert first.count("<figcaption>") == first.count("<figure ") == 2


def test_the_page_tells_what_else_was_searched(page, priced_page, priced_report):
    plain, priced = (json.loads(Reader(text).scripts[0])["tiny"] for text in (page, priced_page))
    assert (plain["further"], priced["further"]) == ([], ["cost"])
    for result, run in zip(priced_report.results, priced["runs"], strict=True):
        assert [member[-1] for member in run[5]] == [cost(ranker.features) for ranker in result.front]


PROBE = """
  const saved = [], made = URL.createObjectURL;
  URL.createObjectURL = (blob) => { saved.push(blob); return made(blob); };
  HTMLAnchorElement.prototype.click = () => {};
  const box = document.querySelector(".explorer");
  const [fold, seed, part, metric, across] = box.querySelectorAll("select");
  for (const solver of box.querySelectorAll("input")) {
    solver.checked = solver.parentNode.textContent === "mofsrank";
  }
  fold.value = "2"; seed.value = "1"; part.value = "test"; across.value = ACROSS;
  fold.dispatchEvent(new Event("change"));
  const output = box.querySelector("output"), plot = box.querySelector(".plot svg");
  const key = (name) => plot.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
  const said = [], shown = output.textContent;
  for (let i = 0; i < 40 && said.at(-1) !== output.textContent; i++) {
    said.push(output.textContent);
    key("ArrowRight");
  }
  const ring = plot.querySelector(".ring").getBoundingClientRect();
  const last = output.textContent;
  key("ArrowLeft");
  const at = { clientX: ring.left + ring.width / 2, clientY: ring.top + ring.height / 2 };
  plot.dispatchEvent(new PointerEvent("pointerdown", at));
  const tapped = output.textContent === last && saved.length === 0;
  const table = document.querySelector("#results-tiny table");
  const order = (column) => [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[column].textContent));
  table.querySelectorAll("th button")[2].click();
  const byMetric = order(2);
  table.querySelectorAll("th button")[1].click();
  document.querySelector("#results-tiny .save").click();
  for (const save of document.querySelectorAll("figure")[0].querySelectorAll(".save")) save.click();
  const seen = {
    said: said.slice(1), tapped, marks: plot.querySelectorAll(".mark").length, sorted: order(1), byMetric, shown,
    metric: table.querySelectorAll("th")[2].getBoundingClientRect().right,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth };
"""
"""Uses the page as a reader would, and keeps what came of it."""

FILES = "Promise.all(saved.map((blob) => blob.text())).then((files) => { seen.files = files; })"


@pytest.mark.parametrize("kind", ["", "priced_"])
def test_the_page_runs_in_a_browser(kind, tmp_path, request):
    report, page = (request.getfixturevalue(kind + name) for name in ("report", "page"))
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    address = (tmp_path / "page.html").as_uri()
    with Browser(tmp_path / "profile", 390, 900) as browser:
        browser.ask("Page.navigate", url=address)
        browser.wait('document.readyState === "complete"')
        browser.value(PROBE.replace("ACROSS", '"cost"' if kind else '"features"'))
        browser.wait("saved.length === 3")  # a picture of points takes the browser a moment
        browser.value(FILES)
        seen = browser.wait("seen.files && seen")
        assert [requested for requested in browser.requests if not requested.startswith("data:")] == [address]
        assert browser.errors == []
    result = next(r for r in report.results if (r.solver, r.fold, r.seed) == ("mofsrank", 2, 1))
    assert f"member {result.chosen + 1} of {len(result.front)}, chosen" in seen["shown"]
    assert len(seen["said"]) == seen["marks"] == len(result.front)
    for row, member in enumerate(result.front, start=1):
        (text,) = (text for text in seen["said"] if f"--member {row} " in text)
        assert f"mofsrank, fold 2, seed 1: member {row} of {len(result.front)}" in text
        assert (", chosen" in text) == (member is result.best)
        assert f"test: NDCG@10 {member.scores['test']['NDCG@10']:.4f}, MAP {member.scores['test']['MAP']:.4f}" in text
        assert f"{', '.join(result.names(member.features))}To export this ranker" in text
        assert (f"cost {cost(member.features):g}" in text) == (kind == "priced_")
    assert seen["tapped"]
    table, figure, points = seen["files"]
    assert points[1:4] == "PNG"
    head, *rows = csv.reader(table.splitlines())
    assert head[1:5] == ["features", "features, standard error", "NDCG@10", "NDCG@10, standard error"]
    assert [row[0] for row in rows] == sorted_by_size(report)
    column = head.index("NDCG@10")
    for row in rows:
        mean, error = (table.at[row[0], "test NDCG@10"] for table in report.results.means())
        assert (row[column], row[column + 1]) == (f"{mean:.4f}", f"{error:.4f}")
    assert figure.startswith("<svg") and "</svg>" in figure
    ElementTree.fromstring(figure)
    assert seen["sorted"] == sorted(seen["sorted"])  # few features first
    assert seen["byMetric"] == sorted(seen["byMetric"], reverse=True)  # the best first
    assert seen["metric"] <= 390  # seen on a telephone
    assert seen["wide"] == 0  # nothing is wider than the screen of a telephone


def sorted_by_size(report):
    """The solvers by mean number of features, in the order of the study where it is equal."""
    means = report.results.means()[0]["n_features"].to_dict()
    return sorted(means, key=means.__getitem__)


@cache
def titled(report):
    return {section.title: section for section in sections(report)}


def tables_of(report, title="Results: tiny"):
    """The tables of a section by the kind in their name, each with its first column as index."""
    tables = titled(report)[title].tables
    return {table.name.removesuffix("-tiny"): table.texts.set_index(table.columns[0]) for table in tables}


def runs_of(report, solver):
    return {(result.fold, result.seed): result for result in report.results if result.solver == solver}


def test_sections_are_in_reading_order(report):
    first = ["Verdict", "Results: tiny", "Tests", "Features chosen", "Ablations"]
    assert list(titled(report)) == [*first, "How to reproduce"]


def test_what_is_proved_stands_beside_the_fronts(report, report_of):
    """Of the first run alone: its chosen member lacks a quarter of the reduction, the others nothing."""
    first, *others = report.results
    losses = [0.8 if number == first.chosen else 0.75 for number in range(len(first.front))]
    values = {"sizes": [1, 2], "best": [0.9, 0.8], "bounds": [0.9, 0.7], "least": [0.75] * len(losses)}
    certificate = Certificate(alpha=1.0, **values, losses=losses)
    fronts = tables_of(report_of([replace(first, certificate=certificate), *others]))["fronts"]
    assert fronts.loc[first.solver, ["given up", "proved"]].tolist() == ["25.0%", "50.0%"]
    assert fronts["given up"].tolist().count("") == len(fronts) - 1


def test_the_verdict_names_the_solver_that_validation_likes_best(report, tiny_study, report_of):
    """Chosen from the frame of the runs; the numbers behind are those of `chosen_solver`, with tests of its own."""
    frame = tiny_study.frame()
    folds = frame[frame["solver"] != "ranksvm-primal"].groupby(["solver", "fold"])
    means = folds[["validation NDCG@10", "n_features"]].mean().groupby("solver").mean()
    means["loss"] = -means["validation NDCG@10"].round(10)  # ties go to fewer features
    best = means.sort_values(["loss", "n_features"]).index[0]
    (sentence,) = titled(report)["Verdict"].paragraphs
    size = f"{means.loc[best, 'n_features']:.0f} of 20 features"
    assert sentence.startswith(f"tiny: {best}, chosen by validation queries from 4 solvers. ")
    assert size in sentence
    assert f"on {len(report.results[0].queries['test']) * 2} test queries" in sentence
    assert "(p values: " in sentence
    alone = report_of([run for run in report.results if run.solver == best])
    verdict = chosen_solver(alone.results)[0]["verdict"]
    assert titled(alone)["Verdict"].paragraphs[0].startswith(f"tiny: {best}. {verdict.sentence} (p values: ")


def test_without_a_selection_there_is_no_verdict(report, report_of):
    sentence = verdict_section(report_of(report.results.among(["ranksvm-primal"]))).paragraphs[0]
    assert sentence == "tiny: no verdict, because no finished run selects features and has a verdict on test queries."


def test_no_best_is_bold_where_solvers_have_other_folds(report, report_of):
    part = [result for result in report.results if (result.solver, result.fold) != ("fsmrank", 2)]
    for of, is_bold in ((report, True), (report_of(part), False)):
        tables = results_section(of, report.problems[0]).tables
        assert [bool(table.bold.to_numpy().any()) for table in tables] == [is_bold, False, is_bold]
        assert ("the best is bold" in tables[0].caption) == is_bold


def test_the_machine_of_the_results_is_named(report):
    assert platform.machine() in tables_of(report, "How to reproduce")["versions"].loc["machine", "version"]


def test_the_best_of_a_column_is_bold_as_it_is_printed():
    frame = pd.DataFrame({"solver": list("abcd"), "x": [0.51234, 0.51231, 0.4, np.nan], "x ±": [0.01, *[np.nan] * 3]})
    table = ReportTable("t", "", frame, {"x": True}, {"x": {"b"}})
    assert table.texts["x"].tolist() == ["0.5123 ± 0.0100", "0.5123*", "0.4000", ""]
    assert table.bold["x"].tolist() == [True, True, False, False]
    assert ReportTable("t", "", frame, {"x": False}).bold["x"].tolist() == [False, False, True, False]


def test_tests_are_those_of_the_queries(report):
    tables = {table.name: table.frame for table in titled(report)["Tests"].tables}
    judges = tables["verdicts-tiny"][["solver", "against"]].to_numpy().tolist()
    searches = [["mofsrank", "its backend"], ["mofsrank[ensemble=false]", "its backend"]]
    assert judges == [["fsmrank", "RankSVM"], *searches, ["greedy-rankrls", "RankRLS"]]
    assert report.reference == "ranksvm-primal"
    comparison = compare_solvers(report.results, "test NDCG@10", "ranksvm-primal")
    expected = comparison.frame.rename(columns={"n": "queries", "adjusted": "adjusted p"})
    columns = ["solver", "queries", "difference", "wins", "ties", "losses", "p", "adjusted p", "finding"]
    pd.testing.assert_frame_equal(tables["tests-tiny"][columns], expected[columns])
    section = titled(report)["Tests"]
    assert section.tables[0].caption.startswith(f"tiny: {comparison.sentence}")
    assert section.paragraphs == [f"tiny: {compare_solvers(report.results, 'test NDCG@10').sentence}"]


def test_detected_differences_are_marked(report, report_of, monkeypatch):
    monkeypatch.setattr("moerank.statistics.MIN_QUERIES", 5)
    worse = [r if r.solver == "ranksvm-primal" else lowered(r, 0.8) for r in report.results]
    report = report_of(worse)
    (means, *_), (tests, *_) = titled(report)["Results: tiny"].tables, titled(report)["Tests"].tables
    shown = set(tests.frame.loc[tests.frame["finding"] == "a loss is detected", "solver"])
    assert shown
    assert {row["solver"] for _, row in means.texts.iterrows() if row["NDCG@10"].endswith("*")} == shown


def lowered(result, change):
    best = result.best
    values = [value - change for value in best.per_query["test"]["NDCG@10"]]
    per_query = {**best.per_query, "test": {**best.per_query["test"], "NDCG@10": values}}
    scores = {**best.scores, "test": {**best.scores["test"], "NDCG@10": float(np.mean(values))}}
    front = [replace(m, per_query=per_query, scores=scores) if m is best else m for m in result.front]
    return replace(result, front=front)


def test_ablations_are_compared_as_everywhere_else(report):
    """The table has the numbers of the comparisons, and its caption their words."""
    (table,) = titled(report)["Ablations"].tables
    assert table.frame["solver"].tolist() == ["without ensemble"]
    pair = report.results.among(["mofsrank", "mofsrank[ensemble=false]"])
    names = {"mofsrank": "complete", "mofsrank[ensemble=false]": "without ensemble"}
    sentences = []
    for head, quantity in (
        ("hypervolume", "hypervolume"),
        ("test NDCG@10", "test NDCG@10"),
        ("features", "n_features"),
    ):
        comparison = compare_solvers(pair, quantity, "mofsrank")
        (row,) = comparison.frame.itertuples()
        assert table.frame.loc[0, head] == row.difference
        if head != "hypervolume":  # its side is true by construction
            assert table.frame.loc[0, f"p of {head}"] == row.adjusted
        sentences.append(comparison.renamed(names).sentence)
    assert table.caption == f"tiny: change from complete. {' '.join(sentences)}"


def test_instances_are_those_of_solvers_that_select_them(report):
    fronts = titled(report)["Results: tiny"].tables[2].frame.set_index("solver")["instances used"]
    assert fronts.dropna().index.tolist() == ["mofsrank", "mofsrank[ensemble=false]"]
    runs = runs_of(report, "mofsrank").items()
    shares = [np.mean([r.best.instances / r.n_instances for (f, _), r in runs if f == fold]) for fold in (1, 2)]
    assert fronts["mofsrank"] == pytest.approx(np.mean(shares))


def test_results_can_be_shown_by_any_metric_that_is_kept(tiny_study):
    table = tables_of(Report(tiny_study, metrics=["NDCG@1", "MeanNDCG"]))["results"]
    assert table.columns.tolist() == ["features", "NDCG@1", "MeanNDCG"]
    runs = [run.best.further["test"] for run in tiny_study.results() if run.solver == "ranksvm-primal"]
    for name in ("NDCG@1", "MeanNDCG"):
        mean = float(table.loc["ranksvm-primal", name].split()[0])
        assert mean == pytest.approx(np.mean([scores[name] for scores in runs]), abs=1e-4)
    with pytest.raises(ValueError, match="unknown metric 'NDCG@11'"):
        Report(tiny_study, metrics=["NDCG@11"])


def test_what_is_missing_is_named_and_the_rest_reported(tiny_problem_file, tmp_path):
    Study([tiny_problem_file], ["rankrls"], tmp_path, folds=[1]).run()
    shutil.copytree(tmp_path, tmp_path / "copy")
    report = Report(Study([tiny_problem_file], ["rankrls", "fsmrank"], tmp_path / "copy", folds=[1, 2]))
    assert titled(report)["Verdict"].paragraphs[-1].startswith("1 of 4 runs are finished")
    (table,) = titled(report)["Missing runs"].tables
    rows = [["tiny", "rankrls", "not run", 1], ["tiny", "fsmrank", "not run", 2]]
    assert sorted(table.frame.to_numpy().tolist()) == sorted(rows)
    assert "Results: tiny" in titled(report)


def test_a_single_run_is_never_significant(report, report_of):
    part = [result for result in report.results if result.fold == 1 and result.seed == 0]
    (table,) = titled(report_of(part))["Ablations"].tables
    assert table.texts.filter(like="p of").to_numpy().tolist() == [["1.000"]]  # of the queries
    assert "is detected" not in table.caption


def test_a_reference_that_has_no_results_is_refused(tiny_study):
    with pytest.raises(ValueError, match=r"reference must be one of 'fsmrank', .*, not 'rankboost'"):
        Report(tiny_study, reference="rankboost")


def test_fronts_are_measured_by_the_area_under_their_steps(report):
    fronts = tables_of(report)["fronts"]
    assert fronts.index.tolist() == report.results.solvers
    for solver in fronts.index:
        folds = {1: [], 2: []}
        for (fold, _), result in runs_of(report, solver).items():
            points = [(len(m.features), m.scores["train"]["NDCG@10"]) for m in result.front]
            best = [max((value for size, value in points if size <= k), default=0.0) for k in range(1, 20)]
            folds[fold].append(sum(best) / 20)
        means = [np.mean(values) for values in folds.values()]
        assert fronts["hypervolume"][solver] == f"{np.mean(means):.4f} ± {abs(means[0] - means[1]) / 2:.4f}"


def test_features_are_counted_over_the_runs(report):
    (table,) = titled(report)["Features chosen"].tables
    assert "ranksvm-primal" not in table.texts["solver"].tolist()  # it selects nothing
    for number, row in enumerate(table.texts.to_numpy().tolist()):
        runs = runs_of(report, row[0])
        chosen = [set(run.names(run.best.features)) for run in runs.values()]
        sizes = [np.mean([len(r.best.features) for c, r in runs.items() if c[0] == f]) for f in (1, 2)]
        assert row[1] == f"{np.mean(sizes):.1f} ± {abs(sizes[0] - sizes[1]) / 2:.1f}"
        pairs = [(a, b) for i, a in enumerate(chosen) for b in chosen[:i]]
        jaccard = np.mean([len(a & b) / len(a | b) for a, b in pairs])
        assert table.frame.loc[number, "stability"] == pytest.approx(jaccard)
        listed = re.findall(r"([^,()]+) \((\d+)%\)", row[4])
        shares = [sum(name.strip() in names for names in chosen) / len(chosen) for name, _ in listed]
        assert [f"{share:.0%}" for share in shares] == [f"{percent}%" for _, percent in listed]
        assert shares == sorted(shares, reverse=True)
        assert len(listed) == min(8, len(set.union(*chosen)))


def test_a_further_objective_has_a_column_and_a_figure(priced_report, report):
    section = titled(priced_report)["Results: tiny"]
    table = tables_of(priced_report)["results"]
    assert table.columns.tolist() == ["features", "NDCG@10", "MAP", "cost"]
    for solver in table.index:
        runs = runs_of(priced_report, solver)
        means = [np.mean([cost(r.best.features) for (f, _), r in runs.items() if f == fold]) for fold in (1, 2)]
        assert table["cost"][solver] == f"{np.mean(means):.4f} ± {abs(means[0] - means[1]) / 2:.4f}"
        assert tables_of(priced_report)["cost"].loc[solver, "runs"] == str(len(runs))
    assert section.tables[0].caption.endswith("on the training data: cost.")
    names = [f"{name}-tiny" for name in ("accuracy", "fronts", "hypervolume", "cost", "objectives", "instances")]
    assert list(illustrations(priced_report, section)) == names  # no attainment surfaces of three objectives
    assert "cost" not in tables_of(report)["results"]
    assert "p of cost" in titled(priced_report)["Ablations"].tables[0].frame
