"""From a table of a shop to a run, by the problem file that moerank init writes."""

import os
import tomllib

import numpy as np
import pytest

from moerank.studies.draft import draft_problem
from moerank.studies.problem import load_problem

HEAD = "session,sku,title,added,in_stock,price,rating,bought\n"


@pytest.fixture
def shop(tmp_path):
    """A table of 20 sessions of five documents, with columns that are no features and a missing value."""
    rng = np.random.default_rng(0)
    rows = []
    for document in range(100):
        price, rating = rng.normal(size=2).round(3)
        row = [f"s{document // 5}", f"p{document}", "Shoe", f"2024-02-{document % 28 + 1:02}", "true"]
        rows.append([*row, price, "" if document == 7 else rating, int(price > 0.5)])
    path = tmp_path / "shop.csv"
    path.write_text(HEAD + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def test_the_file_says_what_was_guessed_and_trains_a_model_that_can_be_exported(shop, command):
    outcome = command("init", "shop.csv")
    assert (outcome.exit_code, outcome.stdout) == (0, "Wrote shop.toml. Next: moerank run shop.toml\n")
    assert outcome.stderr.splitlines() == [
        "label: 'bought', the only column with few different whole numbers",
        "query: 'session', the first column whose equal values stand together",
        "document ids: 'sku', by its name",
        "left out: 'title', line 2 holds 'Shoe', which is not a number",
        "left out: 'added', line 2 holds '2024-02-01', which is not a number",
        "missing values, first in 'rating', become 0",
    ]
    train, _, test = load_problem("shop.toml").load_fold(1)
    assert (train.feature_names, train.n_queries, test.documents[0][0]) == (("in_stock", "price", "rating"), 12, "p")
    run = command("run", "shop.toml", "--quiet", "--out", "run", "--set", "comparison.trees=0")
    assert run.exit_code == 0, run.stderr
    assert command("export", "run", "--format", "solr", "--out", "model.json").exit_code == 0
    again = ("run", "shop.toml", "--out", "run", "--set", "comparison.trees=0")
    assert command(*again).stderr == "run already holds the finished run (--again repeats it)\n"
    os.utime(shop)
    assert "run holds a run on older data or by another version of moerank; running it again" in command(*again).stderr


def test_the_first_cell_of_a_column_that_is_no_number_is_shown(shop, command):
    shop.write_text("session;title;price;bought\n" + "a;Shoe;1.5;1\n" * 3 + "a;Boot;1,5;0\n")
    said = command("init", "shop.csv", "--label", "bought", "--query", "session").stderr
    assert "besides 'bought' and 'session' there is no column of numbers" in said
    first = "'title': line 2 holds 'Shoe', which is not a number; "
    assert said.endswith(first + "'price': line 5 holds '1,5', which is not a number; 3 of 4 rows hold numbers\n")


def test_a_table_is_not_taken_for_a_problem_file_and_a_file_is_not_replaced(shop, command):
    said = command("run", "shop.csv")
    assert (said.exit_code, said.stderr) == (
        2,
        "error: shop.csv is a table, not a problem file; moerank init shop.csv writes one\n",
    )
    command("init", "shop.csv")
    again = command("init", "shop.csv")
    assert (again.exit_code, again.stderr.splitlines()[-1]) == (
        2,
        "error: shop.toml exists; edit it, or remove it and run the command again",
    )


@pytest.mark.parametrize("change", [("bought", "target"), ("session", "Query"), ("price", "y")])
def test_names_decide_before_values(shop, change):
    shop.write_text(shop.read_text().replace(*change))
    draft = draft_problem(shop)
    assert draft.label == {"target": "target", "y": "y"}.get(change[1], "bought")
    assert draft.query == {"Query": "Query"}.get(change[1], "session")


def test_what_cannot_be_guessed_is_asked_for_by_name(shop, command):
    head, *rows = shop.read_text().splitlines()
    lines = [f"{head},clicked", *(f"{row},{number % 3}" for number, row in enumerate(rows))]
    shop.write_text("\n".join(lines) + "\n")
    refused = command("init", "shop.csv")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "error: shop.csv: which column holds the relevance labels? Name it by --label, such as one of bought, clicked\n"
    )
    given = draft_problem(shop, label="clicked", exclude=["rating"])
    assert (given.label, given.left_out["rating"], given.gaps) == ("clicked", "as given", ())
    with pytest.raises(ValueError, match="unknown column 'cliked'; did you mean 'clicked'"):
        draft_problem(shop, label="cliked")
    with pytest.raises(FileNotFoundError, match=r"there is no table nowhere\.csv"):
        draft_problem("nowhere.csv")


def test_large_labels_get_the_linear_gain_and_a_folder_needs_no_split(shop, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    for part in ("train", "vali", "test"):
        (parts / f"{part}.csv").write_text(shop.read_text().replace(",1\n", ",40\n"))
    draft = draft_problem(parts, label="bought")
    assert (draft.path, "split" in draft.text) == (tmp_path / "parts.toml", False)
    draft.path.write_text(draft.text)
    assert load_problem(draft.path).metric.gain == "linear"
    assert load_problem(draft.path).load_fold(1)[0].n_queries == 20


def test_the_name_of_a_file_adds_no_key(shop):
    path = shop.rename(shop.with_name("shop.csv\n[search]\nmargin = 0.9\n#.csv"))
    content = tomllib.loads(draft_problem(path).text)
    assert content["data"]["file"] == path.name
    assert "search" not in content
