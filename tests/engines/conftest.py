"""The engines that the tests of this folder ask: each is started once, or its tests are skipped with the reason."""

import make_golden
import pytest
import started


def pytest_collection_modifyitems(items):
    for item in items:
        if {"solr", "opensearch", "vespa"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("engine")


@pytest.fixture(scope="session")
def solr(tmp_path_factory):
    """Solr with the documents of the shop."""
    try:
        with started.server("solr") as address:
            yield make_golden.Solr(address, tmp_path_factory.mktemp("shop"))
    except started.UnavailableError as reason:
        pytest.skip(f"no Solr: {reason}")


@pytest.fixture(scope="session")
def opensearch():
    """The address of a node of OpenSearch without the plug-in, which Maven does not serve."""
    try:
        with started.server("opensearch") as address:
            yield address
    except started.UnavailableError as reason:
        pytest.skip(f"no OpenSearch: {reason}")


@pytest.fixture(scope="session")
def vespa():
    """The class path of Vespa's own parser, importer and evaluator."""
    try:
        return started.class_path("vespa")
    except started.UnavailableError as reason:
        pytest.skip(f"no Vespa: {reason}")
