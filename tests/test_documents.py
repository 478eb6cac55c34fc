"""Every block of code in README, CONTRIBUTING and the pages of the site, in a clean folder.

The blocks of a page run in order, those of Python in one namespace. A ``text`` block that is marked as
``<!-- compared -->`` is what the block of Python, or the last command, before it prints. Of ``sh`` blocks the lines
that begin with moerank are run, a ``toml`` block that begins with ``# NAME.toml`` is written to that file, and
``<!-- not run: REASON -->`` skips the block behind it.
"""

import json
import re
import shlex
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import logs, pages
from helpers.pages import blocks

from moerank.data import make_planted
from moerank.mofsrank import staged_search
from moerank.rankers import lambda_mart
from moerank.rankers.base import Ranker
from moerank.runs import sources
from moerank.runs.result import Result
from moerank.selectors.best_subset import BestSubset
from moerank.solvers import solvers
from moerank.studies import evidence, searches
from moerank.version import VERSION

PROJECT = Path(__file__).resolve().parents[1]
MADE = ("docs/_build/", "docs/gallery/", "docs/reference/made/")
WRITTEN = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md")
FILES = {path.relative_to(PROJECT).as_posix(): path for pattern in WRITTEN for path in sorted(PROJECT.glob(pattern))}
PAGES = {name: path.read_text(encoding="utf-8") for name, path in FILES.items() if not name.startswith(MADE)}
APART = ("README.md", "docs/start/own_data.md", "docs/recipes/solr.md")
"""Pages with tests of their own; that of Solr runs with Solr, in tests/engines."""
WITH_CODE = [name for name, text in PAGES.items() if any(block.runs for block in blocks(text)) and name not in APART]


LOGS = {
    "plugin.jsonl": logs.plugin,
    "solr.jsonl": logs.solr,
    "vespa.jsonl": logs.vespa,
    "judgments.csv": logs.quepid,
    "qrels.txt": logs.trec,
    "featureset.json": lambda _: json.dumps(logs.FEATURE_SET),
}
"""What the engines of the pages on logs have written, by the names of the files."""


@pytest.fixture
def small_searches(monkeypatch):
    """Larger searches than 200 evaluations take a few generations of a few individuals, and no forest many trees.

    So what a page prints of a search with at most 200 evaluations is what its reader gets.
    Only the command line has fewer documents: what a page prints of data in Python is so for whoever types it.
    """
    from pymoo import optimize

    arguments, minimize = staged_search.search_arguments, optimize.minimize
    boosted, read = lambda_mart.boosted_trees, sources.MadeData.read

    def few(name, stage, algorithm):
        settings = stage.settings
        if settings.population * settings.generations > 200:
            less = {"population": min(settings.population, 12), "generations": min(settings.generations, 3)}
            stage.settings = settings.model_copy(update=less)
        return arguments(name, stage, algorithm)

    def few_generations(problem, algorithm, termination=None, **others):
        kind, most = termination
        return minimize(problem, algorithm, (kind, min(most, {"n_gen": 3, "n_eval": 100}[kind])), **others)

    def few_documents(data, fold, folders):
        few = {"n_queries": min(data.n_queries, 100), "n_documents": min(data.n_documents, 20)}
        return read(data.model_copy(update=few), fold, folders)

    def few_trees(train, n_trees, *others):
        return boosted(train, min(n_trees, 5), *others)

    searched, made = searches.search, searches.SearchStudy.__init__

    def few_seeds(study, *arguments, seeds, **others):
        made(study, *arguments, seeds=min(seeds, 7), **others)

    def few_evaluations(problem, algorithm, termination, **others):
        kind, most = termination
        return searched(problem, algorithm, (kind, min(most, 100)), **others)

    monkeypatch.setattr(evidence, "BestSubset", partial(BestSubset, max_nodes=10_000))
    monkeypatch.setattr(searches.SearchStudy, "__init__", few_seeds)
    monkeypatch.setattr(searches, "search", few_evaluations)
    for kind in (sources.DigitsData, sources.ShopData):
        monkeypatch.setattr(kind, "read", few_documents)
    monkeypatch.setattr(lambda_mart, "boosted_trees", few_trees)
    monkeypatch.setattr(staged_search, "search_arguments", few)
    monkeypatch.setattr(optimize, "minimize", few_generations)


@pytest.fixture
def own_data(tmp_path):
    """What somebody has who follows a page on own data: a table, and two folds of LETOR files."""
    data = make_planted(n_queries=30, n_documents=10, n_relevant=2, n_redundant=1, n_noise=2).data
    frame = pd.DataFrame(data.X, columns=["price", "stars", "age", "clicks", "stock"]).round(4)
    frame = frame.assign(session=[f"s{query}" for query in data.qid], bought=data.y)
    frame.loc[np.arange(len(frame)) % 7 == 0, "stars"] = np.nan
    for name in ("shop.csv", "products.csv"):
        frame.to_csv(tmp_path / name, index=False)
    world = logs.shop(30)
    for name, write in LOGS.items():
        (tmp_path / name).write_text(write(world))
    (tmp_path / "golden.jsonl").write_text(logs.plugin(logs.GOLDEN))
    (tmp_path / "golden.csv").write_text(logs.quepid(logs.GOLDEN))
    for fold, beginnings in ((1, (0, 10, 20)), (2, (10, 20, 0))):
        folder = tmp_path / "my_data" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for part, query in zip(("train", "vali", "test"), beginnings, strict=True):
            rows = range(query * 10, query * 10 + 100)
            lines = [
                f"{data.y[row]} qid:{data.qid[row]} " + " ".join(f"{f}:{v}" for f, v in enumerate(data.X[row], start=1))
                for row in rows
            ]
            (folder / f"{part}.txt").write_text("\n".join(lines))


@pytest.fixture
def run_shop(command, small_searches, undrawn, tmp_path, tmp_path_factory):
    """Run the shop; where another page has run it, its results are there, and shown."""
    here, elsewhere = tmp_path / "results" / "shop-fold1-seed0", tmp_path_factory.getbasetemp() / "shop"

    def run_shop():
        if elsewhere.exists() and not here.exists():
            shutil.copytree(elsewhere, here)
        outcome = command("run", "shop")
        shutil.copytree(here, elsewhere, dirs_exist_ok=True)
        return outcome

    return run_shop


@pytest.fixture
def follow(command, run_shop, own_data, small_searches, undrawn, tmp_path, monkeypatch):
    """Do what a page says, block by block; return what its commands print."""

    def follow(page):
        outputs = []

        def run(block):
            for line in re.sub(r"\\\n", " ", block.text).splitlines():
                line = line.strip().removeprefix("- run: ").partition(" >> ")[0]  # of a job
                if line.startswith("moerank "):
                    words = shlex.split(line, comments=True)[1:]
                    outcome = run_shop() if words == ["run", "shop"] else command(*words)
                    assert outcome.exit_code == 0, (page, block.line, line, outcome.stderr)
                    outputs.append((words[0], outcome.stdout))
            return outputs[-1][1] if outputs else ""

        pages.follow(page, PAGES[page], tmp_path, run)
        return outputs

    with sklearn.config_context():  # which pages may change
        yield follow


@pytest.mark.filterwarnings("ignore:no objective of Weighed is")  # which its page shows
@pytest.mark.parametrize("page", WITH_CODE)
def test_a_page_does_what_it_says(page, follow):
    follow(page)


@pytest.mark.filterwarnings("ignore:.* stopped at max_iter")  # of solvers with their defaults
def test_the_commands_of_the_experiments_run_on_a_small_problem(command, small_searches, undrawn, monkeypatch):
    """They name data that the tests do not have; each study is of one planted fold, with two entries of a grid."""
    tune = Ranker.tune

    def tune_little(ranker, train, validation, grid=None, *others, **named):
        entries = grid or ranker.default_grid(train)
        return tune(ranker, train, validation, entries[len(entries) // 2 :][:2], *others, **named)

    monkeypatch.setattr(Ranker, "tune", tune_little)
    text = PAGES["docs/theory/experiments.md"]
    page = re.sub(r"(?:\\|(,))\n\s*", r"\1", text)
    lines = re.findall("^moerank .*", page, re.MULTILINE)
    assert [line.split()[1] for line in lines].count("study") >= 4
    for line in lines:
        line = re.sub(r" (--workers|--folds) \S+", "", line).replace("--seeds 3", "--seeds 1")
        line = re.sub(r"--problem \S+", "--problem tiny", line)
        line = re.sub(r"(?<=study )[a-z0-9 ]+?(?= --)", "TINY --folds 1", line)
        outcome = command(*shlex.split(line)[1:])
        assert outcome.exit_code == 0, (line, outcome.stderr)


@pytest.mark.parametrize("page", ["README.md", "docs/start/own_data.md"])
def test_own_data_do_not_meet_the_results_of_the_first_command(page, follow, run_shop, tmp_path):
    assert run_shop().exit_code == 0  # as a reader has done before
    follow(page)
    assert (tmp_path / "results" / "products-fold1-seed0" / "result.json").is_file()
    solr = tmp_path / "results" / "products-fold1-seed0" / "solr-features.json"
    assert solr.is_file() == (page == "README.md")


NUMBER = re.compile(r"−?(?:\d[\d,]*)?\.?\d+")


def assert_close(excerpt, text):
    """Assert that a text has an excerpt word by word, with numbers that differ by at most .005 or a twentieth.

    Other versions of the libraries may change the last digits, and line breaks do not count.
    """
    words, all_words = (NUMBER.sub("¤", " ".join(part.split())) for part in (excerpt, text))
    assert words in all_words, f"{text}\nhas no line like\n{excerpt}"
    shown, printed = (
        [float(number.replace("−", "-").replace(",", "")) for number in NUMBER.findall(part)]
        for part in (excerpt, text)
    )
    first = all_words[: all_words.index(words)].count("¤")
    np.testing.assert_allclose(shown, printed[first : first + len(shown)], rtol=0.05, atol=0.005, err_msg=excerpt)


@pytest.mark.parametrize(
    ("problem", "pages"),
    [
        ("shop", ["README.md", "docs/index.md", "docs/start/first_front.md"]),
        ("digits", ["docs/start/reading.md"]),
        ("planted", []),
    ],
)
def test_the_pages_show_what_one_run_prints_and_stores(problem, pages, command, undrawn):
    printed = command("run", problem).stdout
    result = Result.from_json(Path(f"results/{problem}-fold1-seed0/result.json").read_text(encoding="utf-8"))
    sentence = result.verdict.sentence
    for page in pages:
        (output,) = [block.text for block in blocks(PAGES[page]) if " FEATURES" in block.text]
        assert_close(re.sub("^.* of CPU time$", "", output, flags=re.MULTILINE), printed)
    if problem == "shop":
        picture = (PROJECT / "docs/start/picture.svg").read_text(encoding="utf-8")
        parts = re.findall(r">(\d+ of \d+ features|estimated [^<]*|95 %[^<]*)<", picture)
        assert len(parts) == 3
        for part in parts:
            assert_close(part, sentence)
    if problem == "digits":
        assert_close(sentence, PAGES["docs/start/reading.md"].replace("\n> ", "\n"))
    if problem == "planted":
        assert sorted(result.names(result.best.features)) == [f"relevant {number}" for number in range(1, 6)]
        assert "USE 5 OF 30 FEATURES." in printed


@pytest.mark.parametrize(
    ("page", "sentence", "row", "column"),
    [
        ("benchmarks", r"`LinearSVC` alone takes (\S+) to (\S+) times as long", "LinearSVC", -1),
        ("benchmarks", r"`Ridge` (\S+) to (\S+) times as long", "Ridge", -1),
        ("benchmarks", r"ten features in (\S+) to (\S+) ms", "| recursion", 2),
        ("benchmarks", r"the same features in (\S+) to (\S+) s ", "| retraining", 2),
        ("benchmarks", r"ranker trains (\S+) to (\S+) times faster than", "| linear |", 3),
        ("benchmarks", r"500 components (\S+) to (\S+) times faster", ", 500 |", 3),
        ("theory/kernels", r"`LinearSVC` takes (\S+) to (\S+) ms for a", "LinearSVC", 3),
        ("theory/kernels", r"L-BFGS (\S+) to (\S+) ms for a", "L-BFGS", 3),
    ],
)
def test_sentences_on_speed_have_the_numbers_of_the_tables(page, sentence, row, column):
    text = PAGES["docs/benchmarks.md"]
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and row in line]
    values = np.array([float(line[column].replace(",", "")) for line in cells])
    said = re.search(sentence, " ".join(PAGES[f"docs/{page}.md"].split()))
    scale = 1000 if row == "| recursion" else 1  # seconds in the table, milliseconds in the sentence
    np.testing.assert_allclose([float(number) for number in said.groups()], np.sort(values * scale)[[0, -1]], rtol=0.06)


def test_a_page_that_is_wrong_is_noticed(follow, monkeypatch):
    for text in (
        "```python\nprint(1 + 1)\n```\n\n<!-- compared -->\n```text\n3\n```\n",
        "```python\nundefined\n```\n",
        "```sh\nmoerank run nothing\n```\n",
        "# NAME\n\n```toml\n# a.toml\nname = 1\n```\n```sh\nmoerank run a.toml\n```\n",
    ):
        monkeypatch.setitem(PAGES, "wrong", text)
        with pytest.raises((AssertionError, NameError)):
            follow("wrong")
    skipped = "<!-- not run: it would fail -->\n```python\nundefined\n```\n```sh\npip install nothing\n```\n"
    monkeypatch.setitem(
        PAGES, "wrong", skipped + "```python\nprint(2.0)\n```\n\n<!-- compared -->\n```text\n2...\n```\n"
    )
    assert follow("wrong") == []


def test_no_link_from_a_page_is_dead():
    for page, text in PAGES.items():
        without_code = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", without_code):
            made = any(part in link for part in ("made/", "gallery/")) and page.startswith("docs/")
            if not made and not re.match(r"https?://", link):
                assert (PROJECT / page).parent.joinpath(link).exists(), (page, link)


def test_the_readme_counts_the_solvers():
    count = re.search(r"\[More than (\d+) solvers\]", PAGES["README.md"])
    assert int(count[1]) == (len(solvers()) - 1) // 10 * 10


def test_the_version_is_the_same_everywhere():
    assert f"\nversion: {VERSION}\n" in (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+?),? ", PAGES["CHANGELOG.md"], re.MULTILINE)
    assert newest is not None
    assert newest[1] == VERSION
