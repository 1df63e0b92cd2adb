"""One server without Spark for the real clients of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rig.server import Millstream


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    """A server of the file's own."""
    with Millstream(settings={"maintenance_engine": "embedded", "spark_enabled": False}) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each file starts a server of its own, and its client."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.slow)
