"""What a study comes to: the solver that validation chooses on each problem, and how sure its advantage is."""

from __future__ import annotations

from math import isnan

from moerank.analysis.choice import Choice, chosen_solver
from moerank.analysis.results import NoResultsError
from moerank.reports.content import Section, p_value
from moerank.reports.report import Report
from moerank.runs.problem import Problem
from moerank.verdict import ENOUGH, LEVEL, detected

__all__ = ["verdict"]


def verdict(report: Report) -> Section:
    """Return the answer on each problem, what it rests on, and how much of the study is finished."""
    section = Section("Verdict")
    for problem in report.problems:
        results = report.results.of(problem.name)
        try:
            choice = chosen_solver(results)
        except NoResultsError as error:
            section.paragraphs.append(f"{problem.name}: {error}, so that there is no verdict.")
            continue
        section.paragraphs += [_answer(problem, choice, results.metric), _grounds(choice, results.metric)]
    if report.n_missing:
        section.paragraphs.append(
            f"{len(report.results)} of {len(report.study.cells())} runs are finished; what is said here may change "
            "with the others."
        )
    return section


def _answer(problem: Problem, choice: Choice, metric: str) -> str:
    """Return which solver, how many features, against what, and how sure."""
    loss = choice.loss
    spread = "" if isnan(loss["error"]) else f" ± {loss['error']:.4f}"
    change = f"{'−' if loss['difference'] < 0 else '+'}{abs(loss['difference']):.4f}{spread}"
    finding = detected(loss["difference"], loss["p"])
    found = "no difference is detected" if finding == "none" else f"a {finding} is detected"
    few = ", too few to tell" if loss["queries"] < ENOUGH else ""
    equivalent = "is" if loss["p_equivalent"] < LEVEL else "is not"
    return (
        f"{problem.name}: {choice.solver}, with {choice.n_features:.1f} of {loss['n_allowed']} features. "
        f"Against {loss['against'] or 'the same ranker'} with all of them its {metric} changes by {change} on "
        f"{loss['queries']:,} test queries{few}: {found} ({_p(loss['p'])}), and equivalence within "
        f"{loss['margin']:g} {equivalent} shown ({_p(loss['p_equivalent'])})."
    )


def _grounds(choice: Choice, metric: str) -> str:
    """Return how it was chosen, how it stands among the others, and what test values would have chosen."""
    n_selecting, n_folds = 1 + len(choice.others), len(choice.folds)
    folds = f"{n_folds} folds, after seeds" if n_folds > 1 else "one fold"
    among = f"among {n_selecting} solvers that select features" if n_selecting > 1 else "as the only one that selects"
    spread = "" if isnan(choice.error) else f" ± {choice.error:.4f} over folds"
    said = [
        f"Chosen {among}, by the mean {metric} of validation queries on {folds}. On test queries it has "
        f"{choice.value:.4f}{spread}."
    ]
    if compared := choice.better + choice.worse + choice.undecided:
        said.append(
            f"Of {compared} other solvers, with rankers on all features, the test queries show {choice.worse} to be "
            f"worse and {choice.better} to be better; {choice.undecided} are undecided (paired t tests at {LEVEL}, "
            "Holm)."
        )
    if choice.best_on_test != choice.solver:
        said.append(
            f"With test values in sight one would take {choice.best_on_test}: that choice would be optimistic, and is "
            "only named for comparison."
        )
    return " ".join(said)


def _p(p: float) -> str:
    shown = p_value(p).text
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"
