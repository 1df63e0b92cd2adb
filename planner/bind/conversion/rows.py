"""Rows as values: ROW(...), the row of an item of FROM, and the fields of either.

Owns: ``Call("row", fields)``, of a type with the fields' names (``catalog.values.types.Composite``), and
``Call("field", (row, place))``. A field of a ROW(...) is that field's expression. Comparisons of rows are in
``scalars.row_comparisons``, conversions between their types in ``row_types``.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import domains_of, rows_of
from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_types import holds
from catalog.values.times.precision import expressed
from catalog.values.types import BOOL, INT4, Composite, SqlType, record
from catalog.values.types import row as row_type
from planner.algebra.nodes import AggregateCall, Call, Case, ColumnRef, Literal, Relation, Scalar
from planner.algebra.walk import SCALARS, walk
from planner.bind.conversion.coercion import as_expressed
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment
from planner.bind.state.from_names import Entry, Source

Items = list[tuple[Scalar, Any]]


def is_row(node: Any) -> bool:
    """Whether a parse node is a row constructor."""
    return type(node).__name__ == "RowExpr"


def is_star(node: Any) -> bool:
    """Whether a parse node is a ``*`` or a ``t.*``."""
    return type(node).__name__ == "ColumnRef" and type(node.fields[-1]).__name__ == "A_Star"


def row_items(env: Environment, node: Any) -> Items:
    """The values of a row constructor with where they were written; t.* is all columns of t."""
    found: Items = []
    for item in node.args or ():
        if is_star(item):
            source = source_of_row(env, item)
            if source is None:
                raise unsupported("* in a row value", "Name the columns.", env.binding.position(item))
            found.extend((value, item) for value in _columns(env, source, item))
        else:
            found.append((env.bind(item), item))
    return found


def bind_row(env: Environment, node: Any) -> Scalar:
    """ROW(a, b) and (a, b), whose fields are called f1, f2 and so on."""
    values = [scalar for scalar, _ in row_items(env, node)]
    if not values:
        raise unsupported("a row without fields", position=env.binding.position(node))
    return Call("row", tuple(values), record(*((f"f{place}", item.type) for place, item in enumerate(values, 1))))


# --- the rows of FROM ------------------------------------------------------------------------------------------------


def source_of_row(env: Environment, node: Any) -> Source | None:
    """The item of FROM that a name stands for, which is ``t`` where no column is called so, or ``t.*``."""
    if type(node).__name__ != "ColumnRef":
        return None
    fields = node.fields
    starred = type(fields[-1]).__name__ == "A_Star"
    names = fields[:-1] if starred else fields
    if not 1 <= len(names) <= (2 if starred else 1):
        return None
    *schema, name = names_of(names)
    if not starred and any(name in level.named for level in env.scope.levels()):
        return None
    for level in env.scope.levels():
        source = level.source(name, schema[-1] if schema else None, env.binding.position(node))
        if source is not None:
            return source if starred or source.value is None else None
    return None


def whole_row(env: Environment, node: Any) -> Scalar | None:
    """The row of an item of FROM that ``t`` or ``t.*`` stands for; None for what is none.

    In rows that an outer join has filled up it is NULL, which only a column that never is NULL else can tell.
    """
    source = source_of_row(env, node)
    if source is None:
        return None
    values = _columns(env, source, node)
    if not values:
        raise unsupported("a row without fields", position=env.binding.position(node))
    built = Call("row", tuple(values), row_type(_composite(env, source)))
    if not source.padded:
        return built
    sure = source.mark or sure_of(source)
    if sure is None:
        raise UnmarkedRow(env.binding.position(node))
    return Case(((Call("is_null", (sure,), BOOL), Literal(None, built.type)),), built, built.type)


class UnmarkedRow(SqlError):
    """A row that an outer join may have filled up, which nothing tells: its statement is bound again with marks."""

    def __init__(self, position: int | None) -> None:
        words = "a whole row of the outer side of a join is not supported"
        super().__init__("0A000", words, hint="Name its columns.", position=position)


def sure_of(source: Source) -> Scalar | None:
    """A column that is NULL only in rows that an outer join has filled up."""
    return next((entry.scalar for entry in source.entries if entry.is_sure), None)


def _columns(env: Environment, source: Source, node: Any) -> list[Scalar]:
    found: list[Scalar] = []
    for entry in source.entries:
        scalar = ColumnRef(entry.scalar.column) if isinstance(entry.scalar, ColumnRef) else entry.scalar
        env.binding.remember(scalar, node)
        found.append(scalar)
    return found


def _composite(env: Environment, source: Source) -> Composite:
    """The type of an item's rows: a relation's own, whose fields have its columns' names."""
    if source.kind is not None and source.kind.row is not None:
        return source.kind.row
    item = env.binding.context.catalog.objects.get(source.row)
    if item is None:
        fields = record(*((entry.name, entry.scalar.type) for entry in source.entries)).row
        assert fields is not None
        return fields
    columns = [item.columns[entry.attribute - 1] for entry in source.entries]
    kinds = (entry.scalar.type for entry in source.entries)
    known = tuple((column.name, kind) for column, kind in zip(columns, kinds, strict=True))
    return replace(rows_of(item), fields=known, domains=domains_of(columns))


# --- fields ----------------------------------------------------------------------------------------------------------


def declared_row(scalar: Scalar) -> Composite:
    """The composite type of a row."""
    assert scalar.type.row is not None
    return scalar.type.row


def field_of(scalar: Scalar, place: int) -> Scalar:
    """A row's field by its place from 0 on."""
    if isinstance(scalar, Call) and scalar.function == "row":
        return as_expressed(scalar.arguments[place])
    kind = expressed(declared_row(scalar).fields[place][1])
    if isinstance(scalar, Literal):
        return Literal(scalar.value[place] if isinstance(scalar.value, tuple) else None, kind)
    return Call("field", (scalar, Literal(place + 1, INT4)), kind)


def fields_of(scalar: Scalar) -> list[tuple[str, Scalar]]:
    """A row's fields with their names."""
    return [(name, field_of(scalar, place)) for place, (name, _) in enumerate(declared_row(scalar).fields)]


def named_field(env: Environment, scalar: Scalar, name: str, node: Any) -> Scalar:
    """A row's field by its name. Raises 42703 and 42809."""
    if scalar.type.row is None:
        message = f"column notation .{name} applied to type {display(scalar.type)}, which is not a composite type"
        raise env.error_at("42809", message, node)
    for place, (known, _) in enumerate(scalar.type.row.fields):
        if known == name:
            return field_of(scalar, place)
    if not scalar.type.row.oid:
        raise env.error_at("42703", f'could not identify column "{name}" in record data type', node)
    message = f'column "{name}" not found in data type {display(scalar.type)}'
    raise env.error_at("42703", message, node)


def field_of_source(env: Environment, source: Source, name: str, node: Any) -> Entry:
    """(t).column, where a column may have another name than in the relation. Raises 42703."""
    for entry in source.entries:
        if entry.name == name:
            return entry
    if not source.row:
        message = f'could not identify column "{name}" in record data type'
        raise env.error("42703", message, node)
    raise env.error("42703", f"column {source.name}.{name} does not exist", node)


def refuse_rows(relation: Relation, position: int | None) -> None:
    """Raises 0A000 for rows as values in a continuous view; count(DISTINCT (a, b)) is allowed, since its fields are
    kept."""
    counted = {
        id(item)
        for node in walk(relation)
        if isinstance(node, AggregateCall) and node.function == "count" and node.distinct
        for item in node.arguments
        if isinstance(item, Call) and item.function == "row" and item.arguments
    }
    for node in walk(relation):
        if id(node) in counted:
            continue
        if isinstance(node, SCALARS) and holds(node.type, lambda kind: kind.row is not None):
            raise unsupported("a row as a value in a continuous view", "Name its columns.", position)


def check_kept(catalog: Catalog, name: str, kind: SqlType) -> None:
    """Whether a column that is kept may be of a type. Raises 42P16 for void and rows of no declared type, and 0A000 for
    a relation's, which change with it.
    """
    if kind.name == "void":
        raise SqlError("42P16", f'column "{name}" has pseudo-type void')
    element = kind if kind.element is None else kind.element
    if element.name == "jsonpath":
        raise unsupported("a column of type jsonpath", "Use text, and cast it.")
    if element.row is None:
        return
    if not element.row.oid:
        shown = "record[]" if kind.element is not None else "record"
        raise SqlError("42P16", f'column "{name}" has pseudo-type {shown}')
    if element.row.oid in catalog.objects:
        raise unsupported(f'a column of the type of the rows of "{element.row.name}"', "Name its columns.")
