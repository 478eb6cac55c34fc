"""FSMRank against sub-gradients on its problem: how fast both come down (Lai et al., 2013, Figure 5).

    python plots/fsmrank_descent.py [--data DIR]

Draws `fsmrank-descent-mq2008.png` and `fsmrank-descent-ohsumed.png` beside this file, from the first fold's training
queries, at lambda1 = lambda2 = 1e-3. The sub-gradients take the best of three first steps.
"""

import argparse
from pathlib import Path

from moerank.figures.descent import descent_figure
from moerank.figures.style import save_figure
from moerank.rankers import FSMRank
from moerank.selectors import FSMRankSubgradient
from moerank.studies.problem import load_problem

STEPS = 400
LAMBDA = 1e-3
ETA0 = (0.3, 1.0, 3.0)


def main() -> None:
    """Draw both data sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with MQ2008/ and OHSUMED/, else MOERANK_DATA")
    data = parser.parse_args().data
    for name in ("mq2008", "ohsumed"):
        train, _, _ = load_problem(name).load_fold(1, data)
        given = dict(X=train.X, y=train.y, qid=train.qid)
        minimum = FSMRank(LAMBDA, LAMBDA, tol=1e-13, max_iter=20_000).fit(**given).objectives_.min()
        ours = FSMRank(LAMBDA, LAMBDA, tol=0.0, max_iter=STEPS).fit(**given)
        others = [FSMRankSubgradient(LAMBDA, LAMBDA, eta0, STEPS).fit(**given) for eta0 in ETA0]
        best = min(others, key=lambda solver: solver.objectives_.min())
        curves = {"FSMRank": ours.objectives_, f"Sub-gradient, first step {best.eta0:g}": best.objectives_}
        save_figure(descent_figure(curves, minimum), Path(__file__).with_name(f"fsmrank-descent-{name}.png"))


if __name__ == "__main__":
    main()
