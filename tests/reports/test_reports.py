import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import stats

from moerank.reports.content import Report
from moerank.reports.page import html_report
from moerank.reports.table import Entry, mark_best, number, with_error
from moerank.reports.text import latex, latex_report, markdown_report
from moerank.studies.result_files import model_of
from moerank.studies.study import Study


@pytest.fixture(scope="module")
def report(tiny_study):
    return Report(tiny_study)


@pytest.fixture(scope="module")
def page(report):
    return html_report(report)


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


def sections(report):
    return {section.title: section for section in report.sections()}


def test_sections_are_in_reading_order(report):
    assert list(sections(report)) == [
        "Question",
        "Problems",
        "Solvers",
        "Results: tiny",
        "Tests",
        "Features chosen",
        "Ablations",
        "How to reproduce",
    ]


def test_results_are_means_over_folds_after_seeds(report, tiny_study):
    frame = tiny_study.frame()
    table = sections(report)["Results: tiny"].tables[0]
    for row in table.rows:
        rows = frame[frame["solver"] == row[0].text]
        assert row[1].text == str(len(rows))
        for metric in ("NDCG@10", "MAP"):
            folds = [rows[rows["fold"] == fold][f"test {metric}"].mean() for fold in (1, 2)]
            error = abs(folds[0] - folds[1]) / 2
            assert row[table.columns.index(metric)].text == f"{np.mean(folds):.4f} ± {error:.4f}"


def test_the_best_of_a_column_is_marked_as_it_is_printed():
    entries = [with_error(0.51234, 0.01), number(0.51231), number(0.4), Entry("none"), number(float("nan"))]
    mark_best(entries)
    assert [entry.best for entry in entries] == [True, True, False, False, False]
    mark_best(entries, largest=False)
    assert [entry.best for entry in entries][:3] == [False, False, True]


def test_tests_are_those_of_the_queries(report):
    (table,) = sections(report)["Tests"].tables
    assert report.reference == "ranksvm-primal"
    values = {}
    for cell, result in report.results.items():
        runs = values.setdefault(cell.solver.label, {}).setdefault(cell.fold, [])
        runs.append(result.best.per_query["test"]["NDCG@10"])
    flat = {name: np.concatenate([np.mean(folds[f], axis=0) for f in (1, 2)]) for name, folds in values.items()}
    for row in table.rows:
        a, b = flat[row[0].text], flat["ranksvm-primal"]
        expected = stats.ttest_rel(a, b).pvalue if (a != b).any() else 1.0
        assert float(row[3].text) == pytest.approx(expected, abs=5e-4)
        assert row[2].text == f"{(a > b).sum()} / {(a == b).sum()} / {(a < b).sum()}"


def test_ablations_are_compared_run_by_run(report, tiny_study):
    (table,) = sections(report)["Ablations"].tables
    ((row),) = table.rows
    assert row[0].text == "ensemble"
    frame = tiny_study.frame().set_index(["fold", "seed"])
    a, b = (frame[frame["solver"] == name] for name in ("mofsrank-no-ensemble", "mofsrank"))
    difference = (a["n_features"] - b["n_features"]).mean()
    assert row[table.columns.index("features")].value == pytest.approx(difference, abs=1e-4)


def test_the_page_loads_nothing_and_is_well_formed(page):
    reader = Reader(page)
    assert reader.open == []
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in reader.fetched)
    assert not re.search(r"@import|url\((?!#)", page)
    assert page.count("<svg") >= 6


def test_the_page_holds_every_table_and_the_models_of_all_members(page, report):
    reader = Reader(page)
    for section in report.sections():
        for table in section.tables:
            head, *rows = reader.tables[table.name]
            assert head == table.columns
            assert rows == [[entry.text + entry.mark for entry in row] for row in table.rows]
    fronts = json.loads(reader.scripts[0])["tiny"]
    cell, result = next((c, r) for c, r in report.results.items() if c.solver.name == "mofsrank" and c.seed == 0)
    front = next(f for f in fronts if (f["solver"], f["fold"]) == ("mofsrank", cell.fold))
    assert [member["model"] for member in front["members"]] == [model_of(result, member) for member in result.front]
    assert sum(member["chosen"] for member in front["members"]) == 1


def test_hostile_names_are_only_text(tiny_study, monkeypatch):
    evil = '</script><script>alert("1")</script>&<b>'
    results = tiny_study.results()
    for result in results.values():
        result.feature_names[:] = [f"{evil}{number}" for number in range(len(result.feature_names))]
    monkeypatch.setattr(tiny_study, "results", lambda: results)
    reader = Reader(html_report(Report(tiny_study)))
    assert len(reader.scripts) == 2
    assert evil + "1" in json.dumps(json.loads(reader.scripts[0])).replace('\\"', '"')


def test_markdown_and_latex_show_the_same_tables(report):
    markdown, tex = markdown_report(report), latex_report(report)
    for section in report.sections():
        for table in section.tables:
            for row in table.rows:
                assert latex(row[-1].text) in tex
            assert sum(line.startswith("| ") for line in markdown.splitlines()) > len(table.rows)
    assert tex.count(r"\begin{table}") == tex.count(r"\end{table}") == sum(len(s.tables) for s in report.sections())
    assert r"\textbf{" in tex
    assert "**" in markdown


def test_latex_escapes_what_it_reads_as_commands():
    assert latex(r"50 % of {x_1} & $y^2$ ~ #3 \ ±") == (
        r"50 \% of \{x\_1\} \& \$y\textasciicircum{}2\$ \textasciitilde{} \#3 \textbackslash{} $\pm$"
    )


def test_what_is_missing_is_named_and_the_rest_reported(tiny_study, tiny_problem_file, tmp_path):
    Study([tiny_problem_file], ["rankrls"], tmp_path, folds=[1]).run()
    shutil.copytree(tmp_path, tmp_path / "copy")
    study = Study([tiny_problem_file], ["rankrls", "fsmrank"], tmp_path / "copy", folds=[1, 2])
    report = Report(study)
    text = "\n".join(sections(report)["Question"].paragraphs)
    assert "1 of 4 runs are finished" in text
    assert "fsmrank on tiny: 2; rankrls on tiny: 1" in text
    assert "Results: tiny" in sections(report)
    assert "</html>" in html_report(report)


def test_a_reference_that_has_no_results_is_refused(tiny_study):
    with pytest.raises(ValueError, match="the study has no results of rankboost; choose one of fsmrank"):
        Report(tiny_study, reference="rankboost")


def test_csv_is_the_frame(tiny_study):
    rows = list(csv.DictReader(io.StringIO(tiny_study.frame().to_csv(index=False))))
    assert len(rows) == len(tiny_study.cells())
    assert float(rows[0]["test MAP"]) == tiny_study.frame()["test MAP"][0]


def test_the_page_runs_in_a_browser(page, tmp_path):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    # The title tells whether the script came to its end and what the page asked for; the log, whether anything failed.
    probe = (
        "<script>document.title = document.querySelectorAll('.explorer circle').length + ' circles, '"
        " + performance.getEntriesByType('resource').length + ' requests'</script>"
    )
    (tmp_path / "page.html").write_text(page.replace("</body>", probe + "</body>"), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--disable-background-networking", "--enable-logging=stderr", "--virtual-time-budget=5000"]
    run = subprocess.run(
        [*command, "--dump-dom", (tmp_path / "page.html").as_uri()], capture_output=True, text=True, timeout=120
    )
    shown = re.search(r"<title>(\d+) circles, (\d+) requests</title>", run.stdout)
    assert shown is not None, run.stderr
    assert int(shown[1]) > 0
    assert int(shown[2]) == 0
    assert "CONSOLE" not in run.stderr, run.stderr
