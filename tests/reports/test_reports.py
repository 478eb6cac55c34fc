import csv
import dataclasses
import io
import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import stats

from moerank.reports.content import Report
from moerank.reports.findings import results_section
from moerank.reports.latex import latex, latex_report
from moerank.reports.markdown import markdown_report
from moerank.reports.page import html_report
from moerank.reports.table import Entry, mark_best, number, p_value, with_error
from moerank.runs.problem import Published
from moerank.runs.result_files import model_of
from moerank.solvers import solvers
from moerank.studies.cell import Cell, SolverSpec
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


def test_progress_tells_how_far_the_page_is(report):
    heard = []
    html_report(report, lambda step, share, text: heard.append((step, round(share, 3), text)))
    titles = [section.title for section in report.sections()]
    assert heard == [(step, (i + 1) / 8, title) for step in ("sections", "page") for i, title in enumerate(titles)]


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


def test_a_small_p_is_not_printed_as_nothing():
    assert [p_value(p).text for p in (1e-9, 0.00051, 0.25)] == ["< 0.001", "0.001", "0.250"]
    assert latex(p_value(1e-9).text) == "$<$ 0.001"


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
        assert row[3].value == pytest.approx(expected, rel=1e-9)
        assert row[2].text == f"{(a > b).sum()} / {(a == b).sum()} / {(a < b).sum()}"


def test_ablations_are_compared_fold_by_fold_after_seeds(report, tiny_study):
    (table,) = sections(report)["Ablations"].tables
    (row,) = table.rows
    assert row[0].text == "ensemble"
    means = tiny_study.frame().groupby(["solver", "fold"])[["n_features", "test NDCG@10"]].mean()
    for head, name in (("features", "n_features"), ("test NDCG@10", "test NDCG@10")):
        a, b = (means.loc[solver, name].to_numpy() for solver in ("mofsrank-no-ensemble", "mofsrank"))
        column = table.columns.index(head)
        assert row[column].value == pytest.approx((a - b).mean(), abs=1e-12)
        expected = stats.ttest_rel(a, b).pvalue if np.ptp(a - b) else float((a == b).all())
        assert row[column + 1].value == pytest.approx(expected)


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
    for member, ranker in zip(front["members"], result.front, strict=True):
        columns, weights = member["model"]["features"]
        names = [front["names"][column] for column in columns]
        features = [dict(name=n, column=c, weight=w) for n, c, w in zip(names, columns, weights, strict=True)]
        assert {**member["model"], "features": features} == model_of(result, ranker)
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


def test_no_text_shows_what_was_to_be_filled_in(page, report):
    words = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<script.*?</script>", "", page, flags=re.S)
    assert not re.search(r"\{[A-Za-z_.]+\}", words + markdown_report(report))


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
    assert latex("--seeds 3") == "-{}-{}seeds 3"
    assert latex("[a]\n*'") == r"{[}a{]} {*}\textquotesingle{}"


def unescaped(tex):
    """LaTeX without the commands of this package's own."""
    return re.sub(r"\\([A-Za-z]+\*?|.)", "", tex)


def test_latex_of_hostile_names_is_balanced(tiny_study, monkeypatch):
    results = {}
    for cell, result in tiny_study.results().items():
        names = [f"}}{{\\input{{x}} % & # $ ^ _ ~ [{number}]" for number in range(len(result.feature_names))]
        spec = SolverSpec(cell.solver.name, {"x": "} $ & %\n\\\\"})
        moved = dataclasses.replace(result, feature_names=names)
        results[Cell(cell.problem, cell.fold, spec, cell.seed)] = moved
    monkeypatch.setattr(tiny_study, "results", lambda: results)
    monkeypatch.setattr(
        type(tiny_study), "solvers", property(lambda _: list({c.solver.label: c.solver for c in results}.values()))
    )
    tex = latex_report(Report(tiny_study))
    assert r"\input" not in tex
    body = "\n".join(unescaped(tex).splitlines()[1:])
    depth = 0
    for sign in body:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    assert body.count("$") % 2 == 0
    assert not set("%#_~") & set(body)
    tables = re.findall(r"begin\{tabular\}\{([^\n]*)\}\n(.*?)\\end\{tabular\}", tex, re.DOTALL)
    for columns, rows in tables:
        n_columns = len(re.sub(r"p\{[^}]*\}", "p", columns))
        for row in rows.splitlines():
            if row.endswith((r" \\", r" \tabularnewline")):
                assert len(re.findall(r"(?<!\\)&", row)) == n_columns - 1


def test_latex_compiles_and_fits_on_its_pages(tiny_study, monkeypatch, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex is installed")
    mine = {c.solver.name: (c, r) for c, r in tiny_study.results().items()}
    results = {}
    for position, name in enumerate(solvers()):  # as many rows as there may be, each with two folds
        cell, result = list(mine.values())[position % len(mine)]
        for fold in (1, 2):
            results[Cell(cell.problem, fold, SolverSpec(name), 0)] = result
    monkeypatch.setattr(tiny_study, "results", lambda: results)
    specs = list({cell.solver.label: cell.solver for cell in results}.values())
    monkeypatch.setattr(type(tiny_study), "solvers", property(lambda _: specs))
    entry = Published(method="Theirs", solver="fsmrank", scores={"MAP": 0.25, "NDCG@10": 0.5}, source="a paper, " * 20)
    problem = tiny_study.problems[0].model_copy(update={"published": (entry,) * 12})
    monkeypatch.setattr(type(tiny_study), "problems", property(lambda _: [problem]))
    (tmp_path / "report.tex").write_text(latex_report(Report(tiny_study)), encoding="utf-8")
    (tmp_path / "paper.tex").write_text(
        r"\documentclass[a4paper]{article}\textwidth16cm\oddsidemargin0cm\textheight24.5cm\topmargin-1.5cm"
        r"\usepackage{booktabs}\usepackage[T1]{fontenc}\begin{document}\input{report}\end{document}"
    )
    for _ in range(2):  # the second time with the numbers of tables
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
        assert run.returncode == 0, run.stdout[-3000:]
    assert not re.findall(r"Overfull \\hbox.*|Float too large.*|undefined.*", run.stdout)


def test_markdown_code_ends_where_it_should(tiny_study, monkeypatch):
    monkeypatch.setattr(tiny_study, "commands", lambda: ["moerank study x", "```", "# not a title"])
    lines = markdown_report(Report(tiny_study)).splitlines()
    first, last = lines.index("````sh"), lines.index("````")
    assert lines[first + 1 : last] == ["moerank study x", "```", "# not a title"]


def test_markdown_tables_read_back(report):
    lines = markdown_report(report).splitlines()
    read = [
        [re.sub(r"\\(.)", r"\1", cell.strip().strip("*")) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
        if line.startswith("| ") and "---" not in line
    ]
    tables = [table for section in report.sections() for table in section.tables]
    assert read == [
        row for t in tables for row in [t.columns, *([entry.text + entry.mark for entry in row] for row in t.rows)]
    ]


def test_names_in_the_page_are_its_only_ones(page):
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(names)) == len(names)
    assert set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page)) <= set(names)


def test_the_same_study_gives_the_same_page(page, tiny_study):
    assert html_report(Report(tiny_study)) == page


def test_published_results_have_their_sources(tiny_study, monkeypatch):
    entry = Published(method="Theirs", solver="fsmrank", features=3.0, scores={"MAP": 0.25}, source="a paper")
    problem = tiny_study.problems[0].model_copy(update={"published": (entry,)})
    monkeypatch.setattr(type(tiny_study), "problems", property(lambda _: [problem]))
    published = sections(Report(tiny_study))["Problems"].tables[1]
    assert published.columns == ["method", "solver here", "features", "MAP", "source"]
    assert [e.text for e in published.rows[0]] == ["Theirs", "fsmrank", "3.0", "0.2500", "a paper"]


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


def test_ablations_without_a_common_run_are_left_out(tiny_study, monkeypatch):
    results = tiny_study.results()
    kept = {
        cell: result
        for cell, result in results.items()
        if {"mofsrank": cell.fold == 1, "mofsrank-no-ensemble": cell.fold == 2}.get(cell.solver.name, True)
    }
    monkeypatch.setattr(tiny_study, "results", lambda: kept)
    assert "Ablations" not in sections(Report(tiny_study))


def test_a_single_run_is_never_significant(tiny_study, monkeypatch):
    kept = {c: r for c, r in tiny_study.results().items() if c.fold == 1 and c.seed == 0}
    monkeypatch.setattr(tiny_study, "results", lambda: kept)
    (table,) = sections(Report(tiny_study))["Ablations"].tables
    assert [row[column].text for row in table.rows for column in (2, 4, 6)] == ["1.000"] * 3


def test_published_values_stand_only_beside_the_parameters_of_the_table(tiny_study, monkeypatch):
    entry = Published(method="Theirs", solver="fsmrank", scores={"MAP": 0.25}, source="a paper")
    problem = tiny_study.problems[0].model_copy(update={"published": (entry,)})
    results = {}
    for cell, result in tiny_study.results().items():
        results[cell] = result
        if cell.solver.name == "fsmrank":
            results[Cell(cell.problem, cell.fold, SolverSpec("fsmrank", {"lambda1": 0.5}), cell.seed)] = result
    monkeypatch.setattr(tiny_study, "results", lambda: results)
    table = results_section(Report(tiny_study), problem).tables[0]
    shown = {row[0].text: row[table.columns.index("MAP") + 1].text for row in table.rows}
    assert shown["fsmrank"] == "0.2500"
    assert shown["fsmrank[lambda1=0.5]"] == ""


def test_every_figure_has_a_caption(page, report):
    n_figures = sum(len(section.figures) for section in report.sections())
    assert page.count("<figcaption>") == page.count("<figure>") == n_figures


def test_a_reference_that_has_no_results_is_refused(tiny_study):
    with pytest.raises(ValueError, match="the study has no results of rankboost; choose one of fsmrank"):
        Report(tiny_study, reference="rankboost")


def test_csv_is_the_frame(tiny_study):
    rows = list(csv.DictReader(io.StringIO(tiny_study.frame().to_csv(index=False))))
    assert len(rows) == len(tiny_study.cells())
    assert float(rows[0]["test MAP"]) == tiny_study.frame()["test MAP"][0]


def test_the_page_runs_in_a_browser(page, report, tmp_path):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    # The probe uses the page as a reader would and writes down what came of it; the log tells whether anything failed.
    probe = """<pre id="probe"></pre><script>
      const saved = [], made = URL.createObjectURL;
      URL.createObjectURL = (blob) => { saved.push(blob); return made(blob); };
      HTMLAnchorElement.prototype.click = () => {};
      const [solver, fold] = document.querySelectorAll(".explorer select");
      solver.value = "mofsrank"; fold.value = "2"; fold.dispatchEvent(new Event("change"));
      const dot = document.querySelector(".explorer circle");
      dot.dispatchEvent(new Event("pointerenter")); dot.dispatchEvent(new Event("click"));
      const table = document.querySelector("#results-tiny table");
      table.querySelectorAll("th button")[2].click();
      saved[0].text().then((model) => { document.getElementById("probe").textContent = JSON.stringify({
        model: JSON.parse(model), said: document.querySelector(".explorer output").textContent,
        sorted: [...table.tBodies[0].rows].map((row) => Number(row.cells[2].dataset.value)),
        requests: performance.getEntriesByType("resource").length }); });
    </script>"""
    (tmp_path / "page.html").write_text(page.replace("</body>", probe + "</body>"), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--disable-background-networking", "--enable-logging=stderr", "--virtual-time-budget=5000"]
    run = subprocess.run(
        [*command, "--dump-dom", (tmp_path / "page.html").as_uri()], capture_output=True, text=True, timeout=120
    )
    shown = re.search(r'<pre id="probe">(.+?)</pre>', run.stdout, re.DOTALL)
    assert shown is not None, run.stderr
    found = json.loads(unescape(shown[1]))
    result = next(r for c, r in report.results.items() if (c.solver.label, c.fold, c.seed) == ("mofsrank", 2, 0))
    assert found["model"] == model_of(result, result.front[0])
    assert all(name in found["said"] for name in result.names(result.front[0].features))
    assert found["sorted"] == sorted(found["sorted"])
    assert found["requests"] == 0
    assert "CONSOLE" not in run.stderr, run.stderr


def test_every_sentence_is_filled_in(report):
    for section in report.sections():
        said = [section.title, *section.paragraphs]
        said += [words for table in section.tables for words in (table.caption, table.note, *table.columns)]
        assert not [words for words in said if "{" in words or "nan" in words.split() or "None" in words]


def runs_of(report, solver):
    return {(c.fold, c.seed): r for c, r in report.results.items() if c.solver.label == solver}


def test_fronts_are_measured_by_the_area_under_their_steps(report):
    table = sections(report)["Results: tiny"].tables[1]
    assert [row[0].text for row in table.rows] == list(dict.fromkeys(c.solver.label for c in report.results))
    for row in table.rows:
        folds = {1: [], 2: []}
        for (fold, _), result in runs_of(report, row[0].text).items():
            points = [(len(m.features), m.scores["train"]["NDCG@10"]) for m in result.front]
            best = [max((value for size, value in points if size <= k), default=0.0) for k in range(1, 20)]
            folds[fold].append(sum(best) / 20)
        means = [np.mean(values) for values in folds.values()]
        assert row[1].text == f"{np.mean(means):.4f} ± {abs(means[0] - means[1]) / 2:.4f}"


def test_features_are_counted_over_the_runs(report):
    (table,) = sections(report)["Features chosen"].tables
    assert "ranksvm-primal" not in [row[0].text for row in table.rows]  # it selects nothing
    for row in table.rows:
        runs = list(runs_of(report, row[0].text).values())
        chosen = [{result.feature_names[i] for i in result.best.features} for result in runs]
        sizes = [
            np.mean([len(r.best.features) for c, r in runs_of(report, row[0].text).items() if c[0] == f])
            for f in (1, 2)
        ]
        assert row[1].text == f"{np.mean(sizes):.1f} ± {abs(sizes[0] - sizes[1]) / 2:.1f}"
        pairs = [(a, b) for i, a in enumerate(chosen) for b in chosen[:i]]
        assert row[2].value == pytest.approx(np.mean([len(a & b) / len(a | b) for a, b in pairs]))
        listed = re.findall(r"([^,()]+) \((\d+)%\)", row[4].text)
        shares = [sum(name.strip() in names for names in chosen) / len(chosen) for name, _ in listed]
        assert [f"{share:.0%}" for share in shares] == [f"{percent}%" for _, percent in listed]
        assert shares == sorted(shares, reverse=True)
        assert len(listed) == min(8, len(set.union(*chosen)))
