import json

CSV = "session,bought,price,stars\na,2,4,1\na,0,2,\na,0,3,1\nb,0,8,1\n"
LETOR = "2 qid:1 1:4 2:1\n0 qid:1 1:2 2:1\n0 qid:2 1:8 2:1\n"


def described(outcome):
    assert outcome.exit_code == 0, outcome.stderr
    return json.loads(outcome.stdout)


def test_a_table_is_described_with_what_is_missing(command, tmp_path):
    (tmp_path / "shop.csv").write_text(CSV)
    asked = ("data", "describe", "shop.csv", "--label", "bought", "--query", "session")
    (counts,) = described(command(*asked, "--missing", "query-min", "--json"))
    assert (counts["documents"], counts["queries"], counts["features"], counts["pairs"]) == (4, 2, 2, 2)
    assert counts["missing_by_feature"] == {"stars": 1}
    shown = command(*asked, "--missing", "0")
    assert ["missing", "values", "1"] in [line.split() for line in shown.stdout.splitlines()]
    assert command(*asked).stderr.splitlines()[-1] == "missing values, first in 'stars', become 0.0"
    assert command(*asked, "--missing", "query-worse").stderr.strip().endswith("did you mean 'query-worst'?")


def test_usual_names_are_taken_and_told(command, tmp_path):
    (tmp_path / "shop.csv").write_text(CSV.replace("bought", "Relevance").replace("session", "qid"))
    outcome = command("data", "describe", "shop.csv", "--missing", "1", "--json")
    assert described(outcome)[0]["labels"] == {"0": 3, "2": 1}
    assert outcome.stderr.splitlines()[:2] == ["label: 'Relevance', by its name", "query: 'qid', by its name"]
    (tmp_path / "shop.csv").write_text(CSV)
    refused = command("data", "describe", "shop.csv")
    assert refused.exit_code == 2
    assert "which column holds the relevance labels? Name it by --label, such as one of bought, price" in refused.stderr


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
    assert sum(line.startswith("No ranker can order identical documents of a query") for line in said) == 1


def test_folders_of_tables_and_of_folds(command, tmp_path):
    for fold in (1, 2):
        folder = tmp_path / "set" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for part in ("train", "vali", "test"):
            (folder / f"{part}.csv").write_text(CSV.replace(",,", ",1,").replace("2,\n", "2,5\n") + "c,0,1,1\n" * fold)
    asked = ("data", "describe", "set", "--label", "bought", "--query", "session", "--json")
    outcome = command(*asked)
    assert [part["documents"] for part in described(outcome)] == [5, 5, 5]
    assert outcome.stderr.splitlines()[0] == "fold 1 of 2; choose another with --fold"
    assert [part["documents"] for part in described(command(*asked, "--fold", 2))] == [6, 6, 6]
    assert "--fold 3: set has folds 1 to 2" in command(*asked, "--fold", 3).stderr


def test_a_folder_without_validation_part_is_described_with_one_that_is_drawn(command, tmp_path):
    (tmp_path / "set").mkdir()
    for part, n_queries in (("train", 10), ("test", 3)):
        lines = "".join(f"{row % 2} qid:{row // 2} 1:{row}\n" for row in range(2 * n_queries))
        (tmp_path / "set" / f"rank.{part}").write_text(lines)
    outcome = command("data", "describe", "set", "--json")
    assert [part["queries"] for part in described(outcome)] == [8, 2, 3]
    assert (
        "no validation part: a fifth of the training queries is drawn, as by split = {validation = 0.2}"
        in outcome.stderr
    )


def test_a_letor_file_is_described(command, tmp_path):
    (tmp_path / "own.txt").write_text(LETOR)
    (counts,) = described(command("data", "describe", "own.txt", "--json"))
    assert (counts["pairs"], counts["constant_features"]) == (1, ["2"])
    (tmp_path / "own.txt").write_text("2 qid:1 1:NULL\n")
    assert [command("data", "describe", "own.txt", *words).exit_code for words in ((), ("--missing", "0"))] == [2, 0]


def test_a_problem_is_described_as_it_is_read(command, tmp_path):
    (tmp_path / "own.txt").write_text("".join(LETOR.replace("qid:", f"qid:{n}") for n in range(5)))
    (tmp_path / "own.toml").write_text(
        'name = "own"\n[data]\nsource = "letor"\nfile = "own.txt"\nsplit = {folds = 5}\nnormalize = "query"\n'
    )
    parts = described(command("data", "describe", "own.toml", "--fold", 2, "--json"))
    assert [part["queries"] for part in parts] == [6, 2, 2]
    assert {part["scaling"] for part in parts} == {"query"}
    assert described(command("data", "describe", "planted", "--json"))[0]["queries"] == 60
    refused = command("data", "describe", "own.toml", "--missing", 0)
    assert refused.exit_code == 2
    assert "--missing is for data files; in a problem, set it in the problem file" in refused.stderr
    assert "unknown problem 'onw'" in command("data", "describe", "onw").stderr


def write_problems(folder, **splits):
    """Write a table of 20 queries, and a problem for each split of it."""
    rows = "".join(f"q{row // 4},{row % 2},{row % 5},{row % 3}\n" for row in range(80))
    (folder / "own.csv").write_text("query,label,a,b\n" + rows)
    for name, split in splits.items():
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\n[data]\nsource = "table"\nfile = "own.csv"\nlabel = "label"\nquery = "query"\n'
            f"split = {split}\n"
        )


def test_a_study_runs_all_folds_that_each_problem_has(command, tmp_path):
    write_problems(tmp_path, one="{}", seven="{folds = 7}", too="{seed = 3}")
    asked = ("study", "one.toml", "seven.toml", "too.toml", "--solvers", "rankrls", "--out", "s", "--json")
    outcome = command(*asked)
    assert outcome.exit_code == 0, outcome.stderr
    cells = json.loads(outcome.stdout)["cells"]
    folds = {name: [cell["fold"] for cell in cells if cell["problem"] == name] for name in ("one", "seven", "too")}
    assert folds == {"one": [1], "seven": [1, 2, 3, 4, 5, 6, 7], "too": [1]}
    assert command(*asked).exit_code == 0  # and nothing runs again
    refused = command(*asked, "--folds", "1,2")
    assert "one has folds 1 to 1, not 2" in refused.stderr
