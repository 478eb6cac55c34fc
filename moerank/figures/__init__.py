"""Figures drawn from results, one file each: `RUN_FIGURES` of one run, `FIGURES` of a study.

The file of a figure is imported only to draw it, so that ``moerank plot --help`` is fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from moerank.checks import check_choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from moerank.runs.problem import Problem, Published
    from moerank.runs.result import Result
    from moerank.studies.results import Results
    from moerank.studies.searches import SearchStudy
    from moerank.studies.study import Study


@dataclass(frozen=True)
class RunFigure:
    """A figure of one run.

    `source` is "file:function" in this package. The function takes a result, and returns a figure or its `Panels`.
    """

    source: str
    has_data: Callable[[Result], bool] = bool  # whether the result has data for the figure

    def draw(self, result: Result, paper: Mapping[str, Any] | None = None) -> Figure:
        """Draw the figure; `paper` has the arguments of `moerank.figures.style.Paper`: title, width and names."""
        return _draw(self.source, result, paper)


@dataclass(frozen=True)
class View:
    """The results of a problem that a figure shows; `solvers` is empty unless the user selects some."""

    results: Results
    published: Sequence[Published]  # results for comparison
    solvers: Sequence[str]
    selected_fold: int | None
    metric: str

    @property
    def fold(self) -> int:
        """The selected fold, by default the first fold with results."""
        return min(self.results.folds) if self.selected_fold is None else self.selected_fold

    @property
    def problem_name(self) -> str:
        """The name of the problem."""
        return self.results[0].problem


@dataclass(frozen=True)
class StudyFigure:
    """A figure of a study.

    `source` is "file:function" in this package. The function takes a view and the options that its file describes, and
    returns a figure or its `Panels`.
    """

    source: str
    section: str  # section of the reports with this figure: results, features or ablations
    takes: tuple[Literal["fold", "metric", "count"], ...] = ()  # the options that apply
    any_metric: bool = False  # True if chosen members suffice, for which studies store all metrics
    # Whether reports show the figure for these results of one problem.
    is_reported: Callable[[Results], bool] = bool

    @property
    def caption(self) -> str:
        """The caption in reports: the second paragraph of the docstring of its file."""
        file = import_module(f"{__name__}.{self.source.partition(':')[0]}")
        return " ".join((file.__doc__ or "").partition("\n\n")[2].split())

    def draw(
        self,
        results: Results,
        problem: Problem,
        *,
        solvers: Sequence[str] = (),
        fold: int | None = None,
        metric: str | None = None,
        paper: Mapping[str, Any] | None = None,
        **options: object,
    ) -> Figure:
        """Draw the figure from results; the figure's file describes further options.

        By default it shows all solvers in the order of the study, the first fold with results, and the metric of the
        error. `paper` has the arguments of `moerank.figures.style.Paper`: title, width and names. The variants of an
        ablation are named by the part that they lack.

        Raises
        ------
        NoResultsError
            If the results have no data for the figure.
        ValueError
            If a solver, fold or metric has no results, or a fold or metric does not apply.
        """
        results = results.of(problem.name)
        for name, value in (("fold", fold), ("metric", metric), ("count", options.get("count"))):
            if value is not None and name not in self.takes:
                raise ValueError(f"this figure takes no {name}; omit it")
        if metric is not None:
            metrics = results.all_metrics if self.any_metric else results.metrics
            metric = results.named_metric(metric, metrics)
        if fold is not None and fold not in results.folds:
            folds = ", ".join(map(str, results.folds))
            raise ValueError(f"fold {fold} has no finished cell; choose one of {folds}")
        results = results.among(solvers)
        names = {}
        for labels in results.ablations:
            base, *variants = labels
            for variant in variants:
                if "[" in variant:
                    names[variant] = f"{base} {labels[variant]}"
        paper = dict(paper or {})
        for name in paper.get("names", ()):
            check_choice(results.solvers, names=name)
        paper["names"] = names | paper.get("names", {})
        view = View(results, problem.published, solvers, fold, metric or results.metric)
        return _draw(self.source, view, paper, **options)


def _draw(
    source: str, data: object, paper: Mapping[str, Any] | None = None, **options: object
) -> Figure:
    from moerank.figures.panels import Panels, draw_panels
    from moerank.figures.style import Paper, in_style

    with in_style(Paper(**paper or {})):
        figure = resolve_name(f"{__name__}.{source}")(data, **options)
        return draw_panels(figure) if isinstance(figure, Panels) else figure


# The figures of one run by name.
RUN_FIGURES = {
    "certificate": RunFigure(
        "certificate_of_run:certificate_figure", lambda result: result.certificate is not None
    ),
    "convergence": RunFigure(
        "hypervolume_of_study:convergence_panels", lambda result: bool(result.convergence)
    ),
    "features": RunFigure("features_of_run:features_figure"),
    "front": RunFigure("front_of_run:front_figure"),
    "objectives": RunFigure(
        "objectives_of_study:run_objectives_panels",
        lambda result: (
            min(len(result.objectives), len(result.front)) > 1 and bool(result.further_objectives)
        ),
    ),
    "shapes": RunFigure("shapes_of_run:shapes_figure", lambda result: bool(result.shapes)),
}


# The figures of a study by name, in the order of reports, for the command line, recipes and tests.
FIGURES = {
    "ablation": StudyFigure("ablation_of_study:ablation_panels", "ablations", ("fold",)),
    "accuracy": StudyFigure("accuracy_of_study:accuracy_panels", "results", ("metric",)),
    "fronts": StudyFigure("fronts_of_study:fronts_panels", "results", ("fold",)),
    "attainment": StudyFigure("attainment_of_study:attainment_panels", "results", ("fold",)),
    "hypervolume": StudyFigure("hypervolume_of_study:hypervolume_panels", "results", ("count",)),
    "cost": StudyFigure("cost_of_study:cost_panels", "results", ("metric",), any_metric=True),
    "objectives": StudyFigure(
        "objectives_of_study:objectives_panels",
        "results",
        ("fold",),
        is_reported=lambda results: bool(results.further_objectives),
    ),
    "instances": StudyFigure("instances_of_study:instances_figure", "results"),
    "frequency": StudyFigure("frequency_of_study:frequency_figure", "features"),
    "shapes": StudyFigure(
        "shapes_of_run:shapes_of_study",
        "features",
        ("fold",),
        is_reported=lambda results: any(run.shapes for run in results),
    ),
}


def draw_study(study: Study, name: str, problem: str | None = None, **options: Any) -> Figure:
    """Draw a figure of a study by name, of a problem with this name, by default the first; see `StudyFigure.draw`."""
    check_choice(FIGURES, figure=name)
    problems = {entry.name: entry for entry in study.problems}
    problem = problem or next(iter(problems))
    check_choice(problems, problem=problem)
    return FIGURES[name].draw(study.results(), problems[problem], **options)


# The figures of a `SearchStudy` by name.
SEARCH_FIGURES = {
    "hypervolume": "hypervolume_of_study:shares_panels",
    "runtimes": "hypervolume_of_study:runtimes_panels",
    "attainment": "attainment_of_study:surfaces_panels",
    "ranks": "ranks_of_study:ranks_figure",
}


def draw_searches(
    study: SearchStudy,
    name: str = "hypervolume",
    problem: str | None = None,
    count: str = "evaluations",
    **paper: Any,
) -> Figure:
    """Draw a figure of a study of searches.

    Parameters
    ----------
    study : SearchStudy
    name : {"hypervolume", "runtimes", "attainment", "ranks"}
        Hypervolume share against evaluations; fraction of the targets that runs reach against evaluations; attainment
        surfaces of one problem, by default the first; or mean ranks over all problems.
    problem : str, optional
        By default every problem has a panel, or all problems are taken together.
    count : {"evaluations", "trained"}, default "evaluations"
        The count on the x axis of the first two figures; see `SearchStudy.frame`.
    **paper
        ``title=False``, ``width`` in millimetres and ``names``, a mapping of labels to other ones; see
        `moerank.figures.style.Paper`.
    """
    check_choice(SEARCH_FIGURES, name=name)
    check_choice(study.problems, or_none=True, problem=problem)
    return _draw(SEARCH_FIGURES[name], study, paper, problem=problem, count=count)


def available_figures(result: Result) -> dict[str, RunFigure]:
    """Return the figures for which a run has data, by name."""
    return {name: figure for name, figure in RUN_FIGURES.items() if figure.has_data(result)}
