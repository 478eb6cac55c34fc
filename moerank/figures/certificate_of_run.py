"""Certificate: the training losses of a front, compared with those of the best subsets."""

import numpy as np
from matplotlib.figure import Figure

from moerank.figures.style import LINES, RING, one_panel, put_ticks
from moerank.runs.result import Result


def certificate_figure(result: Result) -> Figure:
    """Draw the training loss of each member of the front, and that of the best subsets as a line.

    If a best subset is not proved, a grey band reaches from its loss down to the lower bound.
    """
    certificate = result.certificate
    assert certificate is not None
    sizes = np.array(certificate.groups or result.sizes)
    figure, axes = one_panel(2.8)
    axes.plot(certificate.sizes, certificate.best, color="black", linewidth=1, label="best subset")
    if len(certificate.proved) < len(certificate.sizes):
        axes.fill_between(
            certificate.sizes, certificate.bounds, certificate.best, color="0.8", label="not proved"
        )
    blue = LINES["train"]["color"]
    axes.plot(sizes, certificate.losses, "o", markersize=3, color=blue, label="members")
    axes.plot(sizes[[result.chosen]], [certificate.losses[result.chosen]], label="chosen", **RING)
    axes.set(
        xlabel="Number of groups" if certificate.groups else "Number of features",
        ylabel="Training loss of RankRLS",
    )
    put_ticks(axes, nbins=5)
    figure.legend(loc="outside upper center", ncols=3, columnspacing=1.0)
    return figure
