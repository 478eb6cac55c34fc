import pytest

from moerank.studies.problem import load_problem
from moerank.studies.solver import RUN_ARGUMENTS, Solver

VALID = 'name = "mine"\n[data]\nsource = "planted"\n'


@pytest.mark.parametrize("name", sorted(RUN_ARGUMENTS))
def test_what_belongs_to_a_run_is_refused_wherever_a_method_is_described(name, tmp_path):
    path = tmp_path / "mine.toml"
    sentence = rf"{name} belongs to a run, not to a method; .*"
    for table in ("solver", "backend"):
        path.write_text(f'{VALID}[{table}.parameters]\nalpha = 1.0\n{name} = "warm"\n')
        with pytest.raises(ValueError, match=rf"^{path}: \[{table}\] parameters: {sentence}"):
            load_problem(path)
    path.write_text(VALID)
    with pytest.raises(ValueError, match=rf"^--set solver\.parameters\.{name}: .*{sentence}"):
        load_problem(path, {f"solver.parameters.{name}": "warm"})
    with pytest.raises(ValueError, match=rf"^solver 'mofsrank\[{name}=1\]': {sentence}"):
        Solver.parse(f"mofsrank[{name}=1]")
    with pytest.raises(ValueError, match=sentence):
        Solver(name="mofsrank", parameters={name: 1})


@pytest.mark.parametrize("text", ["x = nan", "x = {y = [1.0, inf]}", "x = 2020-01-01"])
def test_parameters_that_no_result_could_keep_are_refused(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(f"{VALID}[solver.parameters]\n{text}\n")
    reason = "x must be a text, a switch, a finite number, or a table or list of such"
    with pytest.raises(ValueError, match=rf"^{path}: \[solver\] parameters: {reason}"):
        load_problem(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fsmrank[lambda1]", "not of the form key=value"),
        ("fsmrank[lambda1=1,lambda1=2]", "lambda1 is given twice"),
        ("fsm rank", "write NAME or NAME"),
    ],
)
def test_texts_that_are_no_solver_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Solver.parse(text)
