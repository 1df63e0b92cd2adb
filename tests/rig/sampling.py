"""Tests of which a run has a sample, and all with ``--whole``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

import pytest

#: Engines of a test whose views over engine switches stand for Spark's.
ENGINES: Final = ("embedded", pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.whole)))


def sample(values: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """The values of a test's parameter, or tuples of several, of which those that are not ``chosen`` run with
    ``--whole`` only."""
    return [value if value in chosen else _whole(value if isinstance(value, tuple) else (value,)) for value in values]


def beyond(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """The tests for which others stand. ``@pytest.mark.sample(3)``: of the cases of a function, or of the tests of a
    file where its ``pytestmark`` has it, the first of every three runs without ``--whole``."""
    seen = Counter[tuple[str, ...]]()
    for item in items:
        if item.get_closest_marker("whole") is not None:
            yield item
            continue
        for node, mark in item.iter_markers_with_node("sample"):
            (every,) = mark.args
            alike = item.nodeid.partition("[")[0] if node is item else node.nodeid
            place = (alike, "spark" if item.get_closest_marker("spark") else "")
            seen[place] += 1
            if (seen[place] - 1) % every:
                yield item
                break


def _whole(values: tuple[Any, ...]) -> Any:
    return pytest.param(*values, marks=pytest.mark.whole)
