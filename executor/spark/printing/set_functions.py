"""Rows of arrays in Spark SQL, for queries.

Owns: ``in_step``, by which the elements of several arrays advance together, with NULLs beyond the end of a shorter one
and the number of the place beside them, and ``rows``, the generate_series() of constant integers without an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp

from executor.printing.nodes import Expr, column_name, identifier
from planner.algebra.nodes import Call, Cast, Column, Literal, Scalar, Unnest, Values

_INTEGERS: Final = ("int4", "int8")


def rows(dialect: Any, node: Unnest) -> Expr | None:
    """The SELECT of a series of constant integers that nothing stands beside; None for anything else."""
    if len(node.items) != 1 or node.ordinality is not None:
        return None
    if not (isinstance(node.input, Values) and node.input.rows == ((),)):
        return None
    ((column, call),) = node.items
    if not isinstance(call, Call) or call.function != "series" or column.type.name not in _INTEGERS:
        return None
    first, last, step = map(_integer, call.arguments)
    if first is None or last is None or not step:
        return None
    end = last + (1 if step > 0 else -1)
    if max(abs(first), abs(end)) >= 1 << 62:
        return None
    name = dialect.generate(identifier(column_name(column)))
    kind = dialect.generate(dialect.type(column.type))
    return exp.Var(this=f"SELECT CAST(id AS {kind}) AS {name} FROM RANGE({first}, {end}, {step})")


def _integer(value: Scalar) -> int | None:
    while isinstance(value, Cast):
        value = value.argument
    return value.value if isinstance(value, Literal) and isinstance(value.value, int) else None


def in_step(dialect: Any, arrays: Sequence[str], columns: Sequence[Column], ordinality: Column | None) -> Expr:
    """A select item: the elements of arrays, by their columns' names, as columns; an array that is NULL is empty."""
    empty = (f"CAST(ARRAY() AS ARRAY<{dialect.generate(dialect.type(column.type))}>)" for column in columns)
    items = [f"COALESCE({name}, {none})" for name, none in zip(arrays, empty, strict=True)]
    names = [column_name(column) for column in columns]
    if ordinality is not None:
        longest = f"ARRAY_MAX(ARRAY({', '.join(f'CAST(SIZE({item}) AS BIGINT)' for item in items)}))"
        items.append(f"IF({longest} = 0, CAST(ARRAY() AS ARRAY<BIGINT>), SEQUENCE(1L, {longest}))")
        names.append(column_name(ordinality))
    aliases = ", ".join(dialect.generate(identifier(name)) for name in names)
    return exp.Var(this=f"INLINE(ARRAYS_ZIP({', '.join(items)})) AS ({aliases})")
