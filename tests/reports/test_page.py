import csv
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from helpers.browser import Browser
from helpers.further_objective import cost

from moerank.figures import FIGURES
from moerank.reports.rendering import html_report
from moerank.reports.study_report import Report


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
