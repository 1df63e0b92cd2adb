"""Fixtures of the embedded engine's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from executor.embedded.engine import EmbeddedEngine


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedEngine]:
    found = EmbeddedEngine()
    yield found
    found.close()
