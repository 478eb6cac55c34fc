"""The features that the members of a front use."""

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from moerank.figures.style import CHOSEN, one_panel, put_title
from moerank.runs.result import Result

# Largest number of features in the figure, the most used ones.
MAX_ROWS = 50

MAX_TICKS = 12


def features_figure(result: Result) -> Figure:
    """Draw the features that a front uses: an image if they are its pixels, else a matrix features × members."""
    uses = np.zeros((len(result.feature_names), len(result.front)), bool)
    for column, member in enumerate(result.front):
        uses[member.features, column] = True
    frame = pd.DataFrame(uses, index=result.feature_names, columns=result.sizes)
    if result.grid is None:
        return draw_features(frame, result.chosen)
    return draw_pixels(frame, result.chosen, result.grid)


def draw_features(uses: pd.DataFrame, chosen_member: int) -> Figure:
    """Draw one row per feature, the most used first, and one column per member; the chosen one is black."""
    counts = uses.to_numpy().sum(axis=1)
    n_used = int((counts > 0).sum())
    rows = np.argsort(-counts, kind="stable")[: min(n_used, MAX_ROWS)]
    cells = uses.to_numpy()[rows].astype(int)
    cells[:, chosen_member] *= 2
    n_rows, n_members = cells.shape
    figure, axes = one_panel(0.9 + 0.13 * n_rows)
    colours = ListedColormap(["white", "#56B4E9", "black"])
    axes.imshow(cells, cmap=colours, vmin=0, vmax=2, aspect="auto")
    # White lines between the cells make them countable.
    axes.vlines(np.arange(n_members + 1) - 0.5, -0.5, n_rows - 0.5, color="white", linewidth=0.6)
    axes.hlines(np.arange(n_rows + 1) - 0.5, -0.5, n_members - 0.5, color="white", linewidth=0.6)
    ticks = np.arange(0, n_members, -(-n_members // MAX_TICKS))
    axes.set_xticks(ticks, uses.columns[ticks].map(str))
    axes.set_yticks(range(n_rows), uses.index[rows], fontsize=6)
    axes.tick_params(length=0)
    axes.set_ylabel(f"{n_rows} most used features" if n_used > n_rows else "Feature")
    figure.supxlabel("Members by number of features (black: chosen)", fontsize=8)
    put_title(figure, "Features that the members of the front use")
    return figure


def draw_pixels(uses: pd.DataFrame, chosen_member: int, grid: tuple[int, int]) -> Figure:
    """Draw the share of members that use each pixel in grey, and mark the pixels of the chosen member."""
    n_rows, n_columns = grid
    figure, axes = one_panel(1.0)
    figure.set_figheight(0.82 * figure.get_figwidth() * n_rows / n_columns)
    shares = uses.to_numpy().mean(axis=1).reshape(grid)
    image = axes.imshow(shares, cmap="Greys", vmin=0, vmax=1)
    rows, columns = np.divmod(np.flatnonzero(uses.iloc[:, chosen_member]), n_columns)
    # The white edges are visible on black, and in grey.
    axes.plot(columns, rows, "o", color=CHOSEN, markersize=7, markeredgecolor="white")
    axes.set_xticks(range(n_columns), map(str, range(1, n_columns + 1)))
    axes.set_yticks(range(n_rows), map(str, range(1, n_rows + 1)))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)
    axes.set(xlabel="Column (dots: chosen)", ylabel="Row")
    figure.colorbar(image, ax=axes, label="Share of the front's members", shrink=0.9)
    put_title(figure, "Pixels that the members of the front use")
    return figure
