from functools import partial

import numpy as np
import pytest

from moerank.data import UNSCALED, fit_scaling, load_fold, load_table, load_web_fold
from moerank.data.folds import deal_queries, split_queries
from moerank.runs.problem import Problem, load_problem

TABLE = "query,label,a,b\n" + "".join(f"q{row // 2:02},{row % 2},{row},{row * row}\n" for row in range(40))
"""Twenty queries of two documents."""


@pytest.fixture
def problem(tmp_path, monkeypatch):
    """Write a problem file with a table [data] and read it, far from any other data."""
    monkeypatch.delenv("MOERANK_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()

    def read(data, overrides=None):
        path = tmp_path / "mine" / "mine.toml"
        path.write_text(f'name = "mine"\n[data]\n{data}\n')
        return load_problem(path, overrides)

    return read


OWN = 'source = "table"\nfile = "own.csv"\nlabel = "label"\nquery = "query"\n'


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("{}", [split_queries]),
        ("{validation = 0.3, test = 0.2, seed = 1}", [partial(split_queries, validation=0.3, test=0.2, seed=1)]),
        ("{folds = 7, seed = 2}", [partial(deal_queries, fold=fold, n_folds=7, seed=2) for fold in range(1, 8)]),
    ],
)
def test_the_queries_of_one_file_are_drawn_or_dealt(problem, tmp_path, split, expected):
    (tmp_path / "mine" / "own.csv").write_text(TABLE)
    (tmp_path / "mine" / "own.txt").write_text("".join(f"{n % 2} qid:{n // 2} 1:{n} 2:{n * n}\n" for n in range(40)))
    table = load_table(tmp_path / "mine" / "own.csv", label="label", query="query")
    for data, names in ((OWN, ("a", "b")), ('source = "letor"\nfile = "own.txt"\n', ("1", "2"))):
        read = problem(f"{data}split = {split}")
        assert read.n_folds() == len(expected)
        for fold, parts in enumerate(expected, start=1):
            for found, part in zip(read.load_fold(fold), parts(table), strict=True):
                assert np.array_equal(found.X, part.X)
                assert np.array_equal(found.offsets, part.offsets)
                assert found.feature_names == names


def test_a_fold_is_looked_for_where_commands_look(tmp_path, monkeypatch):
    for folder in ("letor/Set/Fold1", "data/Set/Fold1", "data/Set/Fold2"):
        (tmp_path / folder).mkdir(parents=True)
        for part in ("train", "vali", "test"):
            (tmp_path / folder / f"{part}.txt").write_text("1 qid:1 1:0.5\n0 qid:1 2:0.5\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOERANK_DATA", str(tmp_path / "letor"))
    assert load_fold("Set/Fold1")[0].name == str(tmp_path / "letor/Set/Fold1/train.txt")
    assert load_fold("Set/Fold2")[0].name == "data/Set/Fold2/train.txt"
    assert load_fold("data/Set/Fold1")[0].name == "data/Set/Fold1/train.txt"  # what is named itself comes first
    with pytest.raises(FileNotFoundError, match=r"^Set/Fold3 does not exist"):
        load_fold("Set/Fold3")


def test_a_folder_without_validation_part_gets_one_from_the_training_queries(problem, tmp_path):
    for name, first in (("rank.train", 0), ("rank.test", 20)):
        lines = "".join(f"{row % 2} 1:{row + first}\n" for row in range(40))
        (tmp_path / "mine" / name).write_text(lines)
        (tmp_path / "mine" / f"{name}.query").write_text("2\n" * 20)
    asked = 'source = "letor"\nfolder = "."\noverlap = "allow"\n'
    with pytest.raises(FileNotFoundError, match=r"no validation part.*, or split = \{validation = 0.2\} in a problem"):
        problem(asked).load_fold(1)
    drawn = problem(asked + "split = {validation = 0.25, seed = 3}")
    assert drawn.n_folds() == 1
    assert Problem.model_validate(drawn.model_dump(mode="json")).data == drawn.data
    for found, part in zip(drawn.load_fold(1), load_fold(tmp_path / "mine", validation=0.25, seed=3), strict=True):
        assert np.array_equal(found.X, part.X)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (OWN, r"\[data\] file needs split = \{validation = 0\.2, test = 0\.2\} or split = \{folds = 5\}"),
        ('source = "letor"\nfolder = "x"\nsplit = {folds = 5}', "if LETOR files lack a validation part, split = "),
        (OWN.replace("file =", "folder =") + "split = {validation = 0.2}", r"\[data\] split is for one file"),
        ('source = "letor"', r"\[data\] give folder, which holds Fold1, Fold2 and so on .*, or give file"),
        (OWN + "split = {folds = 5, test = 0.1}", r"\[data\.split\] folds deals the queries into equal parts"),
        (OWN + "split = {folds = 2}", r"\[data\.split\] folds must be at least 3, not 2"),
        (OWN + 'split = {}\nnormalize = "query"\nscaled = "query"', r'\[data\] scaled = "query" says that the'),
    ],
)
def test_what_cannot_be_is_refused_by_key(problem, data, sentence):
    with pytest.raises(ValueError, match=sentence):
        problem(data)


def letor_fold(folder, value):
    folder.mkdir(parents=True)
    for part in ("train", "vali", "test"):
        (folder / f"{part}.txt").write_text(f"1 qid:1 1:{value}\n0 qid:1 1:0\n")


LETOR = 'source = "letor"\nfolder = "SET"\noverlap = "allow"'


@pytest.mark.parametrize("n_folds", [1, 3, 11])
def test_folds_are_counted(problem, tmp_path, n_folds):
    for fold in range(1, n_folds + 1):
        letor_fold(tmp_path / "data" / "SET" / f"Fold{fold}", fold)
    letor_fold(tmp_path / "data" / "SET" / f"Fold{n_folds + 2}", 0)  # after a gap
    read = problem(LETOR)
    assert read.n_folds() == n_folds
    assert [read.load_fold(fold)[2].X[0, 0] for fold in range(1, n_folds + 1)] == list(range(1, n_folds + 1))
    with pytest.raises(ValueError, match=f"fold must be at most {n_folds}, not {n_folds + 1}"):
        read.load_fold(n_folds + 1)


def test_data_are_looked_for_beside_the_file_first(problem, tmp_path, monkeypatch):
    for data, name in ((OWN + "split = {}", r"own\.csv"), (LETOR, "SET")):
        read = problem(data)
        with pytest.raises(FileNotFoundError, match=rf"no {name} in {tmp_path}/mine, data; correct its name, or"):
            read.load_fold(1)
    places = [tmp_path / "data", tmp_path / "named", tmp_path / "given", tmp_path / "mine"]
    monkeypatch.setenv("MOERANK_DATA", str(tmp_path / "named"))
    for value, place in enumerate(places, start=1):
        letor_fold(place / "SET" / "Fold1", value)
        if value != 3:
            assert read.load_fold(1)[0].X[0, 0] == value
    assert read.load_fold(1, tmp_path / "given")[0].X[0, 0] == 4
    shipped = load_problem("mq2008", {"data.folder": "SET", "data.overlap": "allow"})
    assert shipped.load_fold(1, tmp_path / "given")[0].X[0, 0] == 3


@pytest.mark.parametrize("kind", ["query", "minmax", "standard"])
def test_a_scaling_is_fitted_to_the_training_part(problem, tmp_path, kind):
    (tmp_path / "mine" / "own.csv").write_text(TABLE)
    raw = problem(OWN + "split = {}").load_fold(1)
    scaled = problem(OWN + f'split = {{}}\nnormalize = "{kind}"').load_fold(1)
    scaling = fit_scaling(raw[0], kind)
    for before, after in zip(raw, scaled, strict=True):
        assert before.scaling == UNSCALED
        assert after.scaling == scaling
        assert np.array_equal(after.X, scaling.apply(before).X)


def test_tables_keep_their_missing_values_and_precision(problem, tmp_path):
    (tmp_path / "mine" / "own.csv").write_text(TABLE.replace(",7,", ",,").replace(",9,", ",NULL,"))
    parts = problem(OWN + 'split = {folds = 4}\nmissing = "query-worst"\ndtype = "float32"').load_fold(2)
    assert {part.X.dtype.name for part in parts} == {"float32"}
    assert {part.missing for part in parts} == {"query-worst"}
    assert sum(part.n_missing[0] for part in parts) == 2
    with pytest.raises(ValueError, match=r"own\.csv, line 9: the value of 'a' is missing"):
        problem(OWN + "split = {folds = 4}").load_fold(2)


def test_web_data_have_the_queries_that_are_asked_for():
    problem = load_problem("web", {"data.queries": 10, "data.dtype": "float64"})
    assert problem.n_folds() == 5
    for part, expected in zip(problem.load_fold(3), load_web_fold(3, n_queries=10, dtype=np.float64), strict=True):
        assert np.array_equal(part.X, expected.X)
        assert part.X.dtype == np.float64
    assert load_problem("web").load_fold(1)[0].X.dtype == np.float32
    with pytest.raises(ValueError, match=r"--set data\.queries: \[data\] queries must be at least 5, not 4"):
        load_problem("web", {"data.queries": 4})


def test_the_cells_of_a_study_read_a_fold_once(problem, tmp_path, monkeypatch):
    letor_fold(tmp_path / "mine" / "SET", 1.0)
    read = problem(LETOR)
    first, again = read.load_fold(1), read.load_fold(1)
    assert again[0].X is first[0].X and again[0].label_runs is not first[0].label_runs
    (tmp_path / "mine" / "SET" / "train.txt").write_text("1 qid:1 1:12.5\n0 qid:1 1:0\n")
    assert read.load_fold(1)[0].X.tolist() == [[12.5], [0.0]]
    monkeypatch.setattr("moerank.runs.sources.LARGEST_FOLD", 0)
    assert read.load_fold(1)[0].X is not read.load_fold(1)[0].X
