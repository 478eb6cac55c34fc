import numpy as np
import pandas as pd
import pytest
from scipy import stats

from moerank.statistics import holm
from moerank.studies.comparison import against_reference, fewest_cells, hypervolume_pairs, query_pairs
from moerank.studies.results import Results


def test_every_pair_is_compared_as_with_a_reference(results):
    table = query_pairs(results, "MAP")
    assert list(zip(table["solver"], table["other"], strict=True)) == [
        (a, b) for i, a in enumerate(results.solvers) for b in results.solvers[i + 1 :]
    ]
    for reference in results.solvers:
        expected = against_reference(results, reference, "MAP").set_index("solver")
        for row in table[table["other"] == reference].itertuples():
            for name in ("difference", "error", "wins", "ties", "losses", "p"):
                assert getattr(row, name) == expected.loc[row.solver, name]
    assert table["holm"].tolist() == holm(table["p"]).tolist()
    assert (table["n"] == len(np.concatenate(list(results.query_values("MAP")["fsmrank"].values())))).all()


def test_pairs_are_compared_on_the_folds_that_both_have(results):
    one = {"mofsrank": 1, "fsmrank": 2}
    part = Results(r for r in results if r.fold == one.get(r.solver, r.fold))
    table = query_pairs(part, "MAP").set_index(["solver", "other"])
    assert ("fsmrank", "mofsrank") not in table.index
    assert table.loc[("mofsrank", "greedy-rankrls"), "n"] == len(results.query_values("MAP")["mofsrank"][1])
    assert query_pairs(Results([results[0]]), "MAP").empty


def quality(**values):
    """Hypervolumes by solver, fold by fold with three seeds each."""
    rows = [
        {"solver": solver, "fold": 1 + cell // 3, "seed": cell % 3, "hypervolume": value}
        for solver, numbers in values.items()
        for cell, value in enumerate(numbers)
        if value is not None
    ]
    return pd.DataFrame(rows).sample(frac=1.0, random_state=0)  # in any order


def test_hypervolumes_are_compared_cell_by_cell():
    """Of b one cell is missing: its value would reverse the sum of the ranks if cells were confused."""
    rng = np.random.default_rng(0)
    a, b, c = rng.random((3, 9))
    b[3], c[:] = np.nan, a + np.linspace(0.01, 0.09, 9)
    table = hypervolume_pairs(quality(a=a, b=[None if np.isnan(v) else v for v in b], c=c), ["a", "b", "c"])
    table = table.set_index(["solver", "other"])
    kept = np.arange(9) != 3
    expected = {("a", "b"): (a - b)[kept], ("a", "c"): a - c, ("b", "c"): (b - c)[kept]}
    for pair, d in expected.items():
        row = table.loc[pair]
        assert (row["n"], row["wins"], row["losses"]) == (len(d), (d > 0).sum(), (d < 0).sum())
        assert row["difference"] == pytest.approx(d.mean())
        assert row["p"] == stats.wilcoxon(d, method="exact").pvalue
    assert table.loc[("a", "c"), "p"] == 2 / 2**9
    assert table["holm"].tolist() == holm(table["p"]).tolist()


def test_pairs_with_too_few_cells_are_not_tested_and_adjust_nobody():
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 9))
    few = [*rng.random(6), None, None, None]
    table = hypervolume_pairs(quality(a=a, b=b, few=few), ["a", "b", "few"]).set_index(["solver", "other"])
    assert table["n"].tolist() == [9, 6, 6]
    assert table["p"].notna().tolist() == table["holm"].notna().tolist() == [True, False, False]
    assert table["holm"].iloc[0] == table["p"].iloc[0]
    assert table["difference"].notna().all()


def test_searches_without_a_common_cell_are_no_pair():
    """Of four searches two have seven cells in common, too few for six pairs, and enough for the one that there is."""
    a, b = np.random.default_rng(2).random((2, 7))
    nobody = [None] * 7
    cells = quality(a=a, b=b, c=[*nobody, 0.5], d=[*nobody, None, 0.5])
    (row,) = hypervolume_pairs(cells, ["a", "b", "c", "d"]).itertuples()
    assert (row.n, row.p) == (7, stats.wilcoxon(a - b, method="exact").pvalue)


@pytest.mark.parametrize("n_pairs", [1, 2, 3, 10, 45, 120, 1275])
def test_the_fewest_cells_are_those_with_which_one_pair_can_be_told_apart(n_pairs):
    n = fewest_cells(n_pairs)
    assert n_pairs * stats.wilcoxon(np.arange(1.0, n + 1), method="exact").pvalue <= 0.05
    assert n_pairs * stats.wilcoxon(np.arange(1.0, n), method="exact").pvalue > 0.05
