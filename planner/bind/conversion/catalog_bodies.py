"""Bodies of catalog functions: SQL over system relations that takes a call's place.

Owns: ``bind_body`` for a body that is an expression, and ``arguments_of``, under which any body is bound. This is what
PostgreSQL's planner does with functions of language SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from catalog.values.types import SqlType
from planner.algebra.nodes import Literal, Scalar
from planner.bind.lookup.relations import of_system
from planner.bind.state.environment import Binding, Environment, Level, Scope
from planner.parse.parser import parse

#: Deep enough for a body that calls others; a body never calls itself.
_SCOPE: Final = Scope()


@cache
def _node(body: str) -> Any:
    """The parse node of a scalar body."""
    return parse(f"SELECT {body}")[0].node.targetList[0].val


@cache
def query_node(body: str) -> Any:
    """The parse node of a body that is a query."""
    return parse(body)[0].node


@contextmanager
def arguments_of(binding: Binding, arguments: Sequence[Scalar]) -> Iterator[None]:
    """While a body is bound: ``$n`` is the call's n-th argument, and no position is the statement's."""
    context, reader = binding.context, binding.reader
    binding.reader = None
    binding.bodies.append(tuple(arguments))
    binding.views.append(0)
    binding.context = of_system(context)
    try:
        yield
    finally:
        binding.context, binding.reader = context, reader
        binding.views.pop()
        binding.bodies.pop()


def bind_body(binding: Binding, body: str, arguments: Sequence[Scalar], kind: SqlType) -> Scalar:
    """A scalar body of a type, over arguments that are bound already."""
    with arguments_of(binding, arguments):
        env = Environment(binding, _SCOPE, "functions", Level(binding))
        found = env.bind(_node(body))
        if kind.name == "void":
            return Literal("", kind)
        coerced = binding.binder.cast(binding, found, kind)
    assert coerced is not None, (body, kind)
    return coerced
