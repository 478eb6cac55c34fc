import inspect
from pathlib import Path

import pytest

from moerank import load_model
from moerank.data import load_digits_fold, make_planted, make_web
from moerank.metrics import MAP, NDCG
from moerank.studies import sources as module
from moerank.studies.problem import load_problem, shipped_problems

VALID = """
name = "mine"
[data]
source = "letor"
folder = "MINE"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_shipped_problems_say_what_the_papers_say():
    problems = {name: load_problem(name) for name in shipped_problems()}
    of_letor = ["hp2004", "mq2007", "mq2008", "np2004", "ohsumed", "ohsumed-letor2", "td2004", "td2004-letor2"]
    assert sorted(problems) == sorted([*of_letor, "digits", "mslr", "planted", "web", "yahoo1", "yahoo2"])
    for name in problems.keys() - {"planted"}:
        stages = problems[name].instance_selection, problems[name].feature_selection, problems[name].ensemble
        generations = [25, 50, 50] if name == "digits" else [50, 100, 100]
        assert [(stage.generations, stage.population) for stage in stages] == [(n, 100) for n in generations]
        assert problems[name].metric.make() == NDCG(10, convention="letor" if name in of_letor else "usual")
        assert problems[name].backend.name == "rankrls"
    published = {name: {p.method: p for p in problems[name].published} for name in ("mq2008", "ohsumed")}
    assert published["mq2008"]["MOFSRank"].scores == {"NDCG@10": 0.2406}
    assert published["mq2008"]["MOFSRank"].features == 4.8
    assert published["mq2008"]["FSMRank"].scores.items() >= {"NDCG@10": 0.2327, "MAP": 0.4771}.items()
    assert published["ohsumed"]["RankSVM-Primal"].value("NDCG@10 (letor)") == 0.4504
    assert published["ohsumed"]["FSMRank"].features == 18.0
    # Two papers have RankSVM-Primal, with other ranks of NDCG; the first value counts.
    assert problems["ohsumed"].published_value("ranksvm-primal", "NDCG@10 (letor)") == 0.4504
    assert problems["ohsumed"].published_value("mofsrank", "NDCG@10 (letor)") is None


@pytest.mark.parametrize(
    ("section", "loader", "given"),
    [
        (module.PlantedData, make_planted, set()),
        (module.DigitsData, load_digits_fold, {"fold"}),
        (module.WebData, make_web, {"dtype"}),
    ],
)
def test_data_have_the_defaults_of_their_loader(section, loader, given):
    fields = section.model_fields
    shared = {"source", *module.DataSection.model_fields} | given
    own = {name: field.default for name, field in fields.items() if name not in shared}
    own |= {"n_queries": own.pop("queries")} if "queries" in own else {}
    parameters = inspect.signature(loader).parameters.values()
    assert own == {p.name: p.default for p in parameters if p.name not in given}


@pytest.mark.parametrize(
    ("addition", "sentence"),
    [
        ("[ensembel]\npopulation = 3", "unknown key ensembel; did you mean ensemble?"),
        ("split = {fold = 3}", "unknown key [data.split] fold; did you mean folds?"),
        ("zzz = 3", "unknown key [data] zzz"),
        ("[[published]]\nmethod='M'\nsources='x'", "unknown key [published.0] sources; did you mean source?"),
        ("[[published]]\nmethod='M'", "[published.0] source: Field required"),
        ("[metric]\nname = 'NDGC@5'", "unknown metric 'NDGC@5'; choose one of NDCG@k, P@k, Recall@k"),
        ("[search]\nobjectives = ['size']", "[search] unknown objective 'size'; choose one of features, "),
        ("[ensemble]\ngenerations = '5'", "[ensemble] generations must be an integer, not '5'"),
        ("[ensemble]\ntermination = 5", '[ensemble] termination must be ("n_gen", 50)'),
        ("x = " + "[" * 200_000, "not a TOML file: "),
        ("[[published]]\nmethod='M'\nsource='x'\nfeatures = nan", "[published.0] features: should be a finite number"),
        ("missing = inf", "[data] missing must be a finite number, "),
        (
            "missing = 'query-worse'",
            "[data] missing must be a finite number, 'query-min', 'query-mean' or 'query-worst', ",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_file_table_and_key(tmp_path, addition, sentence):
    path = write(tmp_path, VALID + addition)
    with pytest.raises(ValueError) as error:
        load_problem(path)
    assert str(error.value).startswith(f"{path}: {sentence}")


def test_missing_and_misspelt_sources(tmp_path):
    with pytest.raises(ValueError, match="data: Field required"):
        load_problem(write(tmp_path, 'name = "mine"'))
    with pytest.raises(
        ValueError,
        match="data: tag 'leter' found using 'source' does not match any of the",
    ):
        load_problem(write(tmp_path, VALID.replace("letor", "leter")))
    with pytest.raises(FileNotFoundError, match=r"unknown problem 'digts'; did you mean 'digits'\?"):
        load_problem("digts")
    for call, name in ((load_problem, "problem"), (load_model, "run")):
        with pytest.raises(ValueError, match=f"{name} must be a path, not 5"):
            call(5)
    with pytest.raises(FileNotFoundError, match=r"unknown problem 'away\.toml'; choose one of digits, "):
        load_problem("away.toml")


def test_overrides_replace_values_and_are_named_in_errors(tmp_path):
    path = write(tmp_path, VALID + "[ensemble]\npopulation = 30\n")
    problem = load_problem(
        path, {"ensemble.population": 40, "metric.name": "MAP", "instance_selection.density": [0.1, 0.2]}
    )
    assert problem.ensemble.population == 40
    assert problem.metric.make() == MAP()
    assert problem.instance_selection.density == (0.1, 0.2)
    with pytest.raises(ValueError, match=r"^--set ensemble\.popluation: unknown key .*did you mean population\?"):
        load_problem(path, {"ensemble.popluation": 40})
    with pytest.raises(ValueError, match=r"^--set metric\.name: unknown metric 'x'"):
        load_problem(path, {"metric.name": "x"})
    with pytest.raises(ValueError, match=r"^--set name\.x: name is a value, not a table"):
        load_problem(path, {"name.x": 1})


def test_problems_are_found_inside_an_installed_package(tmp_path, monkeypatch):
    package = tmp_path / "moerank"
    (package / "problems").mkdir(parents=True)
    (package / "problems" / "other.toml").write_text(VALID)
    monkeypatch.setattr("moerank.studies.sources.__file__", str(package / "runs" / "problem_files.py"))
    assert list(shipped_problems()) == ["other"]


def test_configuration_leaves_out_what_does_not_decide(tmp_path):
    plain = load_problem(write(tmp_path, VALID))
    told = load_problem(write(tmp_path, VALID + 'origin = "x"\n[[published]]\nmethod = "M"\nsource = "s"'))
    assert told.configuration() == plain.configuration()
    assert plain.configuration()["feature_selection"]["generations"] == 100
    assert "name" not in plain.configuration()


@pytest.mark.parametrize(
    "folder", ["/etc", "../SET", "SET/../../SET", "C:/SET", "\\\\\\\\host\\\\share", "..\\\\SET", "\\u0000"]
)
def test_a_file_does_not_say_where_to_read_beyond_the_place_of_data(tmp_path, folder):
    path = write(tmp_path, VALID.replace('"MINE"', f'"{folder}"'))
    with pytest.raises(ValueError, match=rf"^{path}: \[data\] folder must lie below the folder of the data, not "):
        load_problem(path)
