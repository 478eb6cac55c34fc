"""The front: what each number of features buys, on the data of the search and on data it has not seen."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.lettering import note_height, put_note
from moerank.figures.notes import two_of
from moerank.figures.run_figure import RunFigure
from moerank.figures.style import GREY, LINES, WIDTH, in_style
from moerank.runs.result import PARTS, RunResult

__all__ = ["FIGURE"]

_DASHES = (":", (0, (5, 1, 1, 1, 1, 1)))


def front_figure(result: RunResult) -> Figure:
    """Draw number of features against the metric, for the same members on all three parts.

    Horizontal lines are the test values of all features and of FSMRank, where they were measured; the chosen member
    stands in a grey band. Members of more objectives are points: several may have one number of features.
    """
    metric = result.metrics[0]
    joined = {"linestyle": "none"} if result.further_objectives else {}
    note = two_of(result)
    sizes = [len(member.features) for member in result.front]
    with in_style():
        figure = Figure(figsize=(WIDTH, 2.9 + note_height(note)), layout="constrained")
        axes = figure.subplots()
        for part in PARTS:
            axes.plot(
                sizes, [member.scores[part][metric] for member in result.front], label=part, **LINES[part] | joined
            )
        references = [baseline for baseline in result.baselines if baseline.name != "best single feature"]
        for baseline, dashes in zip(references, _DASHES, strict=False):
            label = f"{baseline.name} ({len(baseline.features)}), test"
            axes.axhline(baseline.scores["test"][metric], color=GREY, linewidth=0.9, linestyle=dashes, label=label)
        chosen = len(result.best.features)
        axes.axvline(chosen, color="0.87", linewidth=6, zorder=0, label=f"chosen ({chosen})")
        axes.set_xlabel("Number of features")
        axes.set_ylabel(f"{metric} (higher is better)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        figure.legend(loc="outside upper center", ncols=2, handlelength=2.6)
        put_note(figure, note)
    return figure


FIGURE = RunFigure(front_figure)
