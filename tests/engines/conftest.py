"""The engines that the tests of this folder ask, each started once."""

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
    with started.server("solr") as address:
        yield make_golden.Solr(address, tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def opensearch():
    """The address of a node of OpenSearch without the plug-in, which Maven does not serve."""
    with started.server("opensearch") as address:
        yield address


@pytest.fixture(scope="session")
def vespa():
    """The class path of Vespa's own parser, importer and evaluator."""
    return started.class_paths()["vespa"]
