"""Ablations: the fronts of MOFSRank with all three stages, and without one of its parts.

    python plots/ablation.py STUDY [--out FOLDER]

Draws `ablation-PROBLEM.png` for each problem of the study: the fronts of one run over each other (Cheng et
al., 2018, Figures 4 to 6), and the mean error with at most k features over all folds and seeds. The study needs
`--ablate`.
"""

from recipe import opened

from moerank.figures import FIGURES
from moerank.figures.style import save_figure

FOLD = 1

problems, results, out = opened(__doc__)
for problem in problems:
    save_figure(
        FIGURES["ablation"].draw(results, problem, fold=FOLD), out / f"ablation-{problem.name}.png"
    )
