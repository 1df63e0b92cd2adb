"""CREATE TYPE ... AS ENUM and ALTER TYPE of enums: labels, their places, and the texts that contain them.

Owns: the place of a new label. Places are far apart, so that there is room for labels between two others, and stored
values never change. Labels in stored texts (views, defaults, checks) are found by binding these against the catalog as
it will be.

https://www.postgresql.org/docs/15/sql-altertype.html
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from catalog.catalog import Catalog, following
from catalog.objects import UserType, View
from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_types import enum_of
from catalog.values.types import Enumeration
from planner.algebra.nodes import Call, Cast, Relation
from planner.algebra.walk import walk
from planner.bind.definitions.dependents import first_broken
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import type_schema
from planner.bind.lookup.type_names import declared_type
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterType, CreateType
from planner.statements.statement import NoOperation, Statement

#: Between two labels as they are declared.
_DISTANCE: Final = 1 << 32
_LONGEST: Final = 63


def bind_create_enum(binding: Binding, node: Any) -> CreateType:
    """CREATE TYPE name AS ENUM (labels). Raises 42710, 42602, and 23505 for a label that comes twice."""
    *schema, name = names_of(node.typeName)
    labels = tuple(item.sval for item in node.vals or ())
    for label in labels:
        _check_label(label)
    if len(set(labels)) < len(labels):
        message = 'duplicate key value violates unique constraint "pg_enum_typid_label_index"'
        raise SqlError("23505", message)
    places = tuple(_DISTANCE * (index + 1) for index in range(len(labels)))
    catalog = binding.context.catalog
    declared = Enumeration(
        catalog.type_oid(), name, labels, places, type_schema(binding, schema[-1] if schema else None, name)
    )
    catalog.add_type(declared)  # raises where the name is taken
    return CreateType("CREATE TYPE", declared)


def bind_alter_enum(binding: Binding, node: Any) -> Statement:
    """ADD VALUE [IF NOT EXISTS] label [BEFORE | AFTER label], and RENAME VALUE label TO label."""
    found = declared_type(binding, names_of(node.typeName))
    if not isinstance(found, Enumeration):
        raise SqlError("42809", f"{found} is not an enum")
    _check_label(node.newVal)
    if node.newVal in found.labels:
        message = f'enum label "{node.newVal}" already exists'
        if node.skipIfNewValExists:
            return NoOperation("ALTER TYPE", (f"{message}, skipping",))
        if node.oldVal is None or node.oldVal in found.labels:
            raise SqlError("42710", message)
    if node.oldVal is not None:
        return _rename(binding, found, node.oldVal, node.newVal)
    return alter_enum(binding.context.catalog, found, _with(found, node))


def _check_label(label: str) -> None:
    if len(label.encode()) > _LONGEST:
        raise SqlError("42602", f'invalid enum label "{label}"', "Labels must be 63 bytes or less.")


def _index(declared: Enumeration, label: str) -> int:
    if label not in declared.labels:
        raise SqlError("22023", f'"{label}" is not an existing enum label')
    return declared.labels.index(label)


def _with(found: Enumeration, node: Any) -> Enumeration:
    """One label more: at the end, or beside a neighbour."""
    index = len(found.labels)
    if node.newValNeighbor is not None:
        index = _index(found, node.newValNeighbor) + bool(node.newValIsAfter)
    place = _place(found.places, index)
    labels = (*found.labels[:index], node.newVal, *found.labels[index:])
    return replace(found, labels=labels, places=(*found.places[:index], place, *found.places[index:]))


def _place(places: tuple[int, ...], index: int) -> int:
    """A place before the one of ``index``. Raises 54000 where its neighbours leave no room."""
    if index == len(places):
        return places[-1] + _DISTANCE if places else _DISTANCE
    if index == 0:
        return places[0] - _DISTANCE
    low, high = places[index - 1], places[index]
    if high - low < 2:
        hint = "Create another type with the labels in this order, and alter the columns to it."
        raise SqlError("54000", "no room for another enum label between these two", hint=hint)
    return (low + high) // 2


def _rename(binding: Binding, found: Enumeration, old: str, new: str) -> AlterType:
    index = _index(found, old)
    after = replace(found, labels=(*found.labels[:index], new, *found.labels[index + 1 :]))
    altered = alter_enum(binding.context.catalog, found, after)
    for item in binding.context.catalog.objects.values():
        if isinstance(item, View) and found.oid in item.kept_labels:
            raise unsupported(f"renaming a label that view {item.name} keeps", "Drop it first, and create it again.")
    user = first_broken(binding, after_all(binding.context.catalog, altered))
    if user is not None:
        raise unsupported(f"renaming a label that {user} uses", "Drop it first, and create it again.")
    return altered


def alter_enum(catalog: Catalog, before: Enumeration, after: Enumeration) -> AlterType:
    """The type's new definition, and those of all relations that have columns of it, and of domains over it."""
    return AlterType("ALTER TYPE", before, after, following(catalog, after))


def after_all(catalog: Catalog, altered: AlterType) -> Catalog:
    """The catalog as it will be."""
    catalog = catalog.change_type(altered.item)
    for _, item in altered.changes:
        catalog = catalog.change_type(item) if isinstance(item, UserType) else catalog.change(item)
    return catalog


def refuse_labels(relation: Relation, position: int | None) -> None:
    """A maintained result must not depend on which labels there are, which ALTER TYPE changes. Raises 0A000."""
    for item in walk(relation):
        if isinstance(item, Call) and item.function == "declared":
            instead = "Write the labels, or use the function in the query that reads the view."
            raise unsupported("the labels of an enum in a continuous view", instead, position)
        if isinstance(item, Cast) and enum_of(item.type) is not None and enum_of(item.argument.type) is None:
            instead = "Compare texts, or convert them in the query that reads the view."
            raise unsupported("a text read as an enum in a continuous view", instead, position)
