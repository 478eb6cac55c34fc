import copy

import pytest
from helpers.further_objective import with_cost

from moerank.figures import FIGURES
from moerank.reports.rendering import html_report
from moerank.reports.study_report import Report, sections
from moerank.studies.results import Results
from moerank.studies.study import Study


@pytest.fixture(scope="session")
def report(tiny_study):
    return Report(tiny_study)


@pytest.fixture(scope="session")
def shown(report):
    """The sections of the report."""
    return list(sections(report))


@pytest.fixture(scope="session")
def heard():
    """What was heard of the progress of the page."""
    return []


@pytest.fixture(scope="session")
def page(report, heard):
    return html_report(report, lambda step, share, text: heard.append((step, round(share, 3), text)))


@pytest.fixture(scope="session")
def report_of(tiny_study):
    """Make a report of some results, as if the study had no others, and of further attributes of the study."""

    def make(results, reference=None, **attributes):
        study = copy.copy(tiny_study)
        shown = Results(results, study.ablations)
        study.__class__ = type("Other", (Study,), {"results": lambda _: shown, **attributes})
        return Report(study, reference)

    return make


@pytest.fixture(scope="session")
def priced_report(report_of, report):
    """A report of the same results with a further objective."""
    return report_of([with_cost(result) for result in report.results])


@pytest.fixture(scope="session")
def priced_page(priced_report):
    with pytest.MonkeyPatch.context() as patch:  # the other figures take seconds
        two = {name: FIGURES[name] for name in ("accuracy", "objectives")}
        patch.setattr("moerank.reports.study_report.FIGURES", two)
        return html_report(priced_report)
