"""Actions of ALTER TABLE on columns: ADD, DROP, TYPE, and the properties of a column.

Owns: PostgreSQL's errors for these actions.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from pglast.enums import AlterTableType

from catalog.objects import ColumnDefinition
from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from planner.algebra.nodes import Cast, Scalar
from planner.algebra.walk import used_columns
from planner.bind.binder import bind_expression
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.domains import into_domain
from planner.bind.conversion.rows import check_kept
from planner.bind.definitions.alter_table.alteration import Alteration, drop_views, needed, release, take_constraints
from planner.bind.definitions.dependents import broken_by
from planner.bind.definitions.relations.columns import add_column, constrain_column, defaulting
from planner.bind.definitions.sequences import check_identity, with_options
from planner.bind.lookup.columns import SYSTEM_COLUMNS
from planner.bind.lookup.relations import describe
from planner.bind.lookup.type_names import display, type_or_domain
from planner.bind.scalars.stored_expressions import bind_tree
from planner.statements.definitions import AlterSequence


def add(change: Alteration, command: Any) -> None:
    """ADD COLUMN."""
    binding, parts, node = change.binding, change.parts, command.def_
    if parts.column(node.colname) is not None:
        message = f'column "{node.colname}" of relation "{parts.table}" already exists'
        if not command.missing_ok:
            raise SqlError("42701", message)
        change.notices.append(f"{message}, skipping")
        return
    known, keys = len(parts.checks), len(parts.foreign)
    add_column(binding, parts, node, False)
    constrain_column(binding, parts, node, False)
    take_constraints(change, known, keys)


def drop(change: Alteration, command: Any) -> None:
    """DROP COLUMN, with what reads it if CASCADE says so."""
    name, table = command.name, change.before
    if name in SYSTEM_COLUMNS:
        raise SqlError("0A000", f'cannot drop system column "{name}"')
    if change.parts.column(name) is None and command.missing_ok:
        change.notices.append(f'column "{name}" of relation "{table.name}" does not exist, skipping')
        return
    drop_column(change, name)


def drop_column(change: Alteration, name: str) -> None:
    """A column less. Raises 42703, and 2BP01 where something reads it and there is no CASCADE."""
    table = change.before
    _release_generated(change, name)
    index = change.index(name)
    del change.parts.columns[index]
    change.values.pop(name, None)
    change.gone.add(name)
    change.parts.keys = [key for key in change.parts.keys if name not in key.columns]
    change.indexes = [index for index in change.indexes if name not in index.columns]
    change.foreign = [key for key in change.foreign if name not in key.columns]
    change.checks = [check for check in change.checks if name not in _columns_of(change, check.expression)]
    what = f"column {name} of {describe(change.binding, table)}"
    release(change, what, lambda key: name in key.target_columns)
    drop_views(change, what)
    for sequence in change.binding.context.catalog.owned(table.oid):
        if sequence.owner == (table.oid, name):
            change.drops[sequence.oid] = None


def _generated_from(change: Alteration, name: str) -> list[str]:
    """The generated columns that read a column."""
    return [
        column.name
        for column in change.parts.columns
        if column.generated is not None and name in _columns_of(change, column.generated)
    ]


def _release_generated(change: Alteration, name: str) -> None:
    """Generated columns that read a column that goes: an error, or with CASCADE they go too."""
    table = describe(change.binding, change.before)
    what = f"column {name} of {table}"
    reading = _generated_from(change, name)
    if reading and not change.cascade:
        raise needed(what, [f"column {other} of {table} depends on {what}" for other in reading])
    for other in reading:
        change.notices.append(f"drop cascades to column {other} of {table}")
        drop_column(change, other)


def _columns_of(change: Alteration, expression: str) -> set[str]:
    scalar = bind_expression(expression, change.scan.columns, replace(change.binding.context, parameter_types=()))
    return {column.name for column in used_columns(scalar)}


def change_type(change: Alteration, command: Any) -> None:
    """ALTER COLUMN ... TYPE."""
    binding, node, name = change.binding, command.def_, command.name
    index = change.index(name)
    known = change.parts.columns[index]
    kind, domain = type_or_domain(binding, node.typeName)
    check_kept(binding.context.catalog, name, kind)
    if name in change.gone:
        raise SqlError("0A000", f'cannot alter type of column "{name}" twice')
    _refuse_read(change, name)
    _refuse_generated(change, known)
    change.gone.add(name)
    change.indexes = [replace(item, shown=(), types=()) if name in item.columns else item for item in change.indexes]
    if known.generated is not None:
        _regenerated(change, index, kind, node)
        return
    converted = _converted(change, known, kind, node)
    change.values[name] = into_domain(binding, converted, domain)
    default = known.default
    if default is not None and not known.identity:
        try:
            bind_expression(default, (), replace(binding.context, parameter_types=()), kind)
        except SqlError as error:
            if not error.sqlstate.startswith("22"):  # a value that is too long fails where it is stored
                message = f'default for column "{name}" cannot be cast automatically to type {display(kind)}'
                raise SqlError("42804", message) from None
    change.parts.columns[index] = replace(known, type=kind, domain=domain)
    for sequence in binding.context.catalog.owned(change.before.oid):
        if known.identity and sequence.owner == (change.before.oid, name):
            item = type("Item", (), {"defname": "as", "arg": node.typeName})
            change.options.append(AlterSequence(with_options(binding, sequence, (item,), False, True)))


def widen(change: Alteration, column: ColumnDefinition, kind: SqlType) -> None:
    """A column of a type that contains all of its values and looks equal to clients. Raises 0A000 where it is read."""
    _refuse_read(change, column.name)
    _refuse_generated(change, column)
    change.gone.add(column.name)
    change.values[column.name] = Cast(change.values[column.name], kind)
    change.parts.columns[change.index(column.name)] = replace(column, type=kind)


def _refuse_generated(change: Alteration, column: ColumnDefinition) -> None:
    """Another type of what a generated column reads."""
    for other in _generated_from(change, column.name):
        detail = f'Column "{column.name}" is used by generated column "{other}".'
        raise SqlError("0A000", "cannot alter type of a column used by a generated column", detail)


def _regenerated(change: Alteration, index: int, kind: SqlType, node: Any) -> None:
    """Another type of a generated column, whose values are computed again. Raises 42611 and 42804."""
    known = change.parts.columns[index]
    if node.raw_default is not None:
        message = "cannot specify USING when altering type of generated column"
        raise SqlError("42611", message, f'Column "{known.name}" is a generated column.')
    assert known.generated is not None
    context = replace(change.binding.context, parameter_types=())
    try:
        bind_expression(known.generated, change.scan.columns, context, kind)
    except SqlError:
        words = f'generation expression for column "{known.name}" cannot be cast automatically to type'
        raise SqlError("42804", f"{words} {display(kind)}") from None
    change.values.pop(known.name, None)
    change.parts.columns[index] = replace(known, type=kind)


def _converted(change: Alteration, known: ColumnDefinition, kind: SqlType, node: Any) -> Scalar:
    binding, value = change.binding, change.values[known.name]
    if node.raw_default is not None:
        value = bind_tree(binding, node.raw_default, change.scan.columns, None, "USING")
    elif _only_wider(known.type, kind):
        return value
    found = coerce(binding, value, kind, "assignment", node.raw_default)
    if found is not None:
        return found
    if node.raw_default is not None:
        words = f'result of USING clause for column "{known.name}" cannot be cast automatically to type'
        raise SqlError("42804", f"{words} {display(kind)}", hint="You might need to add an explicit cast.")
    message = f'column "{known.name}" cannot be cast automatically to type {display(kind)}'
    raise SqlError("42804", message, hint=f'You might need to specify "USING {known.name}::{display(kind)}".')


def _only_wider(old: SqlType, new: SqlType) -> bool:
    """Whether every stored value is one of the new type as it stands."""
    if old.name not in ("varchar", "text") or new.name not in ("varchar", "text"):
        return False
    return not new.modifiers or (bool(old.modifiers) and new.modifiers >= old.modifiers)


def _refuse_read(change: Alteration, name: str) -> None:
    """A view that uses a column forbids another type of it."""
    columns = tuple(column for column in change.before.columns if column.name != name)
    keys = tuple(key for key in change.before.keys if name not in key.columns)
    broken = broken_by(change.binding, replace(change.before, columns=columns, keys=keys))
    if broken:
        detail = f'rule _RETURN on {describe(change.binding, broken[0])} depends on column "{name}"'
        raise SqlError("0A000", "cannot alter type of a column used by a view or rule", detail)


def default(change: Alteration, command: Any) -> None:
    """SET DEFAULT and DROP DEFAULT."""
    index = change.index(command.name)
    known = change.parts.columns[index]
    if known.identity:
        hint = None if command.def_ is not None else "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."
        message = f'column "{known.name}" of relation "{change.before.name}" is an identity column'
        raise SqlError("42601", message, hint=hint)
    if known.generated is not None:
        hint = None if command.def_ is not None else "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."
        message = f'column "{known.name}" of relation "{change.before.name}" is a generated column'
        raise SqlError("42601", message, hint=hint)
    if command.def_ is None:
        change.parts.columns[index] = replace(known, default=None, sequences=())
        return
    change.parts.columns[index] = defaulting(change.binding, known, command.def_)


def drop_expression(change: Alteration, command: Any) -> None:
    """DROP EXPRESSION: a generated column becomes one like others."""
    index = change.index(command.name)
    known = change.parts.columns[index]
    if known.generated is not None:
        change.parts.columns[index] = replace(known, generated=None)
        return
    message = f'column "{known.name}" of relation "{change.before.name}" is not a stored generated column'
    if not command.missing_ok:
        raise SqlError("55000", message)
    change.notices.append(f"{message}, skipping")


def not_null(change: Alteration, command: Any) -> None:
    """SET NOT NULL and DROP NOT NULL."""
    index = change.index(command.name)
    known = change.parts.columns[index]
    if command.subtype == AlterTableType.AT_SetNotNull:
        change.parts.columns[index] = replace(known, not_null=True)
        return
    if known.identity:
        raise SqlError("42601", f'column "{known.name}" of relation "{change.before.name}" is an identity column')
    if any(key.primary and known.name in key.columns for key in change.parts.keys):
        raise SqlError("42P16", f'column "{known.name}" is in a primary key')
    change.lost_nulls |= known.not_null
    change.parts.columns[index] = replace(known, not_null=False)


def identity(change: Alteration, command: Any) -> None:
    """ADD GENERATED, SET GENERATED and DROP IDENTITY."""
    binding, table = change.binding, change.before
    index = change.index(command.name)
    known = change.parts.columns[index]
    column = f'column "{known.name}" of relation "{table.name}"'
    if command.subtype == AlterTableType.AT_AddIdentity:
        check_identity(known.type)
        if not known.not_null:
            raise SqlError("55000", f"{column} must be declared NOT NULL before identity can be added")
        if known.identity:
            raise SqlError("55000", f"{column} is already an identity column")
        if known.default is not None or known.generated is not None:
            raise SqlError("55000", f"{column} already has a default value")
        change.parts.owned[known.name] = command.def_.options or ()
        change.parts.columns[index] = replace(known, identity=command.def_.generated_when)
        return
    if not known.identity:
        if not command.missing_ok:
            raise SqlError("55000", f"{column} is not an identity column")
        change.notices.append(f"{column} is not an identity column, skipping")
        return
    for item in command.def_ or ():
        if item.defname == "generated":
            change.parts.columns[index] = known = replace(known, identity=chr(item.arg.ival))
    items = [item for item in command.def_ or () if item.defname != "generated"]
    if known.name in change.parts.owned:  # the same command adds it, whose sequence PostgreSQL leaves as it is
        return
    own = next(item for item in binding.context.catalog.owned(table.oid) if item.owner == (table.oid, known.name))
    if command.subtype == AlterTableType.AT_DropIdentity:
        change.drops[own.oid] = None
        change.parts.columns[index] = replace(known, identity="", default=None, sequences=())
        return
    if items:
        before = next((item for item in change.options if item.sequence.oid == own.oid), None)
        if before is not None:  # several commands of one statement
            change.options.remove(before)
            own = before.sequence
        restarts = any(item.defname == "restart" for item in items) or (before is not None and before.restarts)
        change.options.append(AlterSequence(with_options(binding, own, items, False, True), restarts))
