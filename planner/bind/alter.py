"""ALTER TABLE: its actions, in PostgreSQL's order of passes -> one new definition and the rows that it needs.

Owns: what each action changes of a definition, and PostgreSQL's errors. Which views forbid it is asked of
``planner.bind.dependents``; RENAME is ``planner.bind.renames``.

https://www.postgresql.org/docs/15/sql-altertable.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pglast.enums import AlterTableType, ConstrType, DropBehavior, ObjectType
from pglast.stream import RawStream

from catalog.errors import SqlError, undefined_table, unsupported
from catalog.objects import ColumnDefinition, ForeignKey, Index, Table, View
from catalog.types import BOOL, INT8, SqlType
from planner.algebra import Filter, Limit, Project, Relation, Scan
from planner.bind.assigning import default_of
from planner.bind.columns import (
    Parts,
    add_column,
    add_table_constraint,
    check_default,
    constrain_column,
    make_check,
    make_foreign_key,
    with_sequences,
)
from planner.bind.context import Binding
from planner.bind.dependents import broken_by, readers
from planner.bind.renames import constraint_names
from planner.bind.sequences import numbered, with_options
from planner.bind.sources import scan_object
from planner.bind.texts import bind_expression, bind_tree
from planner.bind.typenames import type_of
from planner.bind.types import coerce, display
from planner.bind.views import bind_alter_view
from planner.expression import Call, ColumnRef, Literal, Scalar
from planner.statements import AlterSequence, AlterTable, NoOperation, Statement
from planner.walk import used_columns

#: What has no meaning here: owners, storage and statistics.
_NOTHING: Final = frozenset(
    (
        *(AlterTableType.AT_ChangeOwner, AlterTableType.AT_SetStatistics, AlterTableType.AT_SetStorage),
        *(AlterTableType.AT_SetRelOptions, AlterTableType.AT_ResetRelOptions, AlterTableType.AT_ReplicaIdentity),
        *(AlterTableType.AT_ClusterOn, AlterTableType.AT_SetLogged, AlterTableType.AT_ValidateConstraint),
    )
)


@dataclass(slots=True)
class Alteration:
    """A table on its way from one definition to the next; ``values`` are its columns over the old row."""

    binding: Binding
    before: Table
    scan: Scan
    parts: Parts
    values: dict[str, Scalar]
    foreign: list[ForeignKey]
    checks: list[Any]
    indexes: list[Index]
    new_checks: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)  # columns dropped or of another type
    lost_keys: bool = False
    lost_nulls: bool = False
    cascade: bool = False
    changes: dict[int, Table] = field(default_factory=dict)
    options: list[AlterSequence] = field(default_factory=list)
    drops: dict[int, None] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    def index(self, name: str) -> int:
        """Where a column is. Raises 42703."""
        for index, column in enumerate(self.parts.columns):
            if column.name == name:
                return index
        raise SqlError("42703", f'column "{name}" of relation "{self.before.name}" does not exist')


def start(binding: Binding, table: Table) -> Alteration:
    """Nothing has changed yet."""
    scan, _ = scan_object(binding, table, None, False)
    names = set(constraint_names(table))
    parts = Parts(table.name, list(table.columns), list(table.keys), names=names, altered=True)
    values: dict[str, Scalar] = {
        name: ColumnRef(column) for name, column in zip(scan.sources, scan.columns, strict=True)
    }
    foreign, checks, indexes = list(table.foreign_keys), list(table.checks), list(table.indexes)
    return Alteration(binding, table, scan, parts, values, foreign, checks, indexes)


def bind_alter(binding: Binding, node: Any) -> Statement:
    """ALTER TABLE, VIEW, INDEX and so on, but for RENAME."""
    if node.objtype in (ObjectType.OBJECT_VIEW, ObjectType.OBJECT_MATVIEW):
        return bind_alter_view(binding, node) or NoOperation("ALTER VIEW")
    words = ObjectType(node.objtype).name.removeprefix("OBJECT_").replace("_", " ")
    name = node.relation
    found = binding.context.catalog.find(name.relname, name.schemaname, binding.context.search_path)
    if found is None:
        if not node.missing_ok:
            raise undefined_table(name.relname)
        return NoOperation(f"ALTER {words}", (f'relation "{name.relname}" does not exist, skipping',))
    if all(command.subtype in _NOTHING for command in node.cmds):
        return NoOperation(f"ALTER {words}")
    if isinstance(found, View):
        return bind_alter_view(binding, node) or NoOperation("ALTER VIEW")
    if not isinstance(found, Table):
        raise unsupported(f"this form of ALTER {words}", "Drop it and create it again.", binding.position(name))
    if node.objtype != ObjectType.OBJECT_TABLE:
        raise SqlError("42809", f'"{found.name}" is not a {words.lower()}')
    change = start(binding, found)
    for command in sorted(node.cmds, key=_pass):
        _act(change, command)
    return finish(change, "ALTER TABLE")


def _pass(command: Any) -> int:
    """PostgreSQL's order of actions (tablecmds.c, AlterTablePass)."""
    kind = command.subtype
    if kind == AlterTableType.AT_AddConstraint:
        return 4 if command.def_.contype in (ConstrType.CONSTR_PRIMARY, ConstrType.CONSTR_UNIQUE) else 5
    if kind == AlterTableType.AT_ColumnDefault and command.def_ is None:
        return 0
    return _ACTIONS[kind][0] if kind in _ACTIONS else 6


def _act(change: Alteration, command: Any) -> None:
    change.cascade = command.behavior == DropBehavior.DROP_CASCADE
    if command.subtype in _NOTHING:
        return
    if command.subtype not in _ACTIONS:
        words = AlterTableType(command.subtype).name.removeprefix("AT_")
        raise unsupported(f"ALTER TABLE ({words})", position=change.binding.position(command.def_))
    _ACTIONS[command.subtype][1](change, command)


# --- columns ---------------------------------------------------------------------------------------------------------


def _add_column(change: Alteration, command: Any) -> None:
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
    _take_constraints(change, known, keys)


def _drop_column(change: Alteration, command: Any) -> None:
    name, table = command.name, change.before
    if change.parts.column(name) is None and command.missing_ok:
        change.notices.append(f'column "{name}" of relation "{table.name}" does not exist, skipping')
        return
    index = change.index(name)
    _release_generated(change, name)
    del change.parts.columns[index]
    change.values.pop(name, None)
    change.gone.add(name)
    change.parts.keys = [key for key in change.parts.keys if name not in key.columns]
    change.indexes = [index for index in change.indexes if name not in index.columns]
    change.foreign = [key for key in change.foreign if name not in key.columns]
    change.checks = [check for check in change.checks if name not in _columns_of(change, check.expression)]
    what = f"column {name} of table {table.name}"
    _release(change, what, lambda key: name in key.target_columns)
    _drop_views(change, what)
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
    """Generated columns that read a column that goes."""
    what = f"column {name} of table {change.before.name}"
    reading = _generated_from(change, name)
    if reading and change.cascade:
        raise unsupported(f"CASCADE to column {reading[0]}", "Drop the generated column first.")
    if reading:
        raise _needed(what, [f"column {other} of table {change.before.name} depends on {what}" for other in reading])


def _columns_of(change: Alteration, expression: str) -> set[str]:
    scalar = bind_expression(expression, change.scan.columns, replace(change.binding.context, parameter_types=()))
    return {column.name for column in used_columns(scalar)}


def _release(change: Alteration, what: str, refers: Callable[[ForeignKey], bool]) -> None:
    """Foreign keys of other tables that need what goes: an error, or with CASCADE they go too."""
    lines = []
    for other in change.binding.context.catalog.dependents(change.before.oid):
        other = change.changes.get(other.oid, other)
        if not isinstance(other, Table):
            continue
        lost = [key for key in other.foreign_keys if key.target == change.before.oid and refers(key)]
        lines += [f"constraint {key.name} on table {other.name} depends on {what}" for key in lost]
        if lost:
            kept = tuple(key for key in other.foreign_keys if key not in lost)
            change.changes[other.oid] = replace(other, foreign_keys=kept)
    if not lines:
        return
    if not change.cascade:
        raise _needed(what, lines)
    change.notices += [f"drop cascades to {line.partition(' depends on ')[0]}" for line in lines]


def _needed(what: str, lines: list[str]) -> SqlError:
    hint = "Use DROP ... CASCADE to drop the dependent objects too."
    message = f"cannot drop {what} because other objects depend on it"
    return SqlError("2BP01", message, "\n".join(lines), hint)


def _drop_views(change: Alteration, what: str) -> None:
    """Views that need what goes: an error, or with CASCADE they go, and those above them first."""
    catalog = change.binding.context.catalog
    broken = [view for view in broken_by(change.binding, _interim(change)) if view.oid not in change.drops]
    for view in list(broken):
        broken += [above for above in readers(catalog, view.oid) if above not in broken]
    if not broken:
        return
    if not change.cascade:
        raise _needed(what, [f"view {view.name} depends on {what}" for view in broken])
    change.notices += [f"drop cascades to view {view.name}" for view in broken]
    change.drops = {**{view.oid: None for view in reversed(broken)}, **change.drops}


def _interim(change: Alteration) -> Table:
    """The table as it would be now."""
    columns, keys = tuple(change.parts.columns), tuple(change.parts.keys)
    foreign, checks = tuple(change.foreign), tuple(change.checks)
    indexes = tuple(change.indexes)
    return replace(change.before, columns=columns, keys=keys, foreign_keys=foreign, checks=checks, indexes=indexes)


def _change_type(change: Alteration, command: Any) -> None:
    binding, node, name = change.binding, command.def_, command.name
    index = change.index(name)
    known = change.parts.columns[index]
    kind = type_of(binding, node.typeName)
    if kind.element is not None:
        instead = "Add a column of that type and fill it with UPDATE."
        raise unsupported("a change to an array type", instead, binding.position(node.typeName))
    if name in change.gone:
        raise SqlError("0A000", f'cannot alter type of column "{name}" twice')
    _refuse_read(change, name)
    _refuse_generated(change, known)
    change.gone.add(name)
    change.values[name] = _converted(change, known, kind, node)
    default = known.default
    if default is not None and not known.identity:
        try:
            bind_expression(default, (), replace(binding.context, parameter_types=()), kind)
        except SqlError:
            message = f'default for column "{name}" cannot be cast automatically to type {display(kind)}'
            raise SqlError("42804", message) from None
    change.parts.columns[index] = replace(known, type=kind)
    for sequence in binding.context.catalog.owned(change.before.oid):
        if known.identity and sequence.owner == (change.before.oid, name):
            item = type("Item", (), {"defname": "as", "arg": node.typeName})
            change.options.append(AlterSequence(with_options(binding, sequence, (item,), False, True)))


def _refuse_generated(change: Alteration, column: ColumnDefinition) -> None:
    """Another type of what a generated column reads, or of one."""
    if column.generated is not None:
        raise unsupported("another type of a generated column", "Create the table again.")
    for other in _generated_from(change, column.name):
        detail = f'Column "{column.name}" is used by generated column "{other}".'
        raise SqlError("0A000", "cannot alter type of a column used by a generated column", detail)


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
        detail = f'rule _RETURN on view {broken[0].name} depends on column "{name}"'
        raise SqlError("0A000", "cannot alter type of a column used by a view or rule", detail)


# --- what a column has -----------------------------------------------------------------------------------------------


def _default(change: Alteration, command: Any) -> None:
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
    check_default(change.binding, known, command.def_)
    tree, sequences = numbered(change.binding, command.def_)
    change.parts.columns[index] = replace(known, default=RawStream()(tree), sequences=sequences)


def _not_null(change: Alteration, command: Any) -> None:
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


def _identity(change: Alteration, command: Any) -> None:
    binding, table = change.binding, change.before
    index = change.index(command.name)
    known = change.parts.columns[index]
    column = f'column "{known.name}" of relation "{table.name}"'
    if command.subtype == AlterTableType.AT_AddIdentity:
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
    own = next(item for item in binding.context.catalog.owned(table.oid) if item.owner == (table.oid, known.name))
    if command.subtype == AlterTableType.AT_DropIdentity:
        change.drops[own.oid] = None
        change.parts.columns[index] = replace(known, identity="", default=None, sequences=())
        return
    items = [item for item in command.def_ if item.defname != "generated"]
    for item in command.def_:
        if item.defname == "generated":
            change.parts.columns[index] = replace(known, identity=chr(item.arg.ival))
    if items:
        restarts = any(item.defname == "restart" for item in items)
        change.options.append(AlterSequence(with_options(binding, own, items, False, True), restarts))


# --- constraints -----------------------------------------------------------------------------------------------------


def _add_constraint(change: Alteration, command: Any) -> None:
    node = command.def_
    if node.indexname is not None:
        raise unsupported("USING INDEX", "Name the columns.", change.binding.position(node))
    if node.skip_validation and not node.initially_valid:
        raise unsupported("NOT VALID", "Leave it out.", change.binding.position(node))
    known, keys = len(change.parts.checks), len(change.parts.foreign)
    add_table_constraint(change.binding, change.parts, node, False)
    _take_constraints(change, known, keys)


def _take_constraints(change: Alteration, checks: int, foreign: int) -> None:
    """The CHECKs and foreign keys that were read after so many others."""
    binding, parts = change.binding, change.parts
    for item in parts.checks[checks:]:
        change.checks.append(made := make_check(binding, parts, item))
        change.new_checks.add(made.name)
    for key in parts.foreign[foreign:]:
        change.foreign.append(make_foreign_key(binding, parts, _interim(change), key))


def _alter_constraint(change: Alteration, command: Any) -> None:
    """ALTER CONSTRAINT name [[NOT] DEFERRABLE] [INITIALLY DEFERRED | IMMEDIATE]: what is not said is not so."""
    node, table = command.def_, change.before
    names = [key.name for key in change.foreign]
    if node.conname not in names:
        words = f'constraint "{node.conname}" of relation "{table.name}"'
        if node.conname in constraint_names(_interim(change)):
            raise SqlError("42809", f"{words} is not a foreign key constraint")
        raise SqlError("42704", f"{words} does not exist")
    place = names.index(node.conname)
    deferrable, deferred = bool(node.deferrable), bool(node.initdeferred)
    change.foreign[place] = replace(change.foreign[place], deferrable=deferrable, deferred=deferred)


def _drop_constraint(change: Alteration, command: Any) -> None:
    name, table = command.name, change.before
    if name not in constraint_names(_interim(change)):
        message = f'constraint "{name}" of relation "{table.name}" does not exist'
        if not command.missing_ok:
            raise SqlError("42704", message)
        change.notices.append(f"{message}, skipping")
        return
    key = next((key for key in change.parts.keys if key.name == name), None)
    change.parts.keys = [item for item in change.parts.keys if item.name != name]
    change.foreign = [item for item in change.foreign if item.name != name]
    change.checks = [item for item in change.checks if item.name != name]
    change.parts.names.discard(name)
    if key is None:
        return
    change.lost_keys = True
    rest = change.parts.keys
    what = f"constraint {name} on table {table.name}"
    _release(change, what, lambda used: all(set(used.target_columns) != set(item.columns) for item in rest))
    _drop_views(change, what)


_Action = Callable[[Alteration, Any], None]
_ACTIONS: Final[dict[AlterTableType, tuple[int, _Action]]] = {
    AlterTableType.AT_DropColumn: (0, _drop_column),
    AlterTableType.AT_DropConstraint: (0, _drop_constraint),
    AlterTableType.AT_DropNotNull: (0, _not_null),
    AlterTableType.AT_DropIdentity: (0, _identity),
    AlterTableType.AT_AlterColumnType: (1, _change_type),
    AlterTableType.AT_AddColumn: (2, _add_column),
    AlterTableType.AT_ColumnDefault: (3, _default),
    AlterTableType.AT_SetNotNull: (3, _not_null),
    AlterTableType.AT_AddIdentity: (3, _identity),
    AlterTableType.AT_SetIdentity: (3, _identity),
    AlterTableType.AT_AddConstraint: (5, _add_constraint),
    AlterTableType.AT_AlterConstraint: (5, _alter_constraint),
}


# --- the result ------------------------------------------------------------------------------------------------------


def finish(change: Alteration, tag: str) -> AlterTable:
    """The statement, once nothing that reads the table forbids it."""
    binding, before = change.binding, change.before
    columns, sequences = with_sequences(binding, change.parts, before, binding.context.catalog.next_oid)
    table = replace(_interim(change), columns=columns)
    _refuse_readers(change, table)
    rows = _rows(change, table)
    checks = tuple(
        (check.name, _breaking(binding, table, check.expression))
        for check in table.checks
        if check.name in change.new_checks or change.gone
    )
    catalog = binding.context.catalog
    changes = tuple((old, new) for oid, new in change.changes.items() if isinstance(old := catalog.objects[oid], Table))
    options, drops = tuple(change.options), tuple(change.drops)
    return AlterTable(tag, before, table, rows, checks, changes, sequences, options, drops, tuple(change.notices))


def _refuse_readers(change: Alteration, table: Table) -> None:
    """Continuous views keep programs over the columns as they were; other views must go on meaning what they did."""
    catalog = change.binding.context.catalog
    left = [view for view in readers(catalog, table.oid) if view.oid not in change.drops]
    for view in left:
        if view.continuous and (change.gone or change.lost_keys or change.lost_nulls):
            message = f"cannot alter table {table.name} because other objects depend on it"
            detail = f"continuous view {view.name} depends on table {table.name}"
            raise SqlError("2BP01", message, detail, "Drop the view first, and create it again.")
    for view in broken_by(change.binding, table):
        if view in left:
            instead = "Drop the view first, and create it again with its columns named."
            raise unsupported(f"a new column of a table whose columns view {view.name} takes as they come", instead)


def _rows(change: Alteration, table: Table) -> Relation | None:
    """The new rows over the old ones."""
    names = [column.name for column in table.columns]
    if names == [column.name for column in change.before.columns] and not change.gone:
        return None
    outputs = []
    for column in table.columns:
        value = change.values.get(column.name) or default_of(change.binding, column)
        outputs.append((change.binding.column(column.name, column.type), value))
    return Project(change.scan, tuple(outputs))


def _breaking(binding: Binding, table: Table, expression: str) -> Relation:
    """At most one row of a table for which a CHECK is false."""
    scan, _ = scan_object(binding, table, None, False)
    check = bind_expression(expression, scan.columns, replace(binding.context, parameter_types=()))
    false = Call("is_false", (check,), BOOL)
    found = Project(Filter(scan, false), ((binding.column("one", INT8, False), Literal(1, INT8)),))
    return Limit(found, Literal(1, INT8), None)
