"""SKIP LOCKED: a query's rows without those that other transactions have locked.

Owns: how such a query is run. Rows are read without those whose locks others hold, and locked; where another
transaction was quicker with one of them, or may have changed one before it was locked, the query runs again. A query is
run so where it reads one table that has a key of all rows, by projections, filters, an order and a limit; of any other,
SKIP LOCKED waits as FOR UPDATE does.

https://www.postgresql.org/docs/15/sql-select.html#SQL-FOR-UPDATE-SHARE
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import Table
from executor.locks.modes import Mode
from executor.locks.targets import Row, Rows
from executor.rows.row_shapes import identity_of
from executor.sql.environment import Environment
from executor.traces.keyed_rows import Columns, Key
from executor.transactions.transaction import Transaction
from planner.algebra.bound_rows import bound
from planner.algebra.construction import conjunction, equality
from planner.algebra.nodes import Column, ColumnRef, Filter, Join, Limit, Project, Relation, Scan, Sort, Value
from planner.algebra.walk import walk
from planner.statements.statement import Query

_Chain = Project | Sort | Limit | Filter


class Skipping(Struct, frozen=True):
    """A query over its table without some rows, whose keys are bound as ``leaf``; its last columns are the key's."""

    relation: Relation
    table: Table
    columns: Columns
    keys: tuple[Column, ...]

    @property
    def leaf(self) -> str:
        """The name of the keys' leaf for an engine."""
        return f"s_{bound(self.keys).trace}"

    def excluded(self, keys: Iterable[Key]) -> pa.Table:
        """Keys as rows of the leaf."""
        values = list(zip(*keys, strict=True)) or [()] * len(self.keys)
        arrays = [pa.array(each, column.type.arrow) for each, column in zip(values, self.keys, strict=True)]
        return pa.Table.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])


def skipping(query: Query, tables: Mapping[int, Table]) -> Skipping | None:
    """How a query skips rows; None where it does not."""
    if query.locking is None or not query.locking.skip:
        return None
    chain: list[_Chain] = []
    below = query.relation
    while isinstance(below, Project | Sort | Limit | Filter):
        chain.append(below)
        below = below.input
    table = tables.get(below.oid) if isinstance(below, Scan) and below.kind == "table" else None
    columns = None if table is None else identity_of(table)
    if (
        not isinstance(below, Scan)
        or table is None
        or columns is None
        or not any(isinstance(x, Project) for x in chain)
    ):
        return None
    if any(isinstance(node, Scan) for item in chain for node in walk(_expressions(item))):
        return None
    types = {column.name: column.type for column in table.columns}
    keys = tuple(Column(-1000 - place, name, types[name]) for place, name in enumerate(columns))
    others = tuple(Column(-2000 - place, name, types[name]) for place, name in enumerate(columns))
    scan = replace(below, columns=(*below.columns, *keys), sources=(*below.sources, *columns))
    same = conjunction(equality(ColumnRef(own), ColumnRef(other)) for own, other in zip(keys, others, strict=True))
    relation: Relation = Join("anti", scan, bound(others), same)
    for item in reversed(chain):
        relation = replace(item, input=relation)
        if isinstance(relation, Project):
            relation = replace(relation, outputs=(*relation.outputs, *((key, ColumnRef(key)) for key in keys)))
    return Skipping(relation, table, columns, others)


def _expressions(item: _Chain) -> Relation:
    """The node without what is below it, for a walk through its expressions alone."""
    return replace(item, input=bound(()))


def run(
    session: Environment,
    found: Skipping,
    parameters: tuple[Value, ...],
    transaction: Transaction,
    mode: Mode,
    await_rows: Callable[[], None],
) -> pa.Table:
    """The query's rows, all of them locked now. ``await_rows`` returns when what the last owners of locks did can be
    read."""
    oid, locks = found.table.oid, transaction.locks
    if not locks.try_take(Rows(oid), Mode.ROW_EXCLUSIVE):
        rows = _rows(session, found, parameters, transaction, ()).slice(0, 0)
        return rows.select(range(rows.num_columns - len(found.keys)))
    skipped = {lock.key for lock in session.locks.rows_of(oid, session.owner, mode) if lock.columns == found.columns}
    while True:
        mark = locks.mark()
        await_rows()
        rows = _rows(session, found, parameters, transaction, skipped)
        keys = list(zip(*(column.to_pylist() for column in rows.columns[-len(found.keys) :]), strict=True))
        refused = {key for key in keys if not locks.try_take(Row(oid, found.columns, key), mode)}
        if not refused and locks.mark() == mark:
            return rows.select(range(rows.num_columns - len(found.keys)))
        if refused:
            locks.release_after(mark)
            skipped |= refused


def _rows(
    session: Environment,
    found: Skipping,
    parameters: tuple[Value, ...],
    transaction: Transaction,
    skipped: Iterable[Key],
) -> pa.Table:
    keys = {found.leaf: found.excluded(skipped)}
    return session.reader.table(found.relation, parameters, transaction, lambda part, ask: ask(part, keys))
