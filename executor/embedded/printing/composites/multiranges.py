"""Expressions over multiranges: output, constructors, operators, and parts of their aggregates.

Owns: ``BUILDS``, ``united_digits`` and ``complement``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from catalog.values import ranges
from catalog.values.multiranges import range_of
from catalog.values.types import MULTIRANGES, SqlType
from executor.embedded.printing.composites.ranges import number_of
from executor.embedded.printing.composites.ranges import written as written_range
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import macro
from executor.printing.nodes import Build, Expr, chain, function, identifier, text
from planner.algebra.nodes import Call


def written(argument: Expr, kind: SqlType, shown: Callable[[Expr, SqlType], Expr]) -> Expr:
    """The text of a multirange (multirange_out); ``shown`` writes a bound."""
    part = identifier("part")
    each = exp.Lambda(this=written_range(exp.Column(this=part), range_of(kind), shown), expressions=[part.copy()])
    texts = function("list_transform", _of(kind, "parts", argument), each)
    return chain(exp.DPipe, [text("{"), function("array_to_string", texts, text(",")), text("}")])


def united_digits(digits: Expr, kind: SqlType) -> Expr:
    """The union of the ranges or multiranges in a concatenation of their hexadecimal digits."""
    single = range_of(kind) if kind.name in MULTIRANGES else kind
    return function(f"multiranges_united_{ranges.width_of(single)}", function("unhex", digits))


def complement(argument: Expr, kind: SqlType) -> Expr:
    """The complement of a multirange."""
    return _of(kind, "complement", argument)


def _of(kind: SqlType, name: str, *arguments: Expr) -> Expr:
    return macro(f"ms_multirange_{name}_{ranges.width_of(range_of(kind))}", *arguments)


def _over(name: str) -> Build:
    """A macro for multiranges of the first argument's type."""
    return lambda printer, arguments, node: _of(node.arguments[0].type, name, *arguments)


def _contains_value(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    kind = node.arguments[0].type
    return _of(kind, "contains_value", arguments[0], number_of(printer, arguments[1], range_of(kind)))


BUILDS: Final[dict[str, Build]] = {
    "multirange_make": lambda printer, arguments, node: _of(node.type, "make", *arguments),
    "multirange_of": lambda printer, arguments, node: macro("ms_multirange_of", *arguments),
    "multirange_contains_value": _contains_value,
    **{
        f"multirange_{name}": _over(name)
        for name in ("parts", "span", "contains", "overlaps", "union", "intersect", "minus")
    },
}
