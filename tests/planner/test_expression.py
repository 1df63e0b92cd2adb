"""Scalars as values: a client's deeply nested text does not end the process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from catalog.values.types import BOOL, INT4
from planner.algebra.nodes import Call, Case, Cast, Literal, Scalar

ONE = Literal(1, INT4)
#: More levels than fit on a thread's C stack.
_LEVELS = 100_000


def _in_call(scalar: Scalar) -> Scalar:
    return Call("add", (scalar, ONE), INT4)


def _in_cast(scalar: Scalar) -> Scalar:
    return Cast(scalar, INT4)


def _in_case(scalar: Scalar) -> Scalar:
    return Case(((Literal(True, BOOL), scalar),), ONE, INT4)


@pytest.mark.slow
@pytest.mark.parametrize("around", [_in_call, _in_cast, _in_case])
def test_a_tree_too_deep_to_be_hashed_or_compared_is_an_error(around: Callable[[Scalar], Scalar]) -> None:
    one: Scalar = ONE
    other: Scalar = ONE
    for _ in range(_LEVELS):
        one, other = around(one), around(other)
    with pytest.raises(RecursionError):
        hash(one)
    with pytest.raises(RecursionError):
        assert one == other


@pytest.mark.parametrize("around", [_in_call, _in_cast, _in_case])
def test_equal_trees_are_one_key(around: Callable[[Scalar], Scalar]) -> None:
    assert {around(around(ONE)): "known"}[around(around(ONE))] == "known"
    assert around(ONE) != around(around(ONE))
