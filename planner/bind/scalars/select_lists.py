"""Select lists and RETURNING: expressions with names, ``*`` expanded.

Owns: ``Target`` and the description of result columns that clients see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from pglast.enums import A_Expr_Kind

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import ROUNDED
from planner.algebra.nodes import Call, Literal, Scalar
from planner.bind.calls.system.catalog_calls import bind_record, yields_rows
from planner.bind.conversion.rows import source_of_row
from planner.bind.lookup.columns import missing_table, plain_column, resolve
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.output_names import output_name
from planner.bind.lookup.type_names import declared_typmod, type_or_domain, with_digits
from planner.bind.scalars.field_selection import bind_all_fields, is_all_fields
from planner.bind.state.environment import Environment
from planner.bind.state.from_names import Entry
from planner.statements.statement import Output

#: PostgreSQL's MaxTupleAttributeNumber.
_ENTRIES: Final = 1664


class Target(Struct, frozen=True):
    """One item of a select list: its expression and what RowDescription says of it."""

    name: str
    scalar: Scalar
    node: Any = None
    typmod: int = -1
    table: int = 0
    attribute: int = 0

    def output(self) -> Output:
        """The result column."""
        return Output(self.name, self.scalar.type, self.typmod, self.table, self.attribute)

    def over(self, scalar: Scalar) -> Target:
        """The item with another expression of equal meaning."""
        return replace(self, scalar=scalar)


def bind_targets(env: Environment, nodes: tuple[Any, ...] | None) -> list[Target]:
    """The items of a select list. Raises 54011."""
    found: list[Target] = []
    check_count(len(nodes or ()))
    for node in nodes or ():
        value = node.val
        if type(value).__name__ == "ColumnRef" and type(value.fields[-1]).__name__ == "A_Star":
            entries = _star(env, value)
            if any("\0" in entry.name for entry in entries):
                raise unsupported("a row as a value", "Name the columns.", env.binding.position(value))
            found += [_of_entry(entry, entry.name, value) for entry in entries]
        elif is_all_fields(value):
            fields = bind_all_fields(env, value)
            found += [Target(name, scalar, value, _field_typmod(env, scalar)) for name, scalar in fields]
        elif type(value).__name__ == "FuncCall" and yields_rows(value):
            fields = bind_record(env, value, node.name or output_name(value))
            found += [Target(name, scalar, value) for name, scalar in fields]
        else:
            found.append(_item(env, value, node.name))
    check_count(len(found))
    return found


def check_count(entries: int) -> None:
    """Raises 54011 for more entries of a select list than a row of PostgreSQL's has columns."""
    if entries > _ENTRIES:
        raise SqlError("54011", f"target lists can have at most {_ENTRIES} entries")


def check_entries(targets: Sequence[Target], keys: Sequence[Scalar]) -> None:
    """Raises 54011 for too many target list entries, with those that only GROUP BY and ORDER BY compute."""
    entries = [target.scalar for target in targets]
    if len(entries) + len(keys) > _ENTRIES:
        for key in keys:
            if key not in entries:
                entries.append(key)
                check_count(len(entries))


def _of_entry(entry: Entry, name: str, node: Any) -> Target:
    return Target(name, entry.scalar, node, entry.typmod, entry.table, entry.attribute)


def _star(env: Environment, node: Any) -> tuple[Entry, ...]:
    names = names_of(node.fields[:-1])
    if not names:
        if not env.scope.sources:
            raise env.error("42601", "SELECT * with no tables specified is not valid", node)
        return env.scope.entries
    *schema, name = names
    for level in env.scope.levels():
        source = level.source(name, schema[-1] if schema else None, env.binding.position(node))
        if source is not None:
            return source.entries
    raise missing_table(env.scope, name, env.binding.position(node))


def _item(env: Environment, node: Any, name: str | None) -> Target:
    scalar = env.bind(node)
    is_column = scalar.type.row is None or source_of_row(env, node) is None
    if type(node).__name__ == "ColumnRef" and is_column:
        entry = plain_column(env.scope, node) or resolve(env.binding, env.scope, names_of(node.fields), node)
        return Target(name or entry.name, scalar, node, entry.typmod, entry.table, entry.attribute)
    typmod = typmod_of(env, scalar, node)
    if (
        typmod == -1
        and scalar.type.name in ("varchar", "bpchar")
        and type(node).__name__ not in ("FuncCall", "TypeCast")
    ):
        typmod = scalar.type.typmod
    return Target(name or output_name(node), scalar, node, typmod)


def typmod_of(env: Environment, scalar: Scalar, node: Any) -> int:
    """The modifier that an expression keeps: a declared one, on which all branches of a CASE and the like agree.

    PostgreSQL's exprTypmod(); what an operator or a function computes has none.
    """
    found: set[int] = set()
    pending = [node]
    while pending:
        item = pending.pop()
        match type(item).__name__:
            case "A_Indirection" if type(item.indirection[-1]).__name__ == "String" and item is node:
                found.add(_field_typmod(env, scalar))
            case "CaseExpr":
                pending += [*(branch.result for branch in item.args), item.defresult]
            case "CoalesceExpr" | "MinMaxExpr":
                pending += item.args
            case "A_Indirection" if all(type(part).__name__ == "A_Indices" for part in item.indirection):
                pending.append(item.arg)
            case "A_Expr" if item.kind == A_Expr_Kind.AEXPR_NULLIF:
                pending.append(item.lexpr)
            case "ColumnRef" if source_of_row(env, item) is None:
                found.add(resolve(env.binding, env.scope, names_of(item.fields), item).typmod)
            case "A_ArrayExpr" if item.elements:
                pending += item.elements
            case "SubLink" if id(item) in env.binding.modifiers:
                found.add(env.binding.modifiers[id(item)][1])
            case "TypeCast":
                found.add(declared_typmod(type_or_domain(env.binding, item.typeName)[0]))
            case "SQLValueFunction" if scalar.type.name in ROUNDED:
                found.add(-1 if item.typmod < 0 else with_digits(scalar.type, item.typmod).typmod)
            case _:
                found.add(-1)
    return found.pop() if len(found) == 1 else -1


def _field_typmod(env: Environment, scalar: Scalar) -> int:
    """The modifier of a field: of an item of FROM the column's, of a declared type what it declares."""
    if isinstance(scalar, Call) and scalar.function == "field":
        of, place = scalar.arguments[0].type.row, scalar.arguments[1]
        assert isinstance(place, Literal)
        assert isinstance(place.value, int)
        return declared_typmod(of.fields[place.value - 1][1]) if of is not None and of.oid else -1
    entries = (entry for level in env.scope.levels() for source in level.sources for entry in source.entries)
    return next((entry.typmod for entry in entries if entry.scalar == scalar), -1)


def item_nodes(node: Any, width: int) -> list[Any]:
    """The expressions of a select list, for errors; nothing where ``*`` or a set operation hides them."""
    found = [item.val for item in node.targetList or ()]
    return found if len(found) == width else [None] * width


def check_columns(names: tuple[str, ...]) -> None:
    """A view's or table's columns need different names. Raises 42701."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SqlError("42701", f'column "{name}" specified more than once')
        seen.add(name)
