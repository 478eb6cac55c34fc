import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser

import pytest
from helpers.further_objective import cost

from moerank.reports.markdown import markdown_report
from moerank.reports.page import html_report
from moerank.reports.report import Report
from moerank.runs.result_files import model_of


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
    titles = [section.title for section in shown]
    assert [(step, round(share, 3), text) for step, share, text in heard] == [
        (step, round((i + 1) / 9, 3), title) for step in ("sections", "page") for i, title in enumerate(titles)
    ]


def test_the_page_loads_nothing_and_is_well_formed(page):
    reader = Reader(page)
    assert reader.open == []
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in reader.fetched)
    assert not re.search(r"@import|url\((?!#)", page)
    assert page.count("<svg") >= 6


def test_the_page_holds_every_table_and_the_models_of_all_members(page, report, shown):
    reader = Reader(page)
    for section in shown:
        for table in section.tables:
            head, *rows = reader.tables[table.name]
            assert head == table.columns
            assert rows == [[entry.text + entry.mark for entry in row] for row in table.rows]
    fronts = json.loads(reader.scripts[0])["tiny"]
    result = next(result for result in report.results if (result.solver, result.seed) == ("mofsrank", 0))
    front = next(f for f in fronts if (f["solver"], f["fold"]) == ("mofsrank", result.fold))
    for member, ranker in zip(front["members"], result.front, strict=True):
        columns, weights = member["model"]["features"]
        names = [front["names"][column] for column in columns]
        features = [dict(name=n, column=c, weight=w) for n, c, w in zip(names, columns, weights, strict=True)]
        assert {**member["model"], "features": features} == model_of(result, ranker)
    assert sum(member["chosen"] for member in front["members"]) == 1


def test_hostile_names_are_only_text(tiny_study, monkeypatch):
    evil = '</script><script>alert("1")</script>&<b>'
    results = tiny_study.results()
    for result in results:
        result.feature_names[:] = [f"{evil}{number}" for number in range(len(result.feature_names))]
    monkeypatch.setattr(tiny_study, "results", lambda: results)
    reader = Reader(html_report(Report(tiny_study)))
    assert len(reader.scripts) == 2
    assert evil + "1" in json.dumps(json.loads(reader.scripts[0])).replace('\\"', '"')


def test_no_text_shows_what_was_to_be_filled_in(page, report):
    words = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<script.*?</script>", "", page, flags=re.S)
    assert not re.search(r"\{[A-Za-z_.]+\}", words + markdown_report(report))


def test_names_in_the_page_are_its_only_ones(page):
    names = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(names)) == len(names)
    assert set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page)) <= set(names)


def test_the_same_study_gives_the_same_page(page, tiny_study):
    assert html_report(Report(tiny_study)) == page


def test_every_figure_has_a_caption(page, shown):
    n_figures = sum(len(section.figures) for section in shown)
    assert page.count("<figcaption>") == page.count("<figure>") == n_figures


def test_the_page_tells_what_else_was_searched(page, priced_page, priced_report):
    assert "objectives" not in json.loads(Reader(page).scripts[0])["tiny"][0]["members"][0]
    fronts = json.loads(Reader(priced_page).scripts[0])["tiny"]
    offers = [run for run in priced_report.results if run.seed == 0 and len(run.front) > 1]
    assert [(front["solver"], front["fold"]) for front in fronts] == [(run.solver, run.fold) for run in offers]
    for front in fronts:
        for member in front["members"]:
            assert member["objectives"] == {"cost": cost(member["model"]["features"][0])}


@pytest.mark.parametrize("kind", ["", "priced_"])
def test_the_page_runs_in_a_browser(kind, tmp_path, request):
    report, page = (request.getfixturevalue(kind + name) for name in ("report", "page"))
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
    result = next(r for r in report.results if (r.solver, r.fold, r.seed) == ("mofsrank", 2, 0))
    assert found["model"] == model_of(result, result.front[0])
    assert all(name in found["said"] for name in result.names(result.front[0].features))
    price = f"cost {cost(result.front[0].features)}"
    assert (price in found["said"]) == (kind == "priced_")
    assert found["sorted"] == sorted(found["sorted"])
    assert found["requests"] == 0
    assert "CONSOLE" not in run.stderr, run.stderr
