import json

import pytest

pytestmark = pytest.mark.usefixtures("undrawn")

CSV = "session,bought,price,stars\na,2,4,1\na,0,2,\na,0,3,1\nb,0,8,1\n"
LETOR = "2 qid:1 1:4 2:1\n0 qid:1 1:2 2:1\n0 qid:2 1:8 2:1\n"


def described(outcome):
    assert outcome.exit_code == 0, outcome.stderr
    return json.loads(outcome.stdout)


def test_a_table_is_described_as_init_would_read_it(command, tmp_path):
    (tmp_path / "shop.csv").write_text(CSV.replace("bought", "Relevance").replace("session", "qid"))
    outcome = command("data", "describe", "shop.csv", "--json")
    (counts,) = described(outcome)
    assert (counts["documents"], counts["queries"], counts["features"], counts["pairs"]) == (4, 2, 2, 2)
    assert (counts["labels"], counts["missing_by_feature"]) == ({"0": 3, "2": 1}, {"stars": 1})
    told = [
        "label: 'Relevance', by its name",
        "query: 'qid', by its name",
        "missing values, first in 'stars', become 0",
    ]
    assert outcome.stderr.splitlines() == told
    shown = command("data", "describe", "shop.csv")
    assert ["missing", "values", "1"] in [line.split() for line in shown.stdout.splitlines()]
    (tmp_path / "shop.csv").write_text(CSV)
    refused = command("data", "describe", "shop.csv")
    assert refused.exit_code == 2
    assert "the relevance labels? Name it by moerank init --label, such as one of bought, price" in refused.stderr


def test_obstacles_to_an_export_and_identical_documents_are_pointed_out_once(command, tmp_path):
    rows = "".join(f"{query},1,2,\n{query},0,1,3\n{query},0,1,3\n" for query in range(20))
    (tmp_path / "own.csv").write_text(f"query,label,a,b\n{rows}")
    (tmp_path / "own.toml").write_text(
        'name = "own"\n[data]\nsource = "table"\nfile = "own.csv"\nlabel = "label"\nquery = "query"\n'
        'normalize = "query"\nmissing = "query-min"\nsplit = {}\n'
    )
    said = command("data", "describe", "own.toml").stdout.splitlines()
    assert sum(line.startswith("No export: the features are scaled per query") for line in said) == 1
    assert sum(line.startswith("No export: the rule 'query-min' for missing values") for line in said) == 1
    assert sum(line.startswith("Elasticsearch and OpenSearch refuse values below 0") for line in said) == 0
    assert sum(line.startswith("No ranker can order identical documents of a query") for line in said) == 1


def test_features_below_0_are_named_before_an_export_refuses_them(command, tmp_path):
    rows = "".join(f"{q},{y},{x + q},{y - 0.5}\n" for q in range(12) for y, x in ((1, 2), (0, 3), (0, 1), (1, 5)))
    (tmp_path / "own.csv").write_text(f"query,label,a,cosine\n{rows}")
    named = "refuse values below 0, which these features have in training: 'cosine'. Add a constant"
    assert named in command("data", "describe", "own.csv").stdout
    (tmp_path / "own.toml").write_text(
        'name = "own"\n[data]\nsource = "table"\nfile = "own.csv"\nlabel = "label"\nquery = "query"\n'
        'normalize = "minmax"\nsplit = {}\n[feature_selection]\npopulation = 4\ngenerations = 2\n'
    )
    outcome = command("run", "own.toml", "--out", "r")
    assert outcome.stdout.count(named) == 1, outcome.stdout
    assert named in command("export", "r", "--format", "opensearch").stderr


def test_folders_of_tables_and_of_folds(command, tmp_path):
    for fold in (1, 2):
        folder = tmp_path / "set" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for part in ("train", "vali", "test"):
            (folder / f"{part}.csv").write_text(CSV.replace("session,bought", "qid,label") + "c,0,1,1\n" * fold)
    asked = ("data", "describe", "set", "--json")
    outcome = command(*asked)
    assert [part["documents"] for part in described(outcome)] == [5, 5, 5]
    assert outcome.stderr.splitlines()[0] == "fold 1 of 2; choose another with --fold"
    assert [part["documents"] for part in described(command(*asked, "--fold", 2))] == [6, 6, 6]
    assert "set/Fold3" in command(*asked, "--fold", 3).stderr


def test_a_letor_file_and_a_problem_are_described_as_they_are_read(command, tmp_path):
    (tmp_path / "own.txt").write_text(LETOR + "2 qid:3 1:NULL 2:1\n")
    (counts,) = described(command("data", "describe", "own.txt", "--json"))
    assert (counts["pairs"], counts["constant_features"], counts["missing_values"]) == (1, ["2"], 1)
    (tmp_path / "own.txt").write_text("".join(LETOR.replace("qid:", f"qid:{n}") for n in range(5)))
    (tmp_path / "own.toml").write_text(
        'name = "own"\n[data]\nsource = "letor"\nfile = "own.txt"\nsplit = {folds = 5}\nnormalize = "query"\n'
    )
    parts = described(command("data", "describe", "own.toml", "--fold", 2, "--json"))
    assert [part["queries"] for part in parts] == [6, 2, 2]
    assert {part["scaling"] for part in parts} == {"query"}
    assert described(command("data", "describe", "planted", "--json"))[0]["queries"] == 600
    assert "unknown problem 'onw'" in command("data", "describe", "onw").stderr
