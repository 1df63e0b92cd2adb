"""Domains: types whose values satisfy constraints over a base type.

Owns: ``into_domain`` and ``into_type``, which check a value by calls of ``require`` around it, and a domain's default.
In all other expressions a domain's value has the base type. A domain over another domain has the constraints of both.
An even oid is that of arrays of the domain, whose constraints hold for each element::

    true = ALL (for_each(array, element(n), condition over element(n)))

A composite type whose fields have domains is checked when its value is made, by ``into_type``.

https://www.postgresql.org/docs/15/sql-createdomain.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from catalog.objects import ColumnDefinition, Domain
from catalog.values.errors import unsupported
from catalog.values.identifiers import quote_name
from catalog.values.nested_types import holds
from catalog.values.times.precision import expressed
from catalog.values.types import ARRAYS, BOOL, INT4, TEXT, SqlType, array
from planner.algebra.construction import volatility
from planner.algebra.nodes import Call, Column, ColumnRef, Exists, InSubquery, Literal, Scalar, ScalarSubquery
from planner.algebra.walk import replace_columns, walk
from planner.bind.conversion.array_items import items_of
from planner.bind.conversion.stored_texts import bind_text
from planner.bind.state.environment import Binding

#: What must not be false of a value, and the error that it is.
Requirement = tuple[Scalar, str]
_INSTEAD = "Use a column of the base type with constraints of its own."


def lineage(binding: Binding, oid: int) -> list[Domain]:
    """A domain and those that it is made of, the lowest first; none of the type of a domain's arrays."""
    found: list[Domain] = []
    while oid % 2:
        domain = binding.context.catalog.domain(oid)
        found.insert(0, domain)
        oid = domain.parent
    return found


def is_constrained(binding: Binding, oid: int) -> bool:
    """Whether a value of the base type may be none of the domain's."""
    if not oid:
        return False
    domains = lineage(binding, oid | 1)
    own = any(domain.not_null or domain.checks for domain in domains)
    return own or is_constrained(binding, domains[0].parent)


def has_domains(kind: SqlType) -> bool:
    """Whether a type's values are or contain rows with fields of domains."""
    return holds(kind, lambda item: item.row is not None and bool(item.row.domains))


def default_text(binding: Binding, column: ColumnDefinition) -> str | None:
    """A column's DEFAULT, or that of its domain."""
    texts = [column.default, *(domain.default for domain in reversed(lineage(binding, column.domain)))]
    return next((text for text in texts if text is not None), None)


def into_domain(binding: Binding, value: Scalar, oid: int, node: Any = None) -> Scalar:
    """A value of the base type, which an engine refuses where it is none of the domain's (23502, 23514)."""
    if not oid or not is_constrained(binding, oid):
        return value
    return _required(binding, value, _of_domain(binding, oid, value, 0), node)


def into_type(binding: Binding, value: Scalar, node: Any = None) -> Scalar:
    """An unchecked value of a row type, checked against the domains of its fields."""
    if isinstance(value, Literal) and value.value is None:
        return value
    return _required(binding, value, _of_type(binding, value.type, value, 0), node)


def _required(binding: Binding, value: Scalar, requirements: Sequence[Requirement], node: Any) -> Scalar:
    if requirements and volatility(value) == "volatile":
        raise unsupported("a volatile function as a value of a domain", _INSTEAD, binding.position(node))
    found = value
    for condition, message in reversed(requirements):
        found = Call("require", (condition, found, Literal(message, TEXT)), value.type)
    return found


def guards(
    binding: Binding, columns: Sequence[ColumnDefinition], row: Sequence[Column]
) -> tuple[tuple[str, Scalar], ...]:
    """For rows that come as they are: by column, what raises where its value is none of its domain's."""
    found = []
    for definition, column in zip(columns, row, strict=True):
        value = ColumnRef(column)
        checks = (*_of_type(binding, column.type, value, 0), *_of_domain(binding, definition.domain, value, 0))
        for condition, message in checks:
            guard = Call("require", (condition, Literal(True, BOOL), Literal(message, TEXT)), BOOL)
            found.append((definition.name, guard))
    return tuple(found)


def _of_domain(binding: Binding, oid: int, value: Scalar, depth: int) -> list[Requirement]:
    """What must not be false of a domain's value, or of its array's elements; errors name the value's own domain.

    ``depth`` counts the arrays around, in whose elements the value is.
    """
    if not is_constrained(binding, oid):
        return []
    if oid % 2 == 0:
        return _of_each(binding, value, depth, lambda item: _of_domain(binding, oid + 1, item, depth + 1))
    domains = lineage(binding, oid)
    found = _of_domain(binding, domains[0].parent, value, depth)
    for domain in domains:
        named = domains[-1]
        name = quote_name(named.name)
        if domain.not_null:
            known = Call("is_not_null", (value,), BOOL)
            found.append((known, _raising("23502", f"domain {name} does not allow null values", named, "")))
        for check in sorted(domain.checks, key=lambda item: item.name):
            column = Column(-1, "value", domain.base)
            context = replace(binding.context, parameter_types=())
            condition = bind_text(binding.binder, check.expression, (column,), context, "CHECK")[0]
            words = f'value for domain {name} violates check constraint "{check.name}"'
            raising = _raising("23514", words, named, check.name)
            found.append((replace_columns(condition, {column: value}), raising))
    return found


def _of_type(binding: Binding, kind: SqlType, value: Scalar, depth: int) -> list[Requirement]:
    """What must not be false of the fields of a row, or of an array's rows; NULL instead of a row has none."""
    if not has_domains(kind):
        return []
    if kind.element is not None and kind.name in ARRAYS:
        element = kind.element
        return _of_each(binding, value, depth, lambda item: _of_type(binding, element, item, depth + 1))
    assert kind.row is not None
    found: list[Requirement] = []
    missing = Call("is_null", (value,), BOOL)
    for place, (_, inner) in enumerate(kind.row.fields):
        field = Call("field", (value, Literal(place + 1, INT4)), expressed(inner))
        own = _of_domain(binding, kind.row.domain(place), field, depth)
        for condition, message in (*_of_type(binding, inner, field, depth), *own):
            found.append((Call("or", (missing, condition), BOOL), message))
    return found


def element_of(items: Scalar, depth: int = 0) -> Call:
    """Each element of a list, within a ``for_each`` over it; ``depth`` others are around that one."""
    assert items.type.element is not None
    return Call("element", (Literal(depth, INT4),), expressed(items.type.element))


def _of_each(
    binding: Binding, value: Scalar, depth: int, requirements: Callable[[Scalar], list[Requirement]]
) -> list[Requirement]:
    """What must not be false of any element of an array."""
    items = items_of(value)
    item = element_of(items, depth)
    found: list[Requirement] = []
    for condition, message in requirements(item):
        if any(isinstance(part, ScalarSubquery | Exists | InSubquery) for part in walk(condition)):
            raise unsupported("a subquery in a check of an array's elements", _INSTEAD)
        conditions = Call("for_each", (items, item, condition), array(BOOL))
        found.append((Call("all", (Literal("eq", TEXT), Literal(True, BOOL), conditions), BOOL), message))
    return found


def _raising(sqlstate: str, words: str, domain: Domain, constraint: str) -> str:
    """What an engine raises as an error with fields of its own."""
    return f"!{sqlstate}!{words}\x1f{domain.schema}\x1f{domain.name}\x1f{constraint}"
