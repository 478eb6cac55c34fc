import copy

import pytest
from helpers.further_objective import with_cost

from moerank.reports.page import html_report
from moerank.reports.report import Report


@pytest.fixture(scope="session")
def report(tiny_study):
    return Report(tiny_study)


@pytest.fixture(scope="session")
def page(report):
    return html_report(report)


@pytest.fixture(scope="session")
def priced_report(tiny_study):
    """A report of the same results with a further objective."""
    study = copy.copy(tiny_study)
    results = [with_cost(result) for result in tiny_study.results()]
    study.results = lambda: results
    return Report(study)
