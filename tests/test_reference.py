"""The reference is made from the code, and leaves nothing out."""

import inspect
import re
import sys
from pathlib import Path
from typing import get_args

import pytest

import moerank as mr
from moerank.runs.problem import Problem
from moerank.runs.result import Result
from moerank.runs.sources import Data
from moerank.solvers import solvers

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture(scope="module", autouse=True)
def docs():
    """Let tests import the modules that make the site."""
    sys.path.insert(0, str(DOCS))
    yield
    sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def pages(docs):
    """The pages by the names of their files."""
    pytest.importorskip("numpydoc", reason="pip install '.[docs]'")
    from making import commands, keys, names, table

    return {name: text for made in (commands, keys, names, table) for name, text in made.pages().items()}


def rows(text, title):
    """The rows of the table below a title by the first cell."""
    section = text.partition(f"{title}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {line[0].strip("`"): line[1:] for line in lines}


def test_every_key_of_a_problem_file_has_its_row(pages):
    text = pages["problem_files.md"]
    shared = rows(text, "## [data], whatever the source")
    for source in get_args(get_args(Data)[0]):
        name = get_args(source.model_fields["source"].annotation)[0]
        assert {"source", *shared, *rows(text, f'## [data] with source = "{name}"')} == set(source.model_fields)
    for name, field in Problem.model_fields.items():
        if name not in ("name", "data", "published"):
            assert list(rows(text, f"## [{name}]")) == list(field.annotation.model_json_schema()["properties"])


def test_a_key_is_there_with_type_range_and_default(pages):
    text = pages["problem_files.md"]
    assert rows(text, "## [feature_selection]")["population"][:2] == ["whole number from 2", "`100`"]
    assert rows(text, "## [data] split")["folds"][0] == "whole number from 3 to 1,000"
    assert rows(text, "## [search]")["margin"][:2] == ["number above 0 and at most 1", "`0.005`"]
    assert rows(text, '## [data] with source = "digits"')["n_queries"][0] == "whole number from 5"
    assert rows(text, "## [data], whatever the source")["normalize"][1] == '`"none"`'


def test_every_public_name_is_described_once_and_every_solver_and_key_of_a_result_has_its_row(pages):
    text = "\n".join(pages.values())
    for name in set(mr.__all__) - {"__version__"}:
        assert len(re.findall(rf"\.\. auto\w+:: moerank\.{name}$", text, re.MULTILINE)) == 1, name
        assert f"`{name} <moerank.{name}>`" in pages["api.rst"], name
    for name in solvers():
        assert f"\n| `{name}`" in pages["solvers.md"]
    assert all(f"\n| `{name}` | " in pages["result_json.md"] for name in Result.model_fields)


def test_the_page_of_each_class_has_an_example_and_its_fit_and_no_method_is_described_twice(pages):
    for name in mr.__all__:
        if inspect.isclass(getattr(mr, name)):
            assert ">>> " in inspect.getdoc(getattr(mr, name)), name
        if hasattr(getattr(mr, name), "fit"):
            assert ":py:obj:`fit(X, y=None, *, qid=None, validation=None) <" in pages[f"api/{name}.rst"]
    described = re.findall(r"\.\. auto\w+:: (\S+)", "\n".join(pages.values()))
    assert len(described) == len(set(described))
    assert sum(path.endswith(".fit") for path in described) == 1


def test_examples_import_only_what_the_reference_describes(pages):
    from making import names

    for path in (DOCS / "examples").glob("*.py"):
        for module, imported in re.findall(
            r"^from (moerank\.\S+) import (.+)$", path.read_text(encoding="utf-8"), re.M
        ):
            assert set(imported.split(", ")) <= set(names.MODULES[module].split()), path


def test_every_option_of_a_command_has_its_row(pages, command):
    commands = {page[2:].partition("\n")[0]: page for name, page in pages.items() if name.startswith("commands/")}
    assert {f"moerank {name}" for name in ("run", "study", "report", "plot", "export", "data describe")} <= set(
        commands
    )
    for title, page in commands.items():
        assert f"[`{title}`]" in pages["commands.md"]
        shown = re.findall(r"(?<![\w-])--[a-z-]+", command(*title.split()[1:], "--help").stdout)
        assert set(shown) - {"--help"} <= {name.split()[0] for name in rows(page, f"# {title}")}


def test_options_stand_as_code_on_the_pages_of_commands(pages):
    for name, page in pages.items():
        if name.startswith("commands"):
            text = re.sub(r"^```.*?^```$|`+[^`]*`+", "", page, flags=re.DOTALL | re.MULTILINE)
            assert not re.search(r"(?<!\S)--[a-z]", text), name
            assert "\\[" not in page, name


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("moerank run mq2008 –data ~/letor", "–data was an option"),
        ('<a href="b.html">b</a>', "b.html is not there"),
        ('<a href="#b">b</a>', "#b is no place of that page"),
        ('<img src="https://example.org/a.png">', "loads https://example.org/a.png"),
        ('<p id="b">from 1–9, – and <code>--data</code></p><a href="#b">b</a>', None),
    ],
)
def test_the_check_of_the_site_finds(text, mistake, tmp_path):
    from making.links import mistakes

    (tmp_path / "a.html").write_text(text, encoding="utf-8")
    assert [sentence.partition("a.html")[2].lstrip(": ") for sentence in mistakes(tmp_path)] == [mistake] * bool(
        mistake
    )
