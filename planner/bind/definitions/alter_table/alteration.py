"""A table's definition while ALTER TABLE changes it.

Owns: ``Alteration``, which the actions of ALTER TABLE share, and ``finish``: the new definition, the rows that it
needs, and the errors that forbid it. ``planner.bind.definitions.dependents`` finds the views that forbid it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.objects import ForeignKey, Index, Table, View, as_plain, is_temporary
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, INT8, SqlType
from planner.algebra.nodes import Call, Column, ColumnRef, Filter, Limit, Literal, Project, Relation, Scalar, Scan
from planner.algebra.walk import replace_columns
from planner.bind.binder import bind_expression
from planner.bind.changes.assignments import default_of
from planner.bind.changes.generated_columns import check_actions
from planner.bind.definitions.dependents import broken_by, readers
from planner.bind.definitions.named_objects import constraint_names
from planner.bind.definitions.relations.columns import check_generations, with_sequences
from planner.bind.definitions.relations.constraints import check_partner, make_check, make_foreign_key
from planner.bind.definitions.relations.definition_parts import Parts
from planner.bind.definitions.relations.indexes import rebuilt
from planner.bind.from_items.from_clause import scan_object
from planner.bind.lookup.relations import describe
from planner.bind.scalars.stored_expressions import row_of
from planner.bind.state.environment import Binding
from planner.incremental.programs.renaming import follow_columns
from planner.statements.definitions import AlterSequence, AlterTable


class Alteration(Struct):
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


def interim(change: Alteration) -> Table:
    """The table as it would be now."""
    columns, keys = tuple(change.parts.columns), tuple(change.parts.keys)
    foreign, checks = tuple(change.foreign), tuple(change.checks)
    indexes = tuple(change.indexes)
    return replace(change.before, columns=columns, keys=keys, foreign_keys=foreign, checks=checks, indexes=indexes)


def take_constraints(change: Alteration, checks: int, foreign: int) -> None:
    """The CHECKs and foreign keys that were read after so many others."""
    binding, parts = change.binding, change.parts
    for item in parts.checks[checks:]:
        change.checks.append(made := make_check(binding, parts, item))
        change.new_checks.add(made.name)
    for key in parts.foreign[foreign:]:
        change.foreign.append(make_foreign_key(binding, parts, interim(change), key))


def release(change: Alteration, what: str, refers: Callable[[ForeignKey], bool]) -> None:
    """Foreign keys that need what goes, of this table or others: an error, or with CASCADE they go too."""
    own = [key for key in change.foreign if key.target == change.before.oid and refers(key)]
    lines = [f"constraint {key.name} on table {change.before.name} depends on {what}" for key in own]
    change.foreign = [key for key in change.foreign if key not in own]
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
        raise needed(what, lines)
    change.notices += [f"drop cascades to {line.partition(' depends on ')[0]}" for line in lines]


def needed(what: str, lines: list[str]) -> SqlError:
    """2BP01."""
    hint = "Use DROP ... CASCADE to drop the dependent objects too."
    message = f"cannot drop {what} because other objects depend on it"
    return SqlError("2BP01", message, "\n".join(lines), hint)


def drop_views(change: Alteration, what: str) -> None:
    """Views that need what goes: an error, or with CASCADE they go, and those above them first."""
    catalog = change.binding.context.catalog
    broken = [view for view in broken_by(change.binding, interim(change)) if view.oid not in change.drops]
    for view in list(broken):
        broken += [above for above in readers(catalog, view.oid) if above not in broken]
    if not broken:
        return
    named = {view.oid: describe(change.binding, view) for view in broken}
    if not change.cascade:
        below = {view.oid: next((named[oid] for oid in view.depends_on if oid in named), what) for view in broken}
        raise needed(what, [f"{name} depends on {below[oid]}" for oid, name in named.items()])
    change.notices += [f"drop cascades to {name}" for name in named.values()]
    change.drops = {**{view.oid: None for view in reversed(broken)}, **change.drops}


def finish(change: Alteration, tag: str) -> AlterTable:
    """The statement, once nothing that reads the table forbids it."""
    binding, before = change.binding, change.before
    used = check_generations(binding, change.parts)
    columns, sequences = with_sequences(binding, change.parts, before, binding.context.catalog.next_oid)
    if sequences and is_temporary(before):
        raise unsupported("a serial or identity column added to a temporary table", "Create the table with it.")
    if before.columns and not columns:
        raise unsupported("dropping the only column of a table", "Drop the table, or add another column first.")
    table = replace(interim(change), columns=columns)
    if change.gone:
        table = _bound_anew(binding, table)
    for reference in table.foreign_keys:
        check_actions(table, reference, used)
    _refuse_readers(change, table)
    rows = _rows(change, table)
    checks = tuple(
        (check.name, _breaking(binding, table, check.expression))
        for check in table.checks
        if check.validated and (check.name in change.new_checks or change.gone)
    )
    if change.gone:
        _check_partners(change, table)
    catalog = binding.context.catalog
    tables = ((old, new) for oid, new in change.changes.items() if isinstance(old := catalog.objects[oid], Table))
    left = [view for view in readers(catalog, table.oid) if view.oid not in change.drops]
    following = ((view, _following(change, view, [column.name for column in columns])) for view in left)
    changes: tuple[tuple[Table | View, Table | View], ...] = (
        *tables,
        *(pair for pair in following if pair[0] != pair[1]),
    )
    options, drops = tuple(change.options), tuple(change.drops)
    return AlterTable(tag, before, table, rows, checks, changes, sequences, options, drops, tuple(change.notices))


def _following(change: Alteration, view: View, columns: list[str]) -> View:
    """A view that goes on reading the table, which has these columns."""
    relied_on = view.derived and (change.lost_keys or change.lost_nulls)
    return follow_columns(as_plain(view) if relied_on else view, change.before.oid, columns)


def _bound_anew(binding: Binding, table: Table) -> Table:
    """The table with its indexes over columns of other types; each check, looked at or not, means something over them.

    Raises what binding raises.
    """
    row, context = row_of(table.columns), replace(binding.context, parameter_types=())
    for check in table.checks:
        bind_expression(check.expression, row, context)
    indexes = (index if index.shown else rebuilt(binding, table, index) for index in table.indexes)
    return replace(table, indexes=tuple(indexes))


def _check_partners(change: Alteration, table: Table) -> None:
    """Foreign keys from and to the table still compare what can be compared."""
    catalog = change.binding.context.catalog
    known = {item.oid: change.changes.get(item.oid, item) for item in catalog.objects.values()} | {table.oid: table}
    for item in known.values():
        for key in item.foreign_keys if isinstance(item, Table) else ():
            if table.oid in (item.oid, key.target):
                target = known[key.target]
                own = {column.name: column for column in item.columns}
                others = {column.name: column for column in target.columns}
                for name, other in zip(key.columns, key.target_columns, strict=True):
                    check_partner(key.name, own[name], others[other])


def _refuse_readers(change: Alteration, table: Table) -> None:
    """Continuous views over streams keep programs that rely on keys and NOT NULL; other views must go on meaning what
    they did."""
    catalog = change.binding.context.catalog
    left = [view for view in readers(catalog, table.oid) if view.oid not in change.drops]
    for view in left:
        if view.keeps_rows and (change.lost_keys or change.lost_nulls):
            message = f"cannot alter table {table.name} because other objects depend on it"
            detail = f"continuous view {view.name} depends on table {table.name}"
            raise SqlError("2BP01", message, detail, "Drop the view first, and create it again.")
    for view in broken_by(change.binding, table):
        if view in left:
            instead = "Drop the view first, and create it again with its columns named."
            raise unsupported(f"a new column of a table whose columns view {view.name} does not name", instead)


def _rows(change: Alteration, table: Table) -> Relation | None:
    """The new rows over the old ones."""
    names = [column.name for column in table.columns]
    if names == [column.name for column in change.before.columns] and not change.gone:
        return None
    values = {
        column.name: change.values.get(column.name) or default_of(change.binding, column) for column in table.columns
    }
    for column in table.columns:
        if column.generated is not None and column.name not in change.values:
            values[column.name] = _generated(change, table, column.generated, column.type, values)
    outputs = ((change.binding.column(column.name, column.type), values[column.name]) for column in table.columns)
    return Project(change.scan, tuple(outputs))


def _generated(change: Alteration, table: Table, text: str, kind: SqlType, values: dict[str, Scalar]) -> Scalar:
    """A generated column's value over the old row."""
    row = {column.name: Column(-1 - index, column.name, column.type) for index, column in enumerate(table.columns)}
    context = replace(change.binding.context, parameter_types=())
    scalar = bind_expression(text, tuple(row.values()), context, kind)
    found: Scalar = replace_columns(scalar, {column: values[name] for name, column in row.items()})
    return found


def _breaking(binding: Binding, table: Table, expression: str) -> Relation:
    """At most one row of a table for which a CHECK is false."""
    scan, _ = scan_object(binding, table, None, False)
    check = bind_expression(expression, scan.columns, replace(binding.context, parameter_types=()))
    false = Call("is_false", (check,), BOOL)
    found = Project(Filter(scan, false), ((binding.column("one", INT8, False), Literal(1, INT8)),))
    return Limit(found, Literal(1, INT8), None)
