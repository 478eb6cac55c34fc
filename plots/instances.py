"""Instances: the share of the pairs, documents or queries that the members of the fronts were trained on.

    python plots/instances.py STUDY [--out FOLDER]

Draws `instances-PROBLEM.png` for each problem of the study (Cheng et al., 2018, Table 5).
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

problems, results, out = opened(__doc__)
for problem in problems:
    save_figure(FIGURES["instances"].draw(results, problem), out / f"instances-{problem.name}.png")
