"""CREATE, ALTER and DROP: what they change in a transaction.

Owns: turning bound DDL statements into a new catalog, table files and new continuous views within the transaction; the
catalog change that the log record carries. A change becomes visible, durable and numbered when the transaction commits.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import (
    PG_TEMP,
    Sequence,
    Stream,
    SystemView,
    Table,
    View,
    as_plain,
    is_temporary,
    null_value,
)
from catalog.values.errors import SqlError, undefined_table, unsupported
from catalog.values.times.infinite_dates import require_finite
from executor.core.core import Core
from executor.database.database import Database
from executor.definitions.catalog_changes import add_object, change_object, drop_object, follow, free_oid, take_away
from executor.definitions.extensions import alter_extension, create_extension, forget_extensions
from executor.definitions.roles import change_defaults, change_rights, change_roles, set_rights
from executor.definitions.routines import create_function, forget_functions, move_functions
from executor.definitions.unchanged_objects import require_free, require_same
from executor.definitions.user_types import define_type, forget_types, move_types
from executor.files.arrived_files import FileFeed
from executor.moving.change_guards import require_own
from executor.queries.statistics import statistics_of
from executor.sql.alter_table import alter_rows
from executor.sql.environment import Environment
from executor.sql.row_policies import alter_policy, require_policy
from executor.tables.temporary import drop_temporary
from executor.transactions.result import Result
from executor.transactions.transaction import NewView, OutdatedError, Transaction
from planner.algebra.nodes import Scan
from planner.algebra.walk import walk
from planner.bind.definitions.dependents import readers
from planner.bind.definitions.sequences import call_of, require_within
from planner.incremental.dataflow.planning import require_incremental
from planner.incremental.methods.collect import Collected
from planner.incremental.names import stored_name
from planner.incremental.plan import Planned, Tables, derived, plan
from planner.incremental.programs.canonical import Origin
from planner.incremental.programs.labels import labels_of
from planner.incremental.programs.program import Static
from planner.statements import definitions
from planner.statements.definitions import (
    AlterExtension,
    AlterSchema,
    AlterSequence,
    AlterTable,
    AlterType,
    AlterView,
    ChangeDefaults,
    ChangeRights,
    ChangeRoles,
    CreateExtension,
    CreateFunction,
    CreateSchema,
    CreateSequence,
    CreateStream,
    CreateTable,
    CreateType,
    Drop,
    DropExtension,
    DropFunction,
    DropType,
    Redefine,
    Truncate,
)
from planner.statements.statement import CreateView
from planner.statistics import Statistics

#: What ``define`` runs.
Definition = definitions.Definition | CreateView


#: A notice with this SQLSTATE is a WARNING.
_WARNING: Final = "01000"


def check_not_null(stream: Stream, rows: pa.Table | pa.RecordBatch) -> None:
    """Raises 23502 where a NOT NULL column of a stream has a null."""
    for index, column in enumerate(stream.columns):
        if column.not_null and rows.column(index).null_count:
            raise null_value(stream, column.name, row=pc.index(rows.column(index).is_null(), True).as_py())


def define(session: Environment, transaction: Transaction, statement: Definition) -> Result:
    """Runs one DDL statement inside a transaction that has the locks which it needs."""
    core = session.core
    catalog = transaction.sees(core.catalog)
    transaction.role = session.role_of(catalog)
    match statement:
        case CreateSchema(schema=schema, exists=exists, owner=owner, elements=elements):
            assert not elements, "whoever binds runs them"
            if exists:
                notice = SqlError("42P06", f'schema "{schema.name}" already exists, skipping')
                return Result("CREATE SCHEMA", notices=(notice,))
            if owner is not None:
                transaction.role = owner
            add_object(transaction, catalog, replace(schema, oid=free_oid(core, catalog, schema)))
            return Result("CREATE SCHEMA")
        case AlterSchema():
            return _alter_schema(transaction, catalog, statement)
        case CreateTable():
            return _create_table(core, transaction, catalog, statement)
        case CreateSequence(sequence=sequence, exists=exists):
            if exists:
                return Result("CREATE SEQUENCE", notices=(_skipped(sequence.name),))
            add_object(
                transaction, catalog, replace(sequence, oid=free_oid(core, catalog, sequence), state=_new_state())
            )
            return Result("CREATE SEQUENCE")
        case AlterTable():
            return _alter_table(session, transaction, catalog, statement)
        case Redefine(tag=tag, before=before, item=item, changes=changes, notices=notices):
            require_same(catalog, before)
            change_object(transaction, catalog, item)
            follow(transaction, transaction.catalog or catalog, changes)
            return Result(tag, notices=tuple(SqlError("00000", text) for text in notices))
        case AlterSequence():
            return _alter_sequence(core, transaction, catalog, statement)
        case CreateStream(stream=stream, exists=exists):
            if exists:
                return Result("CREATE FOREIGN TABLE", notices=(_skipped(stream.name),))
            stream = replace(stream, oid=free_oid(core, catalog, stream))
            add_object(transaction, catalog, stream)
            return Result("CREATE FOREIGN TABLE")
        case CreateView():
            return _create_view(session.database, transaction, catalog, statement)
        case AlterView(view=view):
            alter_policy(core, view)
            change_object(transaction, catalog, view)
            return Result("ALTER VIEW")
        case ChangeRoles():
            return change_roles(transaction, catalog, statement)
        case ChangeRights():
            result = change_rights(transaction, catalog, statement)
            for alteration in statement.columns:
                define(session, transaction, alteration)
            return result
        case ChangeDefaults():
            return change_defaults(transaction, catalog, statement)
        case CreateType() | AlterType():
            result = define_type(transaction, catalog, statement, session.time_zone)
            for alteration in statement.alterations if isinstance(statement, AlterType) else ():
                _alter_table(session, transaction, transaction.catalog or catalog, alteration)
            return result
        case CreateFunction():
            return create_function(transaction, catalog, statement)
        case DropFunction(items=items, notices=notices):
            forget_functions(transaction, catalog, items)
            return Result("DROP FUNCTION", notices=tuple(SqlError("00000", text) for text in notices))
        case CreateExtension():
            return create_extension(transaction, catalog, statement)
        case AlterExtension():
            return alter_extension(transaction, catalog, statement)
        case DropExtension(items=items, functions=functions, types=types):
            _drop_types(session, transaction, catalog, types)
            forget_functions(transaction, transaction.sees(catalog), functions)
            forget_extensions(transaction, catalog, items)
            return Result("DROP EXTENSION", notices=tuple(SqlError("00000", text) for text in types.notices))
        case DropType(kind=kind, notices=notices):
            _drop_types(session, transaction, catalog, statement)
            return Result(f"DROP {kind}", notices=tuple(SqlError("00000", text) for text in notices))
        case Drop(kind=kind, notices=notices, types=types):
            take_away(transaction, catalog, statement)
            forget_functions(transaction, transaction.catalog or catalog, statement.functions)
            if types is not None:
                _drop_types(session, transaction, transaction.catalog or catalog, types)
            forget_extensions(transaction, catalog, statement.extensions)
            return Result(f"DROP {kind}", notices=tuple(SqlError("00000", text) for text in notices))


def _alter_schema(transaction: Transaction, catalog: Catalog, statement: AlterSchema) -> Result:
    """A schema under another name: what is in it refers to it by that."""
    before, after = statement.before, statement.after
    if catalog.schemas.get(before.name) != before:
        raise OutdatedError
    change_object(transaction, catalog, after)
    for item in catalog.contents(before.name) if before.name != after.name else ():
        assert not isinstance(item, SystemView)
        moved = replace(item, schema=after.name)
        change_object(transaction, transaction.catalog or catalog, moved)
        if isinstance(moved, Table):
            transaction.writer().define(moved)
    if before.name != after.name:
        move_types(transaction, transaction.catalog or catalog, before.name, after.name)
        move_functions(transaction, transaction.catalog or catalog, before.name, after.name)
    return Result(statement.tag)


def _create_table(core: Core, transaction: Transaction, catalog: Catalog, statement: CreateTable) -> Result:
    if statement.exists:
        return Result("CREATE TABLE", notices=(_skipped(statement.table.name),))
    _require_others(catalog, statement)
    oid = free_oid(core, catalog, statement.table, 1 + len(statement.sequences))
    table, sequences = _renumbered(statement, oid - statement.table.oid)
    add_object(transaction, catalog, table)
    for sequence in sequences:
        add_object(transaction, transaction.catalog or catalog, replace(sequence, state=_new_state()))
    transaction.writer().create(table)
    return Result("CREATE TABLE")


def _require_others(catalog: Catalog, statement: CreateTable) -> None:
    """Raises 40001 where what a new table refers to has gone since it was bound."""
    table, own = statement.table, {sequence.oid for sequence in statement.sequences} | {statement.table.oid}
    named = {oid for column in table.columns for oid in column.sequences} | {key.target for key in table.foreign_keys}
    if any(oid not in catalog.objects for oid in named - own):
        raise OutdatedError


def _alter_table(session: Environment, transaction: Transaction, catalog: Catalog, statement: AlterTable) -> Result:
    """Sequences of new columns come first, since the rows take their values; what goes with columns goes last."""
    require_same(catalog, statement.before)
    require_free(catalog, statement.sequences)
    transaction.role = catalog.rights_of(statement.before.oid).owner
    for sequence in statement.sequences:
        add_object(transaction, transaction.catalog or catalog, replace(sequence, state=_new_state()))
    follow(transaction, transaction.catalog or catalog, statement.changes)
    for options in statement.options:
        _alter_sequence(session.core, transaction, transaction.catalog or catalog, options)
    document = alter_rows(session, transaction, statement)
    transaction.catalog = (transaction.catalog or catalog).change(statement.table)
    if not is_temporary(statement.table):
        transaction.catalog_changes.append(document)
    for oid in statement.drops:
        drop_object(transaction, transaction.catalog, oid)
    return Result(statement.tag, notices=tuple(SqlError("00000", text) for text in statement.notices))


def truncate(session: Environment, transaction: Transaction, statement: Truncate) -> None:
    """TRUNCATE, and the sequences that it restarts."""
    transaction.writer().truncate(statement.targets)
    for sequence in statement.restarts:
        catalog = session.catalog
        require_same(catalog, sequence)
        change_object(transaction, catalog, replace(sequence, state=_new_state(), last=sequence.start, called=False))


def _renumbered(statement: CreateTable, shift: int) -> tuple[Table, tuple[Sequence, ...]]:
    """A table and its sequences under other oids, where another transaction took theirs since they were bound."""
    table = statement.table
    if not shift:
        return table, statement.sequences
    own = {sequence.oid: sequence.oid + shift for sequence in statement.sequences}
    columns = tuple(
        replace(column, default=call_of(own[column.sequences[0]]), sequences=(own[column.sequences[0]],))
        if own.keys() & set(column.sequences)
        else column
        for column in table.columns
    )
    keys = tuple(
        replace(key, target=key.target + shift) if key.target == table.oid else key for key in table.foreign_keys
    )
    sequences = tuple(
        replace(item, oid=own[item.oid], owner=None if item.owner is None else (table.oid + shift, item.owner[1]))
        for item in statement.sequences
    )
    return replace(table, oid=table.oid + shift, columns=columns, foreign_keys=keys), sequences


def _new_state() -> int:
    """A name for a sequence's value that no other has had, also not one that was rolled back."""
    return secrets.randbits(62)


def _alter_sequence(core: Core, transaction: Transaction, catalog: Catalog, statement: AlterSequence) -> Result:
    """New options; the value stays where it is unless the sequence restarts. Raises 22023."""
    sequence = statement.sequence
    if statement.restarts:
        sequence = replace(sequence, state=_new_state())
    else:
        require_within(sequence, "RESTART", core.sequences.current(sequence)[0])
    change_object(transaction, catalog, sequence)
    return Result("ALTER SEQUENCE")


def _create_view(database: Database, transaction: Transaction, catalog: Catalog, statement: CreateView) -> Result:
    core, view = database.core, statement.view
    tag = "CREATE MATERIALIZED VIEW" if view.materialized else "CREATE VIEW"
    if statement.refreshed is not None:
        return _refresh_view(core, transaction, catalog, statement)
    if statement.exists:
        return Result(tag, notices=(_skipped(view.name),))
    if statement.kept is not None:
        require_same(catalog, statement.kept)
        if view != statement.kept:
            alter_policy(core, view)
            change_object(transaction, catalog, view)
        return Result(tag)
    missing = [oid for oid in view.depends_on if oid not in catalog.objects]
    if missing:
        raise undefined_table(str(missing[0]))
    rights = None
    old = catalog.at(view.schema, view.name) if statement.replaces else None
    if isinstance(old, View) and not (old.keeps_rows or view.keeps_rows or (old.derived and view.derived)):
        _replace_view(core, transaction, catalog, old, statement)
        return Result(tag, notices=tuple(SqlError("00000", text) for text in statement.notices))
    if isinstance(old, View):
        rights = catalog.rights_of(old.oid)
        view = _kept(view, old)
        catalog = drop_object(transaction, catalog, old.oid)
    view = replace(view, oid=free_oid(core, catalog, view))
    notices = list(statement.notices)
    warnings = [SqlError(_WARNING, text) for text in statement.warnings]
    if view.derived:
        transaction.views.append(_derived(core, view, statement))
    elif view.continuous:
        _refuse_files(statement)
        statistics = statistics_of(statement.query.relation, catalog, core.tables, {})
        planned = _plan(statement, Origin(view.time_zone, core.options.server_name), statistics)
        require_policy(view, planned.program)
        statics = {static.name: _evaluate(transaction, static, statement) for static in planned.program.statics}
        for table in statics.values():
            require_finite(table.to_batches(), "a continuous view")
        for oid in planned.program.inputs:
            require_own(catalog.objects[oid])
        labels, kept_labels = labels_of(planned.program)
        since = _files_since(core, planned.program.inputs)
        view = replace(view, labels=labels, kept_labels=kept_labels, files_since=since)
        transaction.views.append(NewView(view, planned.program, statics))
        warnings += [*_frozen(planned), *map(_growing, planned.collected)]
        notices += _missing_files(core, view)
        if transaction.explicit:
            words = "begins with the COMMIT of this transaction: rows that it inserts are not in the view"
            notices.append(f'continuous view "{view.name}" {words}')
    if dict(view.options).get("refresh_policy") == "incremental":
        _require_incremental(transaction, view)
    add_object(transaction, catalog, view)
    if rights is not None and not is_temporary(view):
        set_rights(transaction, view.oid, rights)
    return Result(tag, notices=(*warnings, *(SqlError("00000", text) for text in notices)))


def _require_incremental(transaction: Transaction, view: View) -> None:
    """Raises 0A000 for a view of which something is computed anew at each read."""
    program = next((new.program for new in transaction.views if new.view.oid == view.oid), None)
    if program is None:
        construct = "an ordinary view with refresh_policy = 'incremental'"
        raise unsupported(construct, "Use CREATE MATERIALIZED VIEW, or leave the option out.")
    require_incremental(program.final, frozenset(static.name for static in program.statics))


def _derived(core: Core, view: View, statement: CreateView) -> NewView:
    """The program of a view that reads no stream; what it reads is looked at when it is read."""
    origin = Origin(view.time_zone, core.options.server_name)
    return NewView(view, derived(statement.query, origin), {})


def _refresh_view(core: Core, transaction: Transaction, catalog: Catalog, statement: CreateView) -> Result:
    """An ordinary view becomes a continuous one, unless storage still has the program that it had before."""
    view, before = statement.view, statement.refreshed
    assert before is not None
    require_same(catalog, before)
    if core.find_view(view.oid) is None:
        change_object(transaction, catalog, view)
        transaction.views.append(_derived(core, view, statement))
    elif not before.populated:
        change_object(transaction, catalog, replace(before, populated=True))
    return Result("REFRESH MATERIALIZED VIEW")


def _frozen(planned: Planned) -> list[SqlError]:
    """Warnings of tables that the view reads once, with the reason; notices where the view's options ask for it."""
    if not planned.obstacles:
        return [SqlError("00000", text) for text in planned.notices]
    reasons = ", ".join(item.construct for item in planned.obstacles)
    hint = " ".join(dict.fromkeys(item.instead for item in planned.obstacles))
    detail = f"Tables cannot be read as they are because of {reasons}."
    return [SqlError(_WARNING, text, detail, hint) for text in planned.notices]


def _growing(collected: Collected) -> SqlError:
    """A notice of a stream whose rows the view keeps."""
    text = f'the view keeps the rows of stream "{collected.stream}": {collected.reason}'
    if not collected.grows:
        return SqlError("00000", text, "Rows leave its state once they are older than the query looks back.")
    detail = "Its state grows with the stream, by the columns and rows that the query uses."
    hint = "Filter the stream, group it by a key before it meets anything else, or bound its rows by retention."
    return SqlError("00000", text, detail, hint)


def _files_since(core: Core, inputs: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """By stream that follows a folder, the LSN behind which a new view has its files: those that are still there, from
    the last on that is not as it arrived."""
    feeds = [(oid, core.streams[oid].feed) for oid in inputs if oid in core.streams]
    return tuple((oid, feed.intact_since()) for oid, feed in feeds if isinstance(feed, FileFeed))


def _missing_files(core: Core, view: View) -> Iterator[str]:
    """Notices of files that a new view does not have, since they are gone."""
    for oid, since in view.files_since:
        stream = core.streams[oid]
        assert isinstance(stream.feed, FileFeed)
        count = sum(len(arrived.files) for arrived in stream.feed.files(-1, since))
        if count:
            files = "1 file that arrived before is" if count == 1 else f"{count} files that arrived before are"
            yield (
                f'continuous view "{view.name}" does not have all files of stream "{stream.stream.name}": '
                f"{files} left out, the last of which is no longer as it arrived"
            )


def _replace_view(core: Core, transaction: Transaction, catalog: Catalog, old: View, statement: CreateView) -> None:
    """Another query under a view's identity, which the views that read it go on reading."""
    above = {before.oid for before, _ in statement.above}
    if old.oid != statement.view.oid or {item.oid for item in readers(catalog, old.oid)} != above:
        raise OutdatedError
    view = _kept(statement.view, old)
    if view.derived and core.find_view(view.oid) is not None:
        view = as_plain(view)  # storage still has the program that it had before
    if view.derived:
        transaction.views.append(_derived(core, view, statement))
    change_object(transaction, catalog, view)
    follow(transaction, catalog, statement.above)


def _kept(new: View, old: View) -> View:
    """A view that replaces another, with what was granted on its columns and said of both."""
    columns = {column.name: column for column in old.columns}
    kept = (
        replace(column, grants=before.grants, comment=before.comment)
        if (before := columns.get(column.name)) is not None
        else column
        for column in new.columns
    )
    return replace(new, columns=tuple(kept), comment=old.comment)


def _refuse_files(statement: CreateView) -> None:
    """Files can change at any time, and a view would not notice."""
    for item in walk(statement.query.relation):
        if isinstance(item, Scan) and item.kind == "files":
            instead = "Copy its rows into a table (CREATE TABLE AS), or join it in the query that reads the view."
            construct = f'foreign table "{item.name}" of files in a continuous view'
            raise unsupported(construct, instead)


def _plan(statement: CreateView, origin: Origin, statistics: Statistics) -> Planned:
    """The view's program. An error says where the query names its stream."""
    try:
        chosen = dict(statement.view.options).get("tables")
        tables: Tables | None = "frozen" if chosen == "frozen" else "live" if chosen == "live" else None
        return plan(statement.query, statement.keeping, False, statistics, origin, tables)
    except SqlError as error:
        if error.position is None:
            error.position = statement.position
        raise


def _evaluate(transaction: Transaction, static: Static, statement: CreateView) -> pa.Table:
    """A static pipeline's rows now; locks keep the tables as they are until the view is committed."""
    table = transaction.writer().query(static.relation, {}, (), statement.view.time_zone)
    return table.rename_columns([stored_name(column) for column in static.columns])


def _skipped(name: str) -> SqlError:
    return SqlError("42P07", f'relation "{name}" already exists, skipping')


def _drop_types(session: Environment, transaction: Transaction, catalog: Catalog, drop: DropType) -> None:
    """Types, after what needs them."""
    for oid in drop.drops:
        catalog = drop_object(transaction, catalog, oid)
    for statement in drop.alterations:
        _alter_table(session, transaction, transaction.catalog or catalog, statement)
    forget_types(transaction, transaction.catalog or catalog, drop.items)


def end_temporary(core: Core, transaction: Transaction) -> None:
    """ON COMMIT: rows of temporary tables go, or the tables themselves."""
    writer = transaction.write
    if writer is None:
        return
    catalog = transaction.sees(core.catalog)
    tables = [item for item in catalog.contents(PG_TEMP) if isinstance(item, Table) and item.on_commit]
    if not tables:
        return
    emptied = [table for table in tables if table.on_commit == "delete" and writer.has_changed(table)]
    if emptied:
        writer.truncate(emptied)
    take_away(transaction, catalog, drop_temporary((table for table in tables if table.on_commit == "drop"), catalog))
