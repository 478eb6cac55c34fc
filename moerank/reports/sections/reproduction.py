"""How to get the same results again."""

from __future__ import annotations

from moerank.reports.content import Section, Table, text
from moerank.reports.report import Report, enumeration
from moerank.runs.problem_files import shipped_problems

__all__ = ["reproduction"]


def reproduction(report: Report) -> Section:
    """Return the commands, the versions and the machine that the results come from, and when they were written."""
    versions: dict[str, set[str]] = {}
    for result in report.results:
        for name, version in result.versions.items():
            versions.setdefault(name, set()).add(version)
    table = Table(
        "versions", "Versions of the libraries that the results come from, and the machine.", ["library", "version"]
    )
    table.rows.extend([text(name), text(", ".join(sorted(found)))] for name, found in versions.items())
    own = [problem.name for problem in report.study.problems if problem.name not in shipped_problems()]
    files = f" Put the path of its problem file in place of {enumeration(own)}." if own else ""
    return Section(
        "How to reproduce",
        [
            "Every run draws from a seed that is derived from the names of its problem, fold and solver and the "
            "number of its seed, so that with these versions the same command gives the same results, on any "
            f"number of processes.{files}",
            *_written(report),
        ],
        [table],
        code="\n".join(report.study.commands()),
    )


def _written(report: Report) -> list[str]:
    """Return the sentence on when the files of the results were written."""
    days = report.study.days()
    if not days:
        return []
    span = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
    return [f"The files of the results were written {span} (UTC). Seconds are those of the machine below."]
