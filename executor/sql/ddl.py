"""CREATE, ALTER and DROP: what they change in a transaction.

Owns: turning bound DDL statements into a new catalog, table files and new continuous views within the transaction; the
catalog change that the log record carries. A change becomes visible, durable and numbered when the transaction commits.
"""

from __future__ import annotations

import secrets

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
    is_temporary,
    null_value,
)
from catalog.values.errors import WARNING, SqlError, undefined_table
from catalog.values.times.infinite_dates import require_finite
from executor.core.core import Core
from executor.database.database import Database
from executor.definitions.catalog_changes import add_object, change_object, drop_object, follow, free_oid, take_away
from executor.definitions.extensions import alter_extension, create_extension, forget_extensions
from executor.definitions.roles import change_defaults, change_rights, change_roles, set_rights
from executor.definitions.routines import create_function, forget_functions, move_functions
from executor.definitions.unchanged_objects import require_free, require_same
from executor.definitions.user_types import define_type, forget_types, move_types
from executor.sql.alter_table import alter_rows
from executor.sql.environment import Environment
from executor.sql.view_options import alter_options
from executor.sql.view_plans import planned_view, require_policy, require_unused_watermark, view_of
from executor.sql.view_starts import leave_history, missing_files, starts
from executor.tables.temporary import drop_temporary
from executor.transactions.result import Result
from executor.transactions.transaction import NewView, OutdatedError, Transaction
from planner.bind.definitions.dependents import readers
from planner.bind.definitions.sequences import call_of, require_within
from planner.incremental.names import stored_name
from planner.incremental.programs.labels import labels_of
from planner.incremental.programs.program import Program, Static
from planner.statements import definitions
from planner.statements.definitions import (
    AlterExtension,
    AlterSchema,
    AlterSequence,
    AlterTable,
    AlterType,
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
from planner.statements.statement import AlterView, CreateView

#: What ``define`` runs.
Definition = definitions.Definition | CreateView | AlterView


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
            if isinstance(before, Stream) and isinstance(item, Stream):
                if before.option("watermark") != item.option("watermark"):
                    require_unused_watermark(core, before)
                if before.kept_since != item.kept_since:
                    leave_history(core, before)
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
        case AlterView(tag=tag):
            alter_options(core, transaction, catalog, statement)
            return Result(tag)
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
    core = database.core
    view = view_of(core, catalog, statement)
    tag = "CREATE MATERIALIZED VIEW" if view.materialized else "CREATE VIEW"
    if statement.refreshed is not None:
        return _refresh_view(core, transaction, catalog, statement)
    if statement.exists:
        return Result(tag, notices=(_skipped(view.name),))
    missing = [oid for oid in view.depends_on if oid not in catalog.objects]
    if missing:
        raise undefined_table(str(missing[0]))
    rights = None
    old = catalog.at(view.schema, view.name) if statement.replaces else None
    if isinstance(old, View) and not (old.keeps_rows or view.keeps_rows or (old.derived and view.derived)):
        _replace_view(core, transaction, catalog, old, replace(statement, view=view))
        return Result(tag, notices=tuple(SqlError("00000", text) for text in statement.notices))
    if isinstance(old, View):
        rights = catalog.rights_of(old.oid)
        view = _kept(view, old)
        catalog = drop_object(transaction, catalog, old.oid)
    view = replace(view, oid=free_oid(core, catalog, view))
    notices = list(statement.notices)
    warnings = [SqlError(WARNING, text) for text in statement.warnings]
    planned = planned_view(core, catalog, replace(statement, view=view)) if view.continuous else None
    if planned is None:
        require_policy(core, view, None)
    elif view.derived:
        transaction.views.append(NewView(view, planned.program, {}))
        warnings += planned.notices
    else:
        view = _begin_view(core, transaction, catalog, replace(statement, view=view), planned.program)
        warnings += planned.notices
        notices += missing_files(core, view)
        if transaction.explicit and not dict(view.files_since).keys() >= set(planned.program.inputs):
            words = "begins with the COMMIT of this transaction: rows that it inserts are not in the view"
            notices.append(f'continuous view "{view.name}" {words}')
    add_object(transaction, catalog, view)
    if rights is not None and not is_temporary(view):
        set_rights(transaction, view.oid, rights)
    return Result(tag, notices=(*warnings, *(SqlError("00000", text) for text in notices)))


def _begin_view(
    core: Core, transaction: Transaction, catalog: Catalog, statement: CreateView, program: Program
) -> View:
    """A view over streams starts with the commit; its static pipelines' results are of now."""
    view = statement.view
    statics = {static.name: _evaluate(transaction, static, view) for static in program.kept_statics}
    for table in statics.values():
        require_finite(table.to_batches(), "a continuous view")
    labels, kept_labels = labels_of(program)
    since = starts(core, catalog, statement, program.inputs)
    begun = replace(view, labels=labels, kept_labels=kept_labels, files_since=since)
    transaction.views.append(NewView(begun, program, statics))
    return begun


def _derived(core: Core, catalog: Catalog, view: View, statement: CreateView) -> NewView:
    """The program of a view that reads no stream; what it reads is looked at when it is read."""
    return NewView(view, planned_view(core, catalog, replace(statement, view=view)).program, {})


def _refresh_view(core: Core, transaction: Transaction, catalog: Catalog, statement: CreateView) -> Result:
    """An ordinary view becomes a continuous one, unless storage still has the program that it had before."""
    view, before = statement.view, statement.refreshed
    assert before is not None
    require_same(catalog, before)
    if core.find_view(view.oid) is None:
        change_object(transaction, catalog, view)
        transaction.views.append(_derived(core, catalog, view, statement))
    elif not before.populated:
        change_object(transaction, catalog, replace(before, populated=True))
    return Result("REFRESH MATERIALIZED VIEW")


def _replace_view(core: Core, transaction: Transaction, catalog: Catalog, old: View, statement: CreateView) -> None:
    """Another query under a view's identity, which the views that read it go on reading."""
    above = {before.oid for before, _ in statement.above}
    if old.oid != statement.view.oid or {item.oid for item in readers(catalog, old.oid)} != above:
        raise OutdatedError
    view = _kept(statement.view, old)
    if not view.continuous:
        require_policy(core, view, None)
    if view.derived:
        transaction.views.append(_derived(core, catalog, view, statement))
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


def _evaluate(transaction: Transaction, static: Static, view: View) -> pa.Table:
    """A static pipeline's rows now; locks keep the tables as they are until the view is committed."""
    table = transaction.writer().query(static.relation, {}, (), view.time_zone)
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
