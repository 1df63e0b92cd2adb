"""Tests of which a run has a sample, and all with ``--whole``."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, Final

import pytest

#: Engines of a test whose views over engine switches stand for Spark's.
ENGINES: Final = ("embedded", pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.whole)))


def sample(values: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """The values of a test's parameter, or tuples of several, of which those that are not ``chosen`` run with
    ``--whole`` only."""
    return [value if value in chosen else _whole(value if isinstance(value, tuple) else (value,)) for value in values]


def _whole(values: tuple[Any, ...]) -> Any:
    return pytest.param(*values, marks=pytest.mark.whole)
