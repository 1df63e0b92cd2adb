"""Conversions between row types, and which rows can be compared.

Owns: ``coerce_row`` (coerce_record_to_complex() in parse_coerce.c) and ``check_alike`` (record_eq() and record_cmp() in
rowtypes.c, which check the fields' types at run time; here the types are known when the statement is bound).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_types import holds
from catalog.values.opaque import check_equality, check_sorted, refuse_order
from catalog.values.types import BOOL, INT4, Composite, SqlType, plain
from planner.algebra.nodes import Call, Case, Cast, Literal, Scalar
from planner.bind.conversion.domains import has_domains, into_domain
from planner.bind.state.environment import Binding

#: ``types.coerce`` at a level: the scalar in a type, or None; with where it was written.
Coerce = Callable[[Scalar, SqlType, Any], Scalar | None]


def same_fields(left: SqlType, right: SqlType) -> bool:
    """Whether rows of both types have fields of the same types."""
    assert left.row is not None
    assert right.row is not None
    kinds, others = ([kind for _, kind in item.row.fields] for item in (left, right) if item.row is not None)
    return len(kinds) == len(others) and all(map(_same, kinds, others))


def _same(left: SqlType, right: SqlType) -> bool:
    if left.row is not None and right.row is not None:
        return same_fields(left, right)
    return left == right


def coerce_row(binding: Binding, scalar: Scalar, target: SqlType, coerce: Coerce, node: Any) -> Scalar | None:
    """A row as one of another type: of no declared one, or of a declared one whose fields its own become.

    None where there is no way. Raises 42846 for fields that do not fit.
    """
    source, wanted = scalar.type.row, target.row
    assert source is not None
    assert wanted is not None
    is_checked = scalar.type == target or not has_domains(target)
    alike = is_checked and same_fields(scalar.type, target)
    if alike and (source.oid == wanted.oid or not wanted.oid or not source.oid):
        if isinstance(scalar, Call) and scalar.function == "row":
            return Call("row", scalar.arguments, target)
        return Cast(scalar, target)
    if source.oid and source.oid != wanted.oid and wanted.oid:
        return None
    if not wanted.oid and not _alike(source, wanted):
        raise unsupported("rows of different types in one place", "Cast their fields.", binding.position(node))
    if isinstance(scalar, Literal) and scalar.value is None:
        return Literal(None, target)
    items = _items(scalar)
    if len(items) != len(wanted.fields):
        count = "few" if len(items) < len(wanted.fields) else "many"
        raise _cannot(binding, target, f"Input has too {count} columns.", node)
    found = []
    written = _nodes(node, len(items))
    for place, (item, (_, kind)) in enumerate(zip(items, wanted.fields, strict=True), 1):
        changed = coerce(item, kind, written[place - 1])
        if changed is None:
            raise _cannot(
                binding, target, f"Cannot cast type {plain(item.type)} to {plain(kind)} in column {place}.", node
            )
        found.append(into_domain(binding, changed, wanted.domain(place - 1), written[place - 1]))
    built = Call("row", tuple(found), target)
    if isinstance(scalar, Call) and scalar.function == "row":
        return built
    return Case(((Call("is_null", (scalar,), BOOL), Literal(None, target)),), built, target)


def _alike(source: Composite, wanted: Composite) -> bool:
    """Whether fields differ in their digits only, or one is an untyped string or NULL."""
    if len(source.fields) != len(wanted.fields):
        return False
    pairs = zip(source.fields, wanted.fields, strict=True)
    return all(one.name == "unknown" or one.oid == other.oid for (_, one), (_, other) in pairs)


def _nodes(node: Any, width: int) -> tuple[Any, ...]:
    """Where the fields of a row constructor, perhaps below a cast, were written."""
    inner = node.arg if type(node).__name__ == "TypeCast" else node
    listed = inner.args or () if type(inner).__name__ == "RowExpr" else ()
    return tuple(listed) if len(listed) == width else (inner,) * width


def _cannot(binding: Binding, target: SqlType, detail: str, node: Any) -> SqlError:
    return SqlError("42846", f"cannot cast type record to {target}", detail, position=binding.position(node))


def _items(scalar: Scalar) -> list[Scalar]:
    if isinstance(scalar, Call) and scalar.function == "row":
        return list(scalar.arguments)
    assert scalar.type.row is not None
    pairs = enumerate(scalar.type.row.fields, 1)
    return [Call("field", (scalar, Literal(place, INT4)), kind) for place, (_, kind) in pairs]


def check_alike(left: SqlType, right: SqlType, ordered: bool) -> None:
    """Whether rows can be compared. Raises 42804 and 42883, and 0A000 for what the engine orders otherwise."""
    assert left.row is not None
    assert right.row is not None
    pairs = zip(left.row.fields, right.row.fields, strict=False)
    for place, ((_, one), (_, other)) in enumerate(pairs, 1):
        if one.oid != other.oid:
            words = f"{plain(one)} and {plain(other)} at record column {place}"
            raise SqlError("42804", f"cannot compare dissimilar column types {words}")
    if len(left.row.fields) != len(right.row.fields):
        raise SqlError("42804", "cannot compare record types with different numbers of columns")
    for _, field in left.row.fields:
        if ordered:
            check_sorted(field, "a comparison function")
        else:
            check_equality(field)
    for kind in (left, right):
        if holds(kind, lambda item: item.name == "json"):
            what = "a comparison function" if ordered else "an equality operator"
            raise SqlError("42883", f"could not identify {what} for type json")
    if ordered:
        check_ordered(left)
        refuse_order(left, "a comparison")


def check_ordered(kind: SqlType) -> None:
    """Raises 0A000 for rows whose fields the engine orders otherwise than PostgreSQL."""
    if kind.row is not None and holds(kind, lambda item: item.name == "jsonb"):
        raise unsupported("an order of rows with documents", "Order by their fields.")
