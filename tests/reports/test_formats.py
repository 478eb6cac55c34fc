import re

import pandas as pd
from helpers.changes import replace

from moerank.reports.rendering import latex, latex_report
from moerank.reports.study_report import p_text
from moerank.runs.solver import NamedSolver
from moerank.studies.comparison import compare_solvers


def test_a_small_p_is_not_printed_as_nothing():
    assert [p_text(p) for p in (1e-9, 0.00051, 0.25)] == ["< 0.001", "0.001", "0.250"]


def test_latex_has_the_same_tables_and_draws_no_figure(report, shown, monkeypatch):
    monkeypatch.setattr("moerank.reports.study_report.FIGURES", None)
    tex = latex_report(report)
    for table in (table for section in shown for table in section.tables):
        for row in table.texts.itertuples(index=False):
            assert latex(row[-1]).removeprefix("-") in tex
    n_tables = sum(len(section.tables) for section in shown)
    assert tex.count(r"\begin{longtable}") == tex.count(r"\end{longtable}") == n_tables
    assert r"\textbf{" in tex


def test_latex_escapes_what_it_reads_as_commands():
    assert latex(r"50 % of {x_1} & $y^2$ ~ #3 \ ±") == (
        r"50 \% of \{x\_1\} \& \$y\textasciicircum{}2\$ \textasciitilde{} \#3 \textbackslash{} $\pm$"
    )
    assert latex("[a]\n*") == r"{[}a{]} {*}"


def unescaped(tex):
    """LaTeX without the commands of this package's own."""
    return re.sub(r"\\([A-Za-z]+\*?|.)", "", tex)


def test_latex_of_hostile_names_is_balanced(report, tiny_study, report_of):
    specs = [
        NamedSolver(name=solver.name, parameters={**solver.parameters, "x": "} $ & %\n\\\\"})
        for solver in tiny_study.solvers
    ]
    labels = dict(zip((solver.label for solver in tiny_study.solvers), specs, strict=True))
    results = []
    for result in report.results:
        names = [f"}}{{\\input{{x}} % & # $ ^ _ ~ [{number}]" for number in range(len(result.feature_names))]
        results.append(replace(result, feature_names=names, solver=labels[result.solver].label))
    tex = latex_report(report_of(results, solvers=specs))
    assert r"\input" not in tex
    body = "\n".join(unescaped(tex).splitlines()[1:])
    depth = 0
    for sign in body:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    assert depth == 0
    assert body.count("$") % 2 == 0
    assert not set("%#_~") & set(body)
    tables = re.findall(r"begin\{longtable\}\{([^\n]*)\}\n(.*?)\\end\{longtable\}", tex, re.DOTALL)
    assert len(tables) == tex.count(r"\begin{longtable}") > 5
    for columns, rows in tables:
        n_columns = len(re.sub(r">\{\\raggedright\\arraybackslash\}p\{[^}]*\}", "p", columns))
        for row in rows.partition(r"\endlastfoot")[2].splitlines()[1:]:
            assert len(re.findall(r"(?<!\\)&", row)) == n_columns - 1


def test_the_table_of_pairs_holds_every_test_of_every_problem(report, report_of):
    both = [*report.results, *(replace(result, problem="other") for result in report.results)]
    problems = [replace(problem, name=name) for problem in report.problems for name in ("tiny", "other")]
    pairs = report_of(both, problems=problems).pairs
    assert pairs.columns.tolist()[:5] == ["problem", "measure", "solver", "other", "n"]
    counts = pairs.groupby(["problem", "measure"], sort=False).size().to_dict()
    assert counts == {("tiny", "NDCG@10"): 10, ("other", "NDCG@10"): 10}
    mine = pairs[pairs["problem"] == "other"].reset_index(drop=True)
    expected = compare_solvers(report.results, "test NDCG@10").frame
    pd.testing.assert_frame_equal(mine.drop(columns=["problem", "measure"]), expected)
    assert report_of(both[:1]).pairs.columns.tolist() == pairs.columns.tolist()
