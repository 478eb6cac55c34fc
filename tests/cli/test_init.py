"""From a table of a shop to a run, by the problem file that moerank init writes."""

import os
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moerank.data import RankingData, fit_scaling
from moerank.runs.draft import draft_problem, leak_remarks
from moerank.runs.problem import load_problem

pytestmark = pytest.mark.usefixtures("undrawn")

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


@pytest.mark.filterwarnings("ignore:shop.csv, training. NDCG@10 is the same for any order")
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
    repeated = "run holds a run on older data or by another version of moerank; running it again"
    assert repeated in command(*again).stderr
    for table in ("moved.csv", "linked.csv"):  # other tables with an older time
        Path(table).write_text(shop.read_text())
        os.utime(table, (0, 0))
        Path(table).rename(shop) if table == "moved.csv" else (shop.unlink(), shop.symlink_to(table))
        assert repeated in command(*again).stderr
    assert command(*again).stderr == "run already holds the finished run (--again repeats it)\n"


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


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_of_parquet_files_are_no_features_although_they_look_like_numbers(tmp_path, kind):
    columns = {"session": pa.array(list("aabbcc"), kind), "bought": [1, 0] * 3, "code": pa.array(list("123456"), kind)}
    pq.write_table(pa.table({**columns, "price": [0.1, 0.2, 0.4, 0.3, 0.9, 0.8]}), tmp_path / "shop.parquet")
    draft = draft_problem(tmp_path / "shop.parquet", label="bought")
    assert (draft.label, draft.query, draft.left_out) == ("bought", "session", {"code": "it holds texts"})


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
        "error: shop.csv: which column holds the relevance labels? Name it by moerank init --label, such as one of "
        "bought, clicked\n"
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
    draft = draft_problem(parts, label="bought").read()[0]
    assert (draft.path, "split" in draft.text) == (tmp_path / "parts.toml", False)
    draft.path.write_text(draft.text)
    assert load_problem(draft.path).metric.gain == "linear"
    assert load_problem(draft.path, {"data.overlap": "allow"}).load_fold(1)[0].n_queries == 20


ROWS = "".join(f"{n % 3},q{n // 6},{n * 7 % 11},{n * 5 % 7}\n" for n in range(240))


@pytest.mark.parametrize(
    ("head", "change", "message"),
    [
        (
            "label,query,f,g",
            ("2,q", "yes,q"),
            "line 4: the label 'yes' in .* give the label of each text, such as labels =",
        ),
        (
            "label,query,f,g",
            ("2,q", "0.5,q"),
            r"line 4: the label 0.5 in .*; give limits, such as labels = \[0.25, 0.5\]",
        ),
        ("label,query,f,g", ("2,q", ",q"), "line 4: the label in the column 'label' is missing"),
        ("label,query,f,g", ("q3,", ","), "line 20: no query id"),
        ("label,query,f,g", ("1,q4,", "1,q0,"), "query q0 begins again"),
        ("label,query,f,f", ("", ""), "two columns are called 'f'"),
        ("label,query,f,g", ("1,q", "0,q"), None),
        ("label,query,f,g", ("q", "q9"), None),
        ("0,1,2,3", ("", ""), "the first line must be a header with the names of all columns; add one"),
        ("label,query,f,g,h", ("", ""), "line 2: 4 fields, but the header names 5 columns"),
    ],
)
def test_a_problem_that_cannot_be_run_is_not_written(command, tmp_path, head, change, message):
    (tmp_path / "t.csv").write_text(f"{head}\n{ROWS.replace(*change) if change[0] else ROWS}")
    outcome = command("init", "t.csv")
    assert (outcome.exit_code, (tmp_path / "t.toml").exists()) == ((2, False) if message else (0, True)), outcome.stderr
    assert message is None or re.search(message, outcome.stderr)


def test_ids_and_values_of_later_are_told_apart(tmp_path):
    (tmp_path / "t.csv").write_text("query,label,price,brandId,order_value\n" + "1,0,2,3,4\n1,1,3,4,5\n" * 2)
    left_out = draft_problem(tmp_path / "t.csv").left_out
    assert {name: reason.split("; ")[0] for name, reason in left_out.items()} == {
        "brandId": "its name says that it holds ids",
        "order_value": "its name says that it is known only after the ranking",
    }


def test_odd_cells_late_gaps_names_and_labels(command, tmp_path):
    rows = [f"{'EC'[n % 2]},q{n // 8},{n % 7},{n % 5},true,{n % 3}\n" for n in range(21_000)]
    rows[3], rows[30] = rows[3].replace(",3,3,", ",3,1'000,"), rows[30].replace(",2,0,", ",2,5%,")
    rows[-1] = "C,zz,,1,,1\n"
    (tmp_path / "t.csv").write_text("esci,session,a,b,c,nClicks\n" + "".join(rows))
    outcome = command("init", "t.csv", "--label", "esci", "--query", "session", "--labels", "E=3,C=1")
    assert outcome.exit_code == 0, outcome.stderr
    cells = """line 5 holds "1'000", line 32 holds '5%', which is not a number; 19,998 of 20,000 rows hold numbers"""
    assert f"left out: 'b', {cells}" in outcome.stderr
    assert "left out: 'nClicks', its name says that it is known only after the ranking" in outcome.stderr
    assert f'"b",  # {cells}' in (tmp_path / "t.toml").read_text()
    train = load_problem("t.toml", {"data.overlap": "allow"}).load_fold(1)[0]
    assert (train.feature_names, set(train.y.tolist()), train.missing) == (("a", "c"), {1, 3}, 0.0)
    for wrong in ("E=3,C", "E=x", "2,1"):
        assert command("init", "t.csv", "--labels", wrong).exit_code == 2


def test_a_feature_that_knows_the_label_is_named(command, tmp_path):
    rng = np.random.default_rng(0)
    rows = ["srch_id,price,stars,gross,rate,booked\n"]
    for query in range(60):
        chosen = rng.integers(6)
        for document in range(6):
            booked = int(document == chosen)
            rate = 10.0 ** rng.normal(3 * booked, 1) if rng.random() < 0.97 else 1e6
            rows.append(
                f"{query},{rng.random():.3f},{rng.integers(5)},{'120.5' if booked else 'NULL'},{rate},{booked}\n"
            )
    (tmp_path / "x.csv").write_text("".join(rows))
    sentence = "'gross' alone orders every query perfectly: is it known before the user chooses?"
    assert sentence in command("init", "x.csv", "--label", "booked").stderr
    assert sentence in command("data", "describe", "x.toml").stdout
    small = ("--set", "comparison.trees=0", "--set", "feature_selection.generations=2")
    run = command("run", "x.toml", "--out", "r", *small)
    assert run.stderr.count(sentence) == 1
    for text in (run.stdout, command("run", "x.toml", "--out", "r", *small).stdout):  # a finished run says it again
        assert f"Caution: {sentence}" in " ".join(text.split())
        assert "Next: if that feature is known only afterwards, add it to exclude in [data]" in " ".join(text.split())
    (tmp_path / "x.toml").write_text(
        (tmp_path / "x.toml").read_text().replace("missing =", 'exclude = ["gross"]\nmissing =')
    )
    better = r"'rate' alone ranks better than all features together \(NDCG@10 \.\d+ against \.\d+\): is it known before"
    assert re.search(better, command("data", "describe", "x.toml").stdout)
    assert "'gross'" not in command("data", "describe", "x.toml").stdout


@pytest.mark.parametrize("between", [0.0, 100.0])  # with 100, "standard" leaves little spread within queries
@pytest.mark.parametrize("kind", ["minmax", "standard", "query", "none"])
def test_a_feature_that_all_together_outrank_is_no_leak_whatever_its_spread(kind, between):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(60), 20)
    X = np.c_[rng.gamma(2, 2, 1200), rng.random((1200, 3)), np.exp(rng.normal(0, 1.5, (1200, 3)))]
    hidden = X[:, 0] / 5 + 0.5 * X[:, 1] + 0.4 * X[:, 2] + rng.normal(0, 0.3, 1200)
    y = np.digitize(hidden, np.quantile(hidden, [0.5, 0.8, 0.95]))
    X[:, :4] += between * rng.random((60, 4))[qid]
    raw = RankingData(X, y, qid)
    assert leak_remarks(fit_scaling(raw, kind).apply(raw)) == []


def test_the_name_of_a_file_adds_no_key(shop):
    path = shop.rename(shop.with_name("shop.csv\n[search]\nmargin = 0.9\n#.csv"))
    content = tomllib.loads(draft_problem(path).text)
    assert content["data"]["file"] == path.name
    assert "search" not in content


def rows_of_queries(n_queries=40, n_documents=8):
    draw = np.random.default_rng(4)
    for query in range(n_queries):
        for _ in range(n_documents):
            x = draw.random(3)
            yield query, f"{query},{int(x[0] + draw.normal(0, 0.3) > 0.5)},{x[0]:.4f},{x[1]:.4f},{x[2]:.4f}\n"


QUICK = [
    f"--set={setting}"
    for setting in ("feature_selection.generations=2", "feature_selection.population=6", "comparison.trees=0")
]


def written_parts(folder, part_of):
    """Write tables of three parts, to which the rows are dealt by a function of query and row; return the commands."""
    folder.mkdir()
    texts = dict.fromkeys(("train", "vali", "test"), "qid,label,a,b,c\n")
    for number, (query, row) in enumerate(rows_of_queries()):
        for part in part_of(query, number):
            texts[part] += row
    for part, text in texts.items():
        (folder / f"{part}.csv").write_text(text)
    run = ("run", f"{folder.name}.toml", "--out", f"r-{folder.name}", *QUICK)
    return ("init", folder.name), ("data", "describe", f"{folder.name}.toml"), run


@pytest.mark.filterwarnings("ignore:.*is the same for any order")
def test_rows_dealt_at_random_are_said_by_every_command(command, tmp_path):
    dealt = np.random.default_rng(0).choice(["train", "train", "vali", "test"], 320)
    for call in written_parts(tmp_path / "rows", lambda query, number: [dealt[number]]):
        outcome = command(*call)
        assert outcome.exit_code == 0, outcome.stderr
        said = (outcome.stdout if "describe" in call else outcome.stderr).splitlines()
        assert any(
            re.match(r"3\d of 3\d test queries are also in the training part by their ids", line) for line in said
        )


@pytest.mark.filterwarnings("ignore:.*is the same for any order", "ignore:.*by all their rows")
def test_the_same_queries_in_two_parts_are_said_and_refused_by_run(command, tmp_path):
    def part_of(query, number):
        return ("train", "vali", "test", "train")[query % 4 : query % 4 + (1 if query < 20 else 2)]

    init, describe, run = written_parts(tmp_path / "same", part_of)
    sentence = "5 of 15 test queries are also in the validation part by all their rows, such as 21. Keep all rows of a"
    assert sentence in command(*init).stderr
    assert sentence in command(*describe).stdout
    refused = command(*run)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: fold 1: 5 of 15 validation queries are also in the training part by all")
    assert refused.stderr.endswith('in one part. Or allow it: --set data.overlap="allow"\n')
    allowed = command(*run, '--set=data.overlap="allow"')
    assert allowed.exit_code == 0 and sentence in allowed.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_that_number_the_rows_are_left_out(command, tmp_path, ending):
    names = {"Unnamed: 0": 0, "index": 3, "level_0": 5, "rowid": 7, "Row_Number": 9}
    columns = {name: np.roll(np.arange(320), shift) for name, shift in names.items()} | {"n": 17 + np.arange(320)}
    table = np.array([row.split(",") for _, row in rows_of_queries()], float)
    columns |= dict(zip(("qid", "label", "a", "b", "c"), table.T, strict=True))
    columns["id64"] = 2**60 + np.random.default_rng(0).permutation(320)
    lines = ["\n".join(map(str, values.tolist())).split() for values in columns.values()]
    lines = [",".join(columns), *map(",".join, zip(*lines, strict=True))]
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        path.write_text("\n".join(lines) + "\n")
    else:
        pq.write_table(pa.table(columns), path)
    outcome = command("init", path.name)
    for name in (*names, "n"):
        assert f"left out: {name!r}, it numbers the rows\n" in outcome.stderr
    assert re.search(
        r"left out: 'id64', (line 2|row 1) holds '1152921504606847\d+', which is an integer bey", outcome.stderr
    )
    assert load_problem("t.toml", {"data.overlap": "allow"}).load_fold(1)[0].feature_names == ("a", "b", "c")


@pytest.mark.filterwarnings("ignore:.*is the same for any order")
def test_labels_from_1_rows_that_are_counted_and_a_query_with_most_pairs_are_named(command, tmp_path):
    rows = [row for _, row in rows_of_queries(30)] + [f"x,{n % 3},{n % 7},{n % 5},0\n" for n in range(600)]
    lines = [row.split(",", 2) for row in rows]
    text = "".join(f"{query},{int(label) + 1},{n + 0.5},{x}" for n, (query, label, x) in enumerate(lines))
    (tmp_path / "t.csv").write_text("qid,label,row,a,b,c\n" + text)
    (tmp_path / "t.toml").write_text(
        'name = "t"\n[data]\nsource = "table"\nfile = "t.csv"\nsplit = {test = 0.1, seed = 1}\n'
    )
    for call in (("data", "describe", "t.toml"), ("run", "t.toml", *QUICK)):
        outcome = command(*call)
        assert outcome.exit_code == 0, outcome.stderr
        said = outcome.stdout if "describe" in call else outcome.stderr
        assert "Values of 'row' rise from row to row. If they number the rows, leave the feature out.\n" in said
        assert "No document has label 0, so those with label 1 count as relevant, too: subtract 1 from all" in said
        assert "or set the limits labels = [2, 3].\n" in said and "cautions" not in said
        assert re.search(
            r"Query x holds 120,000 of 120,\d+ preference pairs, so rankers hardly learn from others", said
        )


def test_labels_up_to_100_get_a_linear_gain_from_init_to_the_verdict(command, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((400, 3)), columns=["a", "b", "c"])
    table.insert(0, "label", (99 * (table.a + table.b) / 2).round().astype(int))
    table.insert(0, "qid", np.repeat(np.arange(40), 10))
    table.to_csv(tmp_path / "t.csv", index=False)
    assert command("init", "t.csv").exit_code == 0
    assert 'gain = "linear"' in (tmp_path / "t.toml").read_text()
    outcome = command("run", "t.toml", *QUICK)
    assert outcome.exit_code == 0, outcome.stderr
    assert "NDCG@10 (gain=linear)" in outcome.stdout
