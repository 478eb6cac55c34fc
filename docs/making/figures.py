"""Figures of moerank in the gallery: their style, and those that are no figures of pyplot, which it does not see."""

import matplotlib.style
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape(block, block_vars, gallery_conf):
    """Save the figures that a block of an example made and gave a name, and return how they are shown."""
    paths = []
    for value in block_vars["example_globals"].values():
        if (
            isinstance(value, Figure)
            and not hasattr(value, "number")
            and not hasattr(value, "in_gallery")
        ):
            value.in_gallery = True
            paths.append(next(block_vars["image_path_iterator"]))
            value.savefig(paths[-1], dpi=150)
    return figure_rst(paths, gallery_conf["src_dir"])


def in_style(gallery_conf, example):
    """Draw the figures of an example in the style of the package."""
    matplotlib.style.use(["moerank.figures.figures", {"figure.figsize": (5, 3)}])
