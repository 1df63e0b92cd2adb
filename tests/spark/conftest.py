"""One Spark driver for all of these tests; tests that end it start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from executor.spark.engine import SparkEngine
from tests.executor.separating import everywhere as everywhere


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """A ready engine with two cores."""
    engine = SparkEngine(tmp_path_factory.mktemp("spark"), master="local[2]", driver_memory="1g")
    ready = engine.process.wait_ready(180)
    assert ready, engine.status()
    yield engine
    engine.close()
