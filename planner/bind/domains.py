"""Domains: values of a base type that its constraints let pass.

Owns: what a value goes through to be of a domain, as calls of ``require`` around it, and a domain's default. A domain's
expressions have the base type everywhere else. A domain over another has that one's constraints, too.

https://www.postgresql.org/docs/15/sql-createdomain.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from catalog.errors import unsupported
from catalog.names import quote_name
from catalog.objects import ColumnDefinition, Domain
from catalog.types import BOOL, TEXT
from planner.bind.context import Binding
from planner.expression import Call, Column, ColumnRef, Literal, Scalar
from planner.functions import FUNCTIONS
from planner.walk import replace_columns, walk


def lineage(binding: Binding, oid: int) -> list[Domain]:
    """A domain and those that it is made of, the lowest first."""
    found: list[Domain] = []
    while oid:
        domain = binding.context.catalog.domain(oid)
        found.insert(0, domain)
        oid = domain.parent
    return found


def is_constrained(binding: Binding, oid: int) -> bool:
    """Whether a value of the base type may be none of the domain's."""
    return any(domain.not_null or domain.checks for domain in lineage(binding, oid))


def default_text(binding: Binding, column: ColumnDefinition) -> str | None:
    """A column's DEFAULT, or that of its domain."""
    texts = [column.default, *(domain.default for domain in reversed(lineage(binding, column.domain)))]
    return next((text for text in texts if text is not None), None)


def into_domain(binding: Binding, value: Scalar, oid: int, node: Any = None) -> Scalar:
    """A value of the base type, which an engine refuses where it is none of the domain's (23502, 23514)."""
    if not oid or not is_constrained(binding, oid):
        return value
    volatile = (isinstance(item, Call) and FUNCTIONS[item.function].volatility == "volatile" for item in walk(value))
    if any(volatile):
        instead = "Use a column of the base type with constraints of its own."
        raise unsupported("a volatile function as a value of a domain", instead, binding.position(node))
    found = value
    for condition, message in reversed(_requirements(binding, oid, value)):
        found = Call("require", (condition, found, Literal(message, TEXT)), value.type)
    return found


def guards(
    binding: Binding, columns: Sequence[ColumnDefinition], row: Sequence[Column]
) -> tuple[tuple[str, Scalar], ...]:
    """For rows that come as they are: by column, what raises where its value is none of its domain's."""
    found = []
    for definition, column in zip(columns, row, strict=True):
        for condition, message in _requirements(binding, definition.domain, ColumnRef(column)):
            guard = Call("require", (condition, Literal(True, BOOL), Literal(message, TEXT)), BOOL)
            found.append((definition.name, guard))
    return tuple(found)


def _requirements(binding: Binding, oid: int, value: Scalar) -> list[tuple[Scalar, str]]:
    """What must not be false of a value, each with the error that it is, which names the value's own domain."""
    from planner.bind.texts import bind_expression  # expressions, which casts to domains are part of

    found: list[tuple[Scalar, str]] = []
    domains = lineage(binding, oid)
    for domain in domains:
        named = domains[-1]
        name = quote_name(named.name)
        if domain.not_null:
            known = Call("is_not_null", (value,), BOOL)
            found.append((known, _raising("23502", f"domain {name} does not allow null values", named, "")))
        for check in sorted(domain.checks, key=lambda item: item.name):
            column = Column(-1, "value", domain.base)
            context = replace(binding.context, parameter_types=())
            condition = bind_expression(check.expression, (column,), context, None, "CHECK")
            words = f'value for domain {name} violates check constraint "{check.name}"'
            raising = _raising("23514", words, named, check.name)
            found.append((replace_columns(condition, {column: value}), raising))
    return found


def _raising(sqlstate: str, words: str, domain: Domain, constraint: str) -> str:
    """What an engine raises as an error with fields of its own."""
    return f"!{sqlstate}!{words}\x1f{domain.schema}\x1f{domain.name}\x1f{constraint}"
