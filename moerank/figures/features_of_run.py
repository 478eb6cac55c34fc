"""The features that the members of a front use."""

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from moerank.arrays import Mask
from moerank.figures.style import CHOSEN, WIDTH, one_panel, put_title
from moerank.runs.result import Result

# Largest number of features in the figure, the most used ones.
MOST_ROWS = 50

MOST_TICKS = 12


def features_figure(result: Result) -> Figure:
    """Draw the features that a front uses: an image if they are its pixels, else a matrix features × members."""
    used = np.zeros((len(result.feature_names), len(result.front)), bool)
    for column, member in enumerate(result.front):
        used[member.features, column] = True
    figure = _matrix(result, used) if result.grid is None else _image(result, used, result.grid)
    noun, most = (
        "features" if result.grid is None else "pixels",
        int((used.mean(axis=1) > 0.5).sum()),
    )
    chosen = f"{len(result.best.features)} of {result.n_allowed} {noun} are chosen"
    put_title(figure, f"{chosen}; {most} {noun} are in most sets of the front")
    return figure


def _matrix(result: Result, used: Mask) -> Figure:
    """Draw one row per feature, the most used first, and one column per member, the smallest first."""
    counts = used.sum(axis=1)
    rows = np.argsort(-counts, kind="stable")[: min(int((counts > 0).sum()), MOST_ROWS)]
    cells = used[rows].astype(int)
    cells[:, result.chosen] *= 2
    n_rows, n_members = cells.shape
    figure, axes = one_panel(0.9 + 0.13 * n_rows)
    axes.imshow(
        cells, cmap=ListedColormap(["white", "#56B4E9", "black"]), vmin=0, vmax=2, aspect="auto"
    )
    # White lines between the cells make them countable.
    axes.vlines(np.arange(n_members + 1) - 0.5, -0.5, n_rows - 0.5, color="white", linewidth=0.6)
    axes.hlines(np.arange(n_rows + 1) - 0.5, -0.5, n_members - 0.5, color="white", linewidth=0.6)
    ticks = np.arange(0, n_members, -(-n_members // MOST_TICKS))
    axes.set_xticks(ticks, [str(len(result.front[tick].features)) for tick in ticks])
    axes.set_yticks(range(n_rows), result.names(rows.tolist()), fontsize=6)
    axes.tick_params(length=0)
    axes.set_ylabel(f"{n_rows} most used features" if (counts > 0).sum() > n_rows else "Feature")
    figure.supxlabel("Members by number of features (black: chosen)", fontsize=8)
    return figure


def _image(result: Result, used: Mask, grid: tuple[int, int]) -> Figure:
    """Draw the share of members that use each pixel in grey, and mark the pixels of the chosen member."""
    figure, axes = one_panel(0.82 * WIDTH * grid[0] / grid[1])
    share = axes.imshow(used.mean(axis=1).reshape(grid), cmap="Greys", vmin=0, vmax=1)
    rows, columns = np.divmod(result.best.features, grid[1])
    axes.plot(
        columns, rows, "o", color=CHOSEN, markersize=7, markeredgecolor="white"
    )  # visible on black, and in grey
    axes.set_xticks(range(grid[1]), [str(number + 1) for number in range(grid[1])])
    axes.set_yticks(range(grid[0]), [str(number + 1) for number in range(grid[0])])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)
    axes.set(xlabel="Column (dots: chosen)", ylabel="Row")
    figure.colorbar(share, ax=axes, label="Share of the front's members", shrink=0.9)
    return figure
