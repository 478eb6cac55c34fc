"""What a figure shows when it is drawn."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from moerank.figures import RUN_FIGURES
from moerank.figures.style import in_style

OF_EVERY_SEARCH = [name for name, row in RUN_FIGURES.items() if row.has_data is bool or name == "convergence"]
"""The figures of a run that every search has data for, in the order of the table."""


def panels_of(figure):
    """Return the axes that are drawn; those of legends are not."""
    return [axes for axes in figure.axes if axes.axison]


def lines_of(axes):
    return {line.get_label(): line for line in axes.lines}


def texts_on_the_page(figure):
    """Return all texts that are drawn, with their boxes in pixels."""
    with in_style():
        canvas = FigureCanvasAgg(figure)
        figure.draw_without_rendering()
    beyond = []  # ticks beyond the limits of an axis exist, but are not drawn, nor those of axes that are off
    for axes in figure.axes:
        if not axes.axison:
            beyond += [*axes.get_xticklabels(), *axes.get_yticklabels()]
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)  # none where panels share them
        beyond += [label for position, label in ticks if not low <= position <= high]
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text() and text not in beyond]
    renderer = canvas.get_renderer()
    return [(text.get_text(), Text.get_window_extent(text, renderer)) for text in texts]  # without arrows


def title_of_figure(figure):
    """Return what a figure finds, without its line breaks."""
    titles = [legend.get_title() for legend in figure.legends] or [figure._suptitle]
    return " ".join(titles[0].get_text().split())


def assert_legible(figure):
    """Assert that the page is a column wide, every text is on it, and none is over another."""
    assert abs(figure.get_figwidth() - 3.4) < 1e-12
    boxes, page = texts_on_the_page(figure), figure.bbox
    assert len(boxes) > 5
    for number, (text, box) in enumerate(boxes):
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1, text
        for other, another in boxes[:number]:
            assert not box.shrunk(0.9, 0.9).overlaps(another.shrunk(0.9, 0.9)), (text, other)
