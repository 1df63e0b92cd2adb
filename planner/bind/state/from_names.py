"""What an item of FROM offers: its columns, and the names by which they are known.

Owns: ``Entry`` (a visible column), ``Source`` (a named item of FROM) and ``BoundQuery`` (a query with the columns that
clients see).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from catalog.objects import FIRST_OID
from catalog.values.types import BOOL, OID, SqlType, record
from planner.algebra.nodes import Call, Case, Column, Literal, Relation, Scalar
from planner.bind.state.row_versions import version_of
from planner.statements.statement import Output

#: The schema of a relation in a view's text that does not name it: whatever a column's qualifier says was right.
ANY_SCHEMA: Final = ""
#: The transaction that made what is there from the beginning: BootstrapTransactionId.
_BOOTSTRAP: Final = Literal(1, SqlType("xid"))


class Entry(Struct, frozen=True):
    """A column that FROM offers: name and value; for RowDescription, the table's column behind it and its modifier."""

    name: str
    scalar: Scalar
    table: int = 0
    attribute: int = 0
    typmod: int = -1
    is_sure: bool = False  # never NULL in the relation itself


class Source(Struct, frozen=True):
    """An item of FROM by name. ``key`` is a table's primary key, for GROUP BY, ``relation`` its name if aliased.

    ``value`` is what the name alone stands for, where that is no row: the only column of a function. ``padded`` rows
    may be those that an outer join fills up with NULLs. ``row`` is the relation (its oid) whose rows these are,
    ``kind`` the type of a function's rows, where it has a name. ``mark`` is NULL only in rows that were filled up.
    ``hidden`` columns have a name, but are none of ``*``. ``stored`` are the columns of a table's row, ``place``
    its ctid, where the statement speaks of one, and ``deleted`` its xmax, where that may be something.
    """

    name: str
    entries: tuple[Entry, ...]
    schema: str | None = None
    key: tuple[Column, ...] = ()
    relation: str = ""
    padded: bool = False
    value: Entry | None = None
    oid: int = 0
    row: int = 0
    kind: SqlType | None = None
    mark: Scalar | None = None
    hidden: tuple[Entry, ...] = ()
    stored: tuple[Column, ...] = ()
    place: Scalar | None = None
    deleted: Scalar | None = None

    def column_beyond(self, name: str) -> Entry | None:
        """A column that is none of ``*``: a hidden or a system column."""
        return next((item for item in self.hidden if item.name == name), None) or self._system_column(name)

    def _system_column(self, name: str) -> Entry | None:
        """A system column of a row of a table's; NULL in rows that an outer join has filled up."""
        value = self._system_value(name)
        if value is None:
            return None
        if not self.padded:
            return Entry(name, value)
        sure = next((item.scalar for item in self.entries if item.is_sure), None)
        if sure is None:
            return None
        return Entry(name, Case(((Call("is_null", (sure,), BOOL), Literal(None, value.type)),), value, value.type))

    def _system_value(self, name: str) -> Scalar | None:
        """What a system column is of a row that is there, as far as it can be told (``row_versions``)."""
        is_own = 0 < self.oid < FIRST_OID
        if name == "tableoid" and self.oid:
            return Literal(self.oid, OID)
        if name == "xmin" and (is_own or self.stored):
            return _BOOTSTRAP if is_own else version_of(self.stored)
        if name == "xmax" and self.deleted is not None:
            return self.deleted
        if name in ("xmax", "cmin", "cmax") and (is_own or self.stored):
            return Literal(0, SqlType("xid" if name == "xmax" else "cid"))
        return self.place if name == "ctid" else None


class BoundQuery(Struct, frozen=True):
    """A query's relation, whose columns are described by ``outputs`` position by position."""

    relation: Relation
    outputs: tuple[Output, ...]

    @property
    def row(self) -> SqlType:
        """The type of its rows, of the columns that clients see."""
        columns = zip(self.outputs, self.relation.columns, strict=True)
        return record(*((output.name, column.type) for output, column in columns))
