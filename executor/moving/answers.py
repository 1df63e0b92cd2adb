"""Answers questions of other servers: the rows of a view that this server maintains, or of a table that a view reads
which has left this server. ``executor.remote_reads`` asks the questions.
"""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.locks.held import TransactionLocks
from executor.locks.manager import Owner
from executor.moving.movability import as_leaving
from executor.queries.reader import Reader
from executor.remote_reads.messages import NOT_HERE, Answer, Question, decode_question, encode_answer, encode_error
from executor.replicas.replica import replica_of
from executor.tables.temporary import Temporary
from executor.transactions.transaction import Transaction
from planner.algebra.nodes import Filter, Relation, Scan


def answer(reader: Reader, data: bytes) -> bytes:
    """The answer to another server's question, or its error, as bytes."""
    try:
        question = decode_question(data)
        return encode_answer(_rows(reader, question) if question.view else _lent(reader, question))
    except SqlError as error:
        return encode_error(error)


def _rows(reader: Reader, question: Question) -> Answer:
    core, services = reader.core, reader.services
    runtime = next((item for item in core.runtimes() if item.shared == question.view), None)
    replica = None if runtime is None else replica_of(services.replicas, runtime)
    if runtime is None or replica is None:
        raise _not_here(core)
    reader.time_zone = question.time_zone
    try:
        services.borrowing.fetch((runtime.view.oid,), reader)  # not while others wait for the lock
        with replica.lock:  # nothing comes between the rows and where they are up to
            _, _, table = reader.present.of_view(runtime.view.oid)
            at = replica.position
    except SqlError as error:
        if core.is_live(runtime):
            raise
        raise _not_here(core) from error  # it has left meanwhile
    scan = question.scan
    if not set(scan.sources) <= set(table.column_names):
        raise SqlError("08P01", "a request of another server names other columns")
    rows = table.select(scan.sources)
    if isinstance(question.relation, Filter):
        leaf = replace(scan, oid=runtime.view.oid)
        relation = _over(question.relation, leaf)
        bindings = {f"v{leaf.oid}": table}
        rows = core.engine.query(relation, bindings, (), question.time_zone, reader).rename_columns(scan.sources)
    return Answer(at, rows)


def _not_here(core: Core) -> SqlError:
    return SqlError(NOT_HERE, f'server "{core.options.server_name}" does not maintain the view')


def _over(relation: Relation, leaf: Scan) -> Relation:
    """The filters of a question over another scan."""
    return replace(relation, input=_over(relation.input, leaf)) if isinstance(relation, Filter) else leaf


def _lent(reader: Reader, question: Question) -> Answer:
    """The answer to a guest's question: the committed rows of a table, and their LSN. Raises 42P01 where no view that
    has left reads these columns."""
    core, scan = reader.core, question.scan
    known = _lent_columns(core, scan.oid)
    if any(known.get(source) != item.type.arrow for item, source in zip(scan.columns, scan.sources, strict=True)):
        raise SqlError("42P01", f'table "{scan.name}" is not lent by server "{core.options.server_name}"')
    locks = TransactionLocks(core.tables.locks, Owner())
    transaction = Transaction(False, lambda: core.tables.begin(locks), Temporary(), locks, read_only=True)
    lsn, (rows,) = reader.tables((question.relation,), transaction)
    at = min(lsn, core.log.last_lsn)  # LSNs may begin above the log's end
    return Answer(at, rows.rename_columns(scan.sources))


def _lent_columns(core: Core, oid: int) -> dict[str, pa.DataType]:
    """The columns of a table, with their types, that views read which have ever left this server."""
    left = (runtime for runtime in core.runtimes() if runtime.shared)
    programs = (as_leaving(core, item) for item in left if oid in core.tables_of_view(item.view.oid))
    tables = (item for program in programs for item in program.borrowed if item.table == oid)
    return {column.name: column.type.arrow for item in tables for column in item.columns}
