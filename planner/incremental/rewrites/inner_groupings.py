"""The grouping below the joins, of ``pushed_groupings``: its keys, its state columns, and expressions over its rows.

A key is an expression of the source's row alone, as large as it may be: date_trunc('hour', ts) and not ts.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from catalog.values.types import BOOL, INT8, TEXT
from planner.algebra.construction import Fresh, has_subquery
from planner.algebra.failures import gives_a_value
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Literal,
    Relation,
    Scalar,
)
from planner.algebra.signature import key_of
from planner.algebra.walk import RELATIONS, Node, descend, used_columns, walk
from planner.lowering.outer_values import has_equal_values

#: Functions that fail only where the result is out of its type's range, or for constants that always fail.
_STEADY: Final = frozenset(("add", "sub", "mul", "neg", "abs", "date_trunc", "date_bin", "bitand", "bitor", "bitxor"))
_NUMBERS: Final = frozenset(("int2", "int4", "int8", "numeric", "float4", "float8"))
_TIMES: Final = frozenset(("date", "timestamp", "timestamptz"))


class InnerGrouping:
    """The inner grouping while its keys and state columns are being found."""

    def __init__(self, source: Relation, fresh: Fresh) -> None:
        self._source = source
        self._of_source = frozenset(source.columns)
        self._fresh = fresh
        self._keys: dict[Hashable, tuple[Column, Scalar]] = {}
        self._fills: dict[Hashable, tuple[Column, AggregateCall]] = {}

    def is_own(self, node: Node) -> bool:
        """Whether an expression is one of the source's row alone."""
        return used_columns(node) <= self._of_source and not has_subquery(node)

    def is_safe(self, node: Node) -> bool:
        """Whether an expression of the source's row alone may be computed for rows that meet no table's row."""
        return self.is_own(node) and all(map(_is_steady, walk(node)))

    def raised(self, node: Any) -> Any:
        """An expression over the source's row as one over the grouping's, whose keys are as large as they may be."""
        return descend(node, self._key)

    def _key(self, node: Any) -> Any:
        if isinstance(node, RELATIONS) or not isinstance(node, Scalar) or not used_columns(node):
            return node
        is_key = isinstance(node, ColumnRef) or (_may_be_key(node) and self.is_safe(node))
        return ColumnRef(self._column(node)) if is_key and self.is_own(node) else node

    def _column(self, value: Scalar) -> Column:
        key = key_of(value)
        if key not in self._keys:
            named = value.column.name if isinstance(value, ColumnRef) else "key"
            self._keys[key] = (self._fresh.column(named, value.type), value)
            if has_equal_values(value.type):
                self._column(Cast(value, TEXT))
        return self._keys[key][0]

    def state(self, name: str, fill: AggregateCall) -> Column:
        """The state column that an aggregate over the source's rows fills."""
        key = key_of(fill)
        if key not in self._fills:
            self._fills[key] = (self._fresh.column(name, fill.type, fill.function != "count"), fill)
        return self._fills[key][0]

    @property
    def rows(self) -> ColumnRef:
        """How many rows a group stands for."""
        return ColumnRef(self.state("rows", AggregateCall("count", (), INT8)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns, as far as they are known."""
        return tuple(column for column, _ in (*self._keys.values(), *self._fills.values()))

    def relation(self) -> Relation:
        """Its rows: none where the source has none."""
        if self._keys:
            return self.grouping
        rows = self.rows
        return Filter(self.grouping, Call("gt", (rows, Literal(0, INT8)), BOOL))

    @property
    def grouping(self) -> Aggregate:
        """Its keys and state columns, as far as they are known."""
        return Aggregate(self._source, tuple(self._keys.values()), tuple(self._fills.values()))


def _may_be_key(scalar: Scalar) -> bool:
    """Whether states are grouped by an expression: by its type, and unless what it is made of is as good a key."""
    if isinstance(scalar, Cast) and {scalar.type.name, scalar.argument.type.name} <= _NUMBERS:
        return False
    return scalar.type.element is None and scalar.type.row is None


def _is_steady(node: Node) -> bool:
    match node:
        case Call(function="date_trunc", arguments=(unit, *_)):
            return isinstance(unit, Literal)
        case Call(function=function) if function in _STEADY:
            return True
        case Cast(argument=argument, type=target):
            kinds = {argument.type.name, target.name}
            narrows = target.name in ("int2", "int4", "int8", "float4") and argument.type.name != "int2"
            return gives_a_value(node) or kinds <= _TIMES or (kinds <= _NUMBERS and not narrows)
        case _:
            return gives_a_value(node)
