"""The expressions and the predicate of a unique index, bound for the engine that enforces it.

Owns: ``index_parts``, and the names of an index's columns. An index names only its table's columns, their types, and
PostgreSQL's own functions and types, so it can be bound without a catalog wherever the table is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, Index, Table, UserType
from planner.algebra.nodes import Case, Column, Literal, Scalar
from planner.algebra.walk import used_columns
from planner.bind.lookup.output_names import ANONYMOUS, output_name
from planner.bind.scalars.stored_expressions import bind_stored
from planner.bind.state.context import Context
from planner.bind.state.environment import Binder
from planner.parse.parser import parse

_INDEXES: Final = 256


class IndexParts(Struct, frozen=True):
    """The key's parts and which rows are in the index, over a row of the table."""

    row: tuple[Column, ...]
    parts: tuple[Scalar, ...]
    predicate: Scalar | None

    @property
    def unique(self) -> tuple[Scalar, ...]:
        """The parts, each NULL in a row that the index leaves out."""
        if self.predicate is None:
            return self.parts
        return tuple(Case(((self.predicate, part),), Literal(None, part.type), part.type) for part in self.parts)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the row that make a difference."""
        used = {column for part in self.unique for column in used_columns(part)}
        return tuple(column for column in self.row if column in used)


def index_parts(binder: Binder, table: Table, index: Index) -> IndexParts:
    """The bound expressions and predicate of a unique index. Raises what binding raises."""
    return _bound(binder, table.columns, index)


def labels_of(parts: Iterable[str]) -> tuple[str, ...]:
    """What the columns of an index are called, by the texts of its parts: as PostgreSQL would call a query's."""
    found: dict[str, None] = {}
    for part in parts:
        name = output_name(parse(f"SELECT {part}")[0].node.targetList[0].val)
        word = "expr" if name == ANONYMOUS else name
        numbered = (f"{word}{number or ''}" for number in itertools.count())
        found[next(each for each in numbered if each not in found)] = None
    return tuple(found)


def _types_of(definitions: Iterable[ColumnDefinition]) -> dict[tuple[str, str], UserType]:
    """The users' types of columns and of their elements and fields."""
    found: dict[tuple[str, str], UserType] = {}
    pending = [item.type for item in definitions]
    for kind in pending:  # grows while it is walked
        declared = kind.enum or kind.row
        if declared is not None:
            found[declared.schema, declared.name] = declared
        pending += [kind.element] if kind.element is not None else []
        pending += [field for _, field in kind.row.fields] if kind.row is not None else []
    return found


@lru_cache(_INDEXES)
def _bound(binder: Binder, definitions: tuple[ColumnDefinition, ...], index: Index) -> IndexParts:
    row = tuple(Column(-1 - place, item.name, item.type) for place, item in enumerate(definitions))
    context = Context(Catalog(types=_types_of(definitions)))
    texts = index.parts[: len(index.parts) - index.included]
    parts = tuple(bind_stored(binder, text, row, context, what="index") for text in texts)
    where = None if index.predicate is None else bind_stored(binder, index.predicate, row, context, what="index")
    return IndexParts(row, parts, where)
