"""The locks that a statement takes before it begins, and what REPEATABLE READ and SERIALIZABLE ask of one that writes.

Owns: which modes statements take on the relations that they name, as in PostgreSQL, FOR UPDATE, LOCK TABLE, and NOWAIT.
A plan is made first: where a lock had to be waited for and the catalog has changed meanwhile, it is made again, and
what it then names is locked as well (``session``). Locks on the rows that a statement changes are its own matter
(``executor/tables/transaction``).

https://www.postgresql.org/docs/15/explicit-locking.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from catalog.objects import Stream, Table
from catalog.values.errors import SqlError
from executor.definitions.definition_locks import definition_needs
from executor.identity_cache import Remembered
from executor.locks.modes import Mode
from executor.locks.targets import Definition, Relation, Row, Rows
from executor.rows.point_reads import key_value
from executor.rows.row_shapes import identity_of
from executor.sql import ddl
from executor.sql.environment import Environment
from executor.sql.skip_locked import skipping
from executor.tables.statements.changes_by_key import NotByKey, Readings
from executor.tables.statements.lock_needs import Need, needs, neighbours, of_insertion
from executor.tables.store import WriteTransaction
from executor.transactions.transaction import Transaction
from planner.algebra.nodes import Relation as Algebra
from planner.algebra.nodes import Scan, Value
from planner.algebra.walk import walk
from planner.statements.definitions import AlterSequence, Truncate
from planner.statements.statement import (
    CopyIn,
    CopyOut,
    CreateTableAs,
    CreateView,
    DeclareCursor,
    Explain,
    Insert,
    Locking,
    LockTable,
    Modifying,
    Query,
    RowChange,
    Statement,
)
from planner.statements.walk import roots

#: What serializable transactions that write lock, one after the other.
_SERIAL: Final = Definition(-1)
#: Scans of these have no relation of their own.
_UNNAMED: Final = ("query",)
_SHARING: Final = ("FOR SHARE", "FOR KEY SHARE")


def begin_write(session: Environment) -> WriteTransaction:
    """The table transaction of a session's transaction. Raises 40001 where a repeatable snapshot is too old."""
    tables, transaction = session.core.tables, session.transaction
    assert transaction is not None
    if session.serializable:
        begin_serial(session, transaction)
    begin_snapshot(session, transaction)
    snapshot = transaction.snapshot
    if snapshot is None:
        return tables.begin(transaction.locks)
    return tables.begin(transaction.locks, snapshot.tables, snapshot.lsn)


def begin_snapshot(session: Environment, transaction: Transaction) -> None:
    """A transaction that reads one moment reads that of its first statement, also where this reads nothing itself."""
    if transaction.repeatable and transaction.explicit and transaction.snapshot is None and transaction.write is None:
        session.reader.moments.begin(transaction)


def begin_serial(session: Environment, transaction: Transaction) -> None:
    """A serializable transaction begins to write: only where nothing at all was committed since its snapshot, streams'
    rows included, and no other one writes until it ends; so all that it has read is still so, as far as transactions of
    this level go, when it commits. Raises 40001."""
    if not transaction.locks.take(_SERIAL, Mode.EXCLUSIVE):
        return
    unsettled, snapshot = session.core.tables.unsettled, transaction.snapshot
    unsettled.wait(unsettled.last, unsettled.chain)
    if snapshot is not None and session.core.sequencer.visible > snapshot.lsn:
        raise SqlError("40001", "could not serialize access due to read/write dependencies among transactions")


def lock(
    session: Environment, statement: Statement, transaction: Transaction, parameters: tuple[Value, ...] = ()
) -> None:
    """Takes the locks that a statement needs before it may begin, and lets it see what others have committed. Raises
    40001, 40P01, 55P03 and 57014."""
    tables = session.core.tables.definitions
    taken = transaction.locks
    found, refusal = list(statement_needs(statement, session)), None
    query = _query_of(statement)
    if isinstance(query, Query) and query.locking is not None:
        if skipping(query, tables) is None:
            found += _locking(query, query.locking, tables, parameters)
        else:
            found += [(target, Mode.ROW_SHARE) for target, _ in found]
        if query.locking.nowait:
            refusal = f'could not obtain lock on row in relation "{query.locking.table}"'
    is_new = [taken.take(target, mode, refusal if isinstance(target, Rows | Row) else None) for target, mode in found]
    if session.serializable and isinstance(_changing(statement), Insert | CopyIn):
        begin_serial(session, transaction)
    write = transaction.write
    if isinstance(query, Query) and query.locking is not None and transaction.repeatable:
        locked = [target for target, mode in found if mode is Mode.ROW_SHARE]
        _require_unchanged(session, transaction, (target.oid for target in locked if isinstance(target, Relation)))
    if write is None:
        if any(is_new) and any(isinstance(target, Rows | Row) for target, _ in found):
            see_rows(session, transaction)
        return
    if any(is_new):
        write.stand()
    oids = {target.oid for target, _ in found if isinstance(target, Relation)}
    write.see(tables.keys() if isinstance(statement, ddl.Definition) else neighbours(oids, tables))


def _require_unchanged(session: Environment, transaction: Transaction, oids: Iterable[int]) -> None:
    """Rows of these tables were locked, whose last versions the snapshot has. Raises 40001 where it is too old."""
    snapshot = transaction.snapshot
    if snapshot is None:
        return
    see_rows(session, transaction)
    changed = session.core.tables.changed
    if any(changed.get(oid, 0) > snapshot.lsn for oid in oids):
        raise SqlError("40001", "could not serialize access due to concurrent update")


def see_rows(session: Environment, transaction: Transaction) -> None:
    """Locks on rows were taken: what is read from here on has what their last owners did. Raises why it never will."""
    if transaction.write is not None:
        transaction.write.stand()
        transaction.write.await_others()
        return
    unsettled = session.core.tables.unsettled
    unsettled.wait(unsettled.last, unsettled.chain)


def statement_needs(statement: Statement, session: Environment) -> Iterator[Need]:
    """The locks of a statement."""
    tables, catalog = session.core.tables.definitions, session.catalog
    changing = _changing(statement)
    query = _query_of(statement)
    if isinstance(query, Query):
        yield from _reads(query)
    elif isinstance(changing, RowChange | Modifying):
        yield from _reads(changing)
        yield from needs(changing, tables)
        if isinstance(changing, Insert) and isinstance(changing.target, Stream):
            yield Relation(changing.target.oid), Mode.ROW_EXCLUSIVE
    elif isinstance(changing, CopyIn):
        target = changing.target
        own = of_insertion(target) if isinstance(target, Table) else [(Relation(target.oid), Mode.ROW_EXCLUSIVE)]
        yield from own
    elif isinstance(changing, Truncate):
        yield from ((Relation(table.oid), Mode.ACCESS_EXCLUSIVE) for table in changing.targets)
        for sequence in changing.restarts:
            yield from definition_needs(AlterSequence(sequence), catalog)
    elif isinstance(changing, CreateTableAs):
        yield from _reads(changing.query)
        yield from definition_needs(changing, catalog)
    elif isinstance(changing, ddl.Definition):
        yield from definition_needs(changing, catalog)


def _changing(statement: Statement) -> Statement:
    """What may change something: of COPY TO what it copies, of EXPLAIN ANALYZE what it runs."""
    match statement:
        case CopyOut(query=inner) | Explain(analyze=True, statement=inner):
            return inner
        case _:
            return statement


def _query_of(statement: Statement) -> Statement | None:
    match statement:
        case CopyOut(query=Query() as query) | DeclareCursor(query=query) | Explain(statement=Query() as query):
            return query
        case Explain(statement=CreateView(query=query)):
            return query
        case Query():
            return statement
        case _:
            return None


def _find_reads(statement: Statement) -> list[Need]:
    """The locks on what a statement reads."""
    oids = {
        item.oid
        for root in roots(statement)
        for item in walk(root)
        if isinstance(item, Scan) and item.oid and item.kind not in _UNNAMED
    }
    return [(Relation(oid), Mode.ACCESS_SHARE) for oid in sorted(oids)]


_reads: Final = Remembered(_find_reads, 1024)


def _locking(
    query: Query, locking: Locking, tables: Mapping[int, Table], parameters: tuple[Value, ...]
) -> Iterator[Need]:
    """FOR UPDATE and its kin: the row that the query reads by the key of all rows, else all of its tables."""
    is_shared = is_sharing(locking)
    row = _row_by_key(query.relation, tables, parameters)
    if row is not None:
        yield Relation(row.oid), Mode.ROW_SHARE
        yield Rows(row.oid), Mode.ROW_EXCLUSIVE
        yield row, Mode.SHARE if is_shared else Mode.EXCLUSIVE
        return
    mode = Mode.SHARE if is_shared else Mode.SHARE_ROW_EXCLUSIVE
    oids = {item.oid for item in walk(query.relation) if isinstance(item, Scan) and item.kind == "table"}
    for oid in sorted(oids):
        yield Relation(oid), Mode.ROW_SHARE
        yield Rows(oid), mode


def is_sharing(locking: Locking) -> bool:
    """Whether others may lock the rows in the same way."""
    return locking.words in _SHARING


def _row_by_key(relation: Algebra, tables: Mapping[int, Table], parameters: tuple[Value, ...]) -> Row | None:
    try:
        by_key = Readings().get(relation, tables).by_key
    except NotByKey:
        return None
    table = None if by_key is None else tables.get(by_key.scan.oid)
    if by_key is None or table is None or by_key.columns != identity_of(table):
        return None
    key = tuple(key_value(item, parameters) for item in by_key.values)
    return None if None in key else Row(table.oid, by_key.columns, key)


def lock_table(statement: LockTable, transaction: Transaction) -> None:
    """LOCK. Raises 55P03 where it may not wait."""
    for oid, name in statement.tables:
        refusal = f'could not obtain lock on relation "{name}"' if statement.nowait else None
        transaction.locks.take(Relation(oid), Mode(statement.mode), refusal)
    if transaction.write is not None:
        transaction.write.stand()
