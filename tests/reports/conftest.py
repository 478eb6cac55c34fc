import pytest

from moerank.reports.page import html_report
from moerank.reports.report import Report


@pytest.fixture(scope="session")
def report(tiny_study):
    return Report(tiny_study)


@pytest.fixture(scope="session")
def page(report):
    return html_report(report)
