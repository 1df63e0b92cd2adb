"""DROP TYPE and DROP DOMAIN: what depends on a type, and what CASCADE drops with it.

Owns: finding the domains, columns, views and texts (defaults, checks) that need a type, and the tables without them.
Texts are found by binding them against the catalog without the type.

https://www.postgresql.org/docs/15/sql-droptype.html
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from pglast.enums import DropBehavior, ObjectType

from catalog.catalog import Catalog
from catalog.extensions import BaseType
from catalog.objects import FIRST_OID, Domain, Stream, Table, UserType, View
from catalog.routines import Function, every
from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_types import holds
from catalog.values.types import Composite, SqlType
from planner.bind.binder import new_binding
from planner.bind.definitions.alter_table import altered_columns
from planner.bind.definitions.alter_table.alteration import finish, start
from planner.bind.definitions.dependents import newly_broken, readers, reads_as_before
from planner.bind.definitions.types.user_types import named_type
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import describe
from planner.bind.lookup.type_names import find_type, unknown_type
from planner.bind.privileges import require_droppable
from planner.bind.state.context import within
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterTable, DropType


class _Reach(Struct):
    """What goes with some types: domains over them, and relations' parts. ``lines`` say why, ``extra`` what it is."""

    binding: Binding
    types: list[UserType]
    tables: dict[int, tuple[list[str], list[str]]] = field(default_factory=dict)  # columns, and parts with a text
    views: list[View] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    fields: bool = False  # whether a composite type would lose an attribute

    def add(self, what: str, below: str) -> None:
        """Something that goes because something goes that it needs."""
        self.extra.append(what)
        self.lines.append(f"{what} depends on {below}")


def bind_drop_type(binding: Binding, node: Any) -> DropType:
    """DROP TYPE or DOMAIN [IF EXISTS] names [CASCADE]. Raises 42704, 3F000, 2BP01, and 0A000 of a stream's column."""
    found: list[UserType] = []
    notices: list[str] = []
    for item in node.objects:
        known = find_type(binding, names_of(item.names))
        if known is None:
            error = unknown_type(binding, names_of(item.names))
            if not node.missing_ok:
                raise error
            notices.append(f"{error.message}, skipping")
        elif named_type(binding, names_of(item.names), node.removeType) not in found:
            require_droppable(binding, known)
            require_no_member(known)
            found.append(known)
    kind = "DOMAIN" if node.removeType == ObjectType.OBJECT_DOMAIN else "TYPE"
    return drop_types(binding, kind, found, notices, node.behavior == DropBehavior.DROP_CASCADE)


def require_no_member(item: UserType) -> None:
    """Raises 2BP01 for a type that goes with its extension."""
    if isinstance(item, BaseType):
        message = f"cannot drop type {item} because extension {item.extension} requires it"
        raise SqlError("2BP01", message, hint=f"You can drop extension {item.extension} instead.")


def drop_types(
    binding: Binding,
    kind: str,
    types: list[UserType],
    notices: list[str],
    cascade: bool,
    what: str | None = None,
    functions: tuple[Function, ...] = (),
) -> DropType:
    """The statement that drops some types. Raises 2BP01 where something needs one and there is no CASCADE.

    ``what`` goes, if it is more than the types: with ``functions``.
    """
    reach = _reach(binding, types, what, functions)
    if reach.lines and not cascade:
        what = what or (f"type {types[0]}" if len(types) == 1 else "desired object(s)")
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        raise SqlError("2BP01", f"cannot drop {what} because other objects depend on it", "\n".join(reach.lines), hint)
    if reach.fields:
        raise unsupported("CASCADE to an attribute of a composite type", "Drop the attribute first.")
    if reach.extra:
        only = f"drop cascades to {reach.extra[0]}"
        notices.append(only if len(reach.extra) == 1 else f"drop cascades to {len(reach.extra)} other objects")
    views = _dependents_first(binding.context.catalog, reach.views)
    return DropType(kind, tuple(reach.types), tuple(notices), views, _without_parts(reach, views))


def _reach(binding: Binding, types: list[UserType], what: str | None, functions: tuple[Function, ...]) -> _Reach:
    """What needs one of the types or functions."""
    catalog = binding.context.catalog
    reach = _Reach(binding, list(types))
    for declared in reach.types:  # grows while it is walked
        for item in catalog.types.values():
            if isinstance(item, Domain) and item not in reach.types and _is_over(item, declared):
                reach.add(f"type {item}", f"type {declared}")
                reach.types.append(item)
            if isinstance(item, Composite) and item not in reach.types:
                for place, (name, kind) in enumerate(item.fields):
                    if _is_of(item.domain(place), kind, declared):
                        reach.add(f"column {name} of composite type {item}", f"type {declared}")
                        reach.fields = True
    for declared in reach.types:
        _refuse_functions(binding, declared, what or f"type {declared}", functions)
        _add_columns(reach, declared)
    after = catalog
    for declared in reach.types:
        after = after.drop_type(declared.oid)
    for function in functions:
        after = after.drop_function(function.oid)
    if reach.types or functions:
        _add_texts(reach, after, what or f"type {reach.types[0]}")
    return reach


def _refuse_functions(binding: Binding, declared: UserType, what: str, members: tuple[Function, ...]) -> None:
    """A function that takes or returns values of a type goes first. Raises 2BP01."""
    for item in every(binding.context.catalog.functions):
        types = {oid | 1 for oid in (*item.types, item.result) if oid >= FIRST_OID}
        if declared.oid in types and item not in members:
            message = f"cannot drop {what} because other objects depend on it"
            detail = f"function {item.name} depends on type {declared}"
            raise SqlError("2BP01", message, detail, "Drop the function first.")


def _is_over(domain: Domain, declared: UserType) -> bool:
    return _is_of(domain.parent, domain.base, declared)


def _names(kind: SqlType, declared: UserType) -> bool:
    """Whether a type is, or holds, a user's."""
    if isinstance(declared, BaseType):
        return holds(kind, lambda item: item.oid == declared.oid)
    return holds(kind, lambda item: declared.oid == getattr(item.enum or item.row, "oid", None))


def _is_of(domain: int, kind: SqlType, declared: UserType) -> bool:
    """Whether a column, or what is like one, is of a user's type, of arrays of it, or of rows that have it."""
    return domain | 1 == declared.oid if domain else _names(kind, declared)


def _add_columns(reach: _Reach, declared: UserType) -> None:
    """Columns of a type; a stream's are there as long as it is."""
    for item in reach.binding.context.catalog.objects.values():
        for column in item.columns if isinstance(item, Table | Stream) else ():
            if _is_of(column.domain, column.type, declared):
                what = f"column {column.name} of {describe(reach.binding, item)}"
                reach.add(what, f"type {declared}")
                reach.tables.setdefault(item.oid, ([], []))[0].append(column.name)


def _add_texts(reach: _Reach, after: Catalog, below: str) -> None:
    """Views, and parts of tables, whose texts mean nothing without what goes."""
    binding = reach.binding
    for item in binding.context.catalog.objects.values():
        if isinstance(item, View) and not reads_as_before(binding, item, after):
            for view in (item, *readers(binding.context.catalog, item.oid)):
                if view not in reach.views:
                    reach.views.append(view)
                    reach.add(describe(binding, view), below)
        if isinstance(item, Table | Stream):
            gone = reach.tables.get(item.oid, ([], []))[0]
            for words, name in newly_broken(item, binding.context, after):
                if name not in gone:
                    reach.add(words.format(describe(binding, item)), below)
                    reach.tables.setdefault(item.oid, ([], []))[1].append(name)
    for declared in after.types.values():
        if isinstance(declared, Domain) and newly_broken(declared, binding.context, after):
            raise unsupported(f"dropping a type that domain {declared} names", "Drop the domain first.")


def _dependents_first(catalog: Catalog, views: list[View]) -> tuple[int, ...]:
    left, order = list(views), list[int]()
    while left:
        above = [view for view in left if not any(view.oid in other.depends_on for other in left if other is not view)]
        for view in above:
            left.remove(view)
            order.append(view.oid)
    return tuple(order)


def _without_parts(reach: _Reach, views: tuple[int, ...]) -> tuple[AlterTable, ...]:
    """The tables that lose something, each bound over what those before it have left."""
    context, found = reach.binding.context, list[AlterTable]()
    for oid, (columns, texts) in reach.tables.items():
        table = context.catalog.objects[oid]
        if not isinstance(table, Table):
            what = f"CASCADE to a column or default of {describe(reach.binding, table)}"
            raise unsupported(what, "Drop the column first.")
        altered = _without(new_binding(context, reach.binding.raw), table, columns, texts, views)
        found.append(altered)
        catalog = context.catalog
        for _, item in altered.changes:
            catalog = catalog.change(item)
        context = within(context, catalog=catalog.change(altered.table))
    return tuple(found)


def _without(
    binding: Binding, table: Table, columns: list[str], texts: list[str], views: tuple[int, ...]
) -> AlterTable:
    """A table without columns, and without the defaults, checks and indexes that have a text."""
    change = start(binding, table)
    change.cascade, change.drops = True, dict.fromkeys(views)
    change.checks = [check for check in change.checks if check.name not in texts]
    change.indexes = [index for index in change.indexes if index.name not in texts]
    for index, column in enumerate(change.parts.columns):
        if column.name in texts and column.generated is None:
            change.parts.columns[index] = replace(column, default=None, sequences=())
    for column in table.columns:
        if change.parts.column(column.name) is None:
            continue  # it read one that is gone
        if column.name in columns or (column.name in texts and column.generated is not None):
            altered_columns.drop_column(change, column.name)
    return replace(finish(change, "DROP TYPE"), notices=())
