"""The commands that measure costs, as they are typed."""

import csv

import pytest

from moerank.studies.problem import load_problem

FEATURES = """
[bm25]
group = "title"
[tf]
group = "title"
[stars]
vespa = "attribute(stars)"
[age]
"""


@pytest.fixture
def moerank(command, tmp_path):
    (tmp_path / "features.toml").write_text(FEATURES)
    return lambda line: command(*line.split())


def measure(path, n_open=0):
    """Fill in the times of an engine whose costs are 2, 1, 0.5 and 0, and 6 for the group."""
    with path.open() as file:
        rows = list(csv.reader(file))
    for row in rows[2 : len(rows) - n_open]:
        bm25, tf, stars, _ = map(int, row[3:])
        row[2] = 10 + 2 * bm25 + tf + stars / 2 + 6 * (bm25 | tf) + 3 * (row[1] == "2")
    with path.open("w") as file:
        csv.writer(file).writerows(rows)


def test_from_the_design_to_the_table_of_a_problem(moerank, tmp_path):
    done = moerank("data design features.toml --runs 16 --rounds 2")
    assert done.exit_code == 0
    assert "wrote measurements.csv: 16 runs in 2 rounds of 4 features; fill in the column time" in done.stderr
    measure(tmp_path / "measurements.csv", n_open=2)
    done = moerank("data costs measurements.csv")
    assert done.exit_code == 0
    assert "30 runs, 2 not measured; without any feature a run takes 10" in done.stderr
    assert "group title" in done.stdout
    assert "The cost of age is not resolved: at most" in done.stdout
    with (tmp_path / "features.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["group"] for row in rows] == ["title", "title", "", ""]
    assert [float(row["cost"]) for row in rows] == pytest.approx([2, 1, 0.5, 0], abs=1e-9)
    assert float(rows[0]["group_cost"]) == pytest.approx(6)
    assert len((tmp_path / "features-errors.csv").read_text().splitlines()) == 6
    table = "bm25,tf,stars,age,label,qid\n" + "".join(
        f"{k},{k % 3},{k % 2},{k % 5},{k % 2},{k // 4}\n" for k in range(24)
    )
    (tmp_path / "shop.csv").write_text(table)
    (tmp_path / "shop.toml").write_text(
        'name = "shop"\n[data]\nsource = "table"\nfile = "shop.csv"\nlabel = "label"\nquery = "qid"\n'
        'split = {validation = 0.2, test = 0.2}\n[features]\ntable = "features.csv"\nat_most = {title = 1}\n'
    )
    assert load_problem("shop.toml").load_fold(1)[0].costs.total == pytest.approx(9.5)


def test_known_costs_of_features_are_taken_from_a_table(moerank, tmp_path):
    moerank("data design features.toml")
    measure(tmp_path / "measurements.csv")
    (tmp_path / "own.csv").write_text("name,cost\ntf,1\nbm25,2\nage,0\nstars,0.5\n")
    done = moerank("data costs measurements.csv --own own.csv --out all.csv")
    assert done.exit_code == 0
    assert (tmp_path / "all.csv").read_text().splitlines()[1] == "bm25,2,title,6"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "data design features.toml --runs 5",
            "error: features.toml: the costs of 4 features, 1 groups and a constant",
        ),
        ("data design features.toml --out features.toml", "features.toml is there, and may hold measurements; choose"),
        ("data design empty.toml", "error: empty.toml: no feature; write a table for each, as [price]"),
        ("data costs few.csv", "error: few.csv: these runs do not tell the costs of feature a, feature b apart"),
    ],
)
def test_what_cannot_be_measured_is_refused(moerank, tmp_path, line, message):
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "few.csv").write_text("run,round,time,a,b\n1,1,2,0,0\n2,1,3,1,1\n3,1,4,1,1\n")
    done = moerank(line)
    assert done.exit_code == 2
    assert message in done.stderr.replace("\n", " ")
