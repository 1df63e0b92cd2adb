"""One server without Spark per file, for the real clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.server import Millstream


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    """A server for the tests of one file."""
    with Millstream(settings={"maintenance_engine": "embedded", "spark_enabled": False}) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of a file to stay together, as each file starts its own server and client."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.slow)
