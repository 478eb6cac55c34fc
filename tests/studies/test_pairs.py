import numpy as np

from moerank.statistics import holm
from moerank.studies.results import Results, against_reference, query_pairs


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
