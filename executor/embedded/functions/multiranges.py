"""Multiranges in DuckDB: a BLOB (``catalog.multiranges``), taken apart into lists of ranges and put together again.

Owns: the macros of unions and complements, of which all else is made, and the operators and functions over them. Lists
are walked beside themselves moved by one, never by place: a list that a lambda captures is copied for each element.
All are NULL for NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from catalog import ranges
from catalog.multiranges import range_of
from catalog.types import MULTIRANGES, SqlType
from executor.embedded.functions.ranges import number_of
from executor.embedded.functions.ranges import written as written_range
from executor.embedded.printing.nodes import macro
from executor.printing.nodes import Build, Expr, chain, function, identifier, text
from planner.expression import Call

if TYPE_CHECKING:
    from executor.embedded.printing.dialect import DuckPrinter

#: What is the same for bounds of any width: the union of ranges, by their cuts and by themselves.
_COMMON: Final = """
CREATE MACRO ms_multirange_of_cuts(l, u) AS unhex(array_to_string(list_transform(list_zip(
    list_filter(list_zip(l, list_prepend(NULL, u)), lambda pair: pair[1] IS NOT NULL
        AND (pair[2] IS NULL OR pair[2] < pair[1])),
    list_filter(list_zip(u, l[2:]), lambda pair: pair[2] IS NULL OR pair[1] < pair[2])),
    lambda pair: hex(pair[1][1] || pair[2][1])), ''));
CREATE MACRO ms_multirange_union_of(parts) AS list_transform([list_filter(parts, lambda part: part[1:1] <> '\\x00')],
    lambda present: CASE WHEN present IS NOT NULL THEN ms_multirange_of_cuts(
        list_sort(list_transform(present, lambda part: ms_range_lower_cut(part::BLOB))),
        list_sort(list_transform(present, lambda part: ms_range_upper_cut(part::BLOB)))) END)[1];
CREATE MACRO ms_multirange_make(parts) AS CASE WHEN len(list_filter(parts, lambda part: part IS NULL)) > 0
    THEN error('!22004!multirange values cannot contain null members') ELSE ms_multirange_union_of(parts) END;
CREATE MACRO ms_multirange_of(r) AS CASE WHEN ms_range_is_empty(r) THEN ''::BLOB ELSE r END;
"""


def _of_width(width: int) -> str:
    """The macros of multiranges whose bounds' numbers have so many bytes."""
    half, zeros = width + 2, r"\x00" * (width + 1)
    below, above, empty = rf"'\x01{zeros}'::BLOB", rf"'\x03{zeros}'::BLOB", rf"'\x00{zeros}\x00{zeros}'::BLOB"
    return f"""
CREATE MACRO ms_multirange_parts_{width}(m) AS
    list_transform(regexp_extract_all(hex(m), '.{{{4 * half}}}'), lambda digits: unhex(digits));
CREATE MACRO ms_multirange_last_{width}(m) AS m[octet_length(m) - {half - 1}:octet_length(m)];
CREATE MACRO ms_multirange_span_{width}(m) AS CASE WHEN m = ''::BLOB THEN {empty}
    ELSE m[1:{half}] || ms_multirange_last_{width}(m) END;
CREATE MACRO ms_multirange_between_{width}(m, open_below, open_above) AS ({below} || m || {above})[
    CASE WHEN open_below THEN {2 * half} ELSE 0 END + 1
    :octet_length(m) + CASE WHEN open_above THEN 0 ELSE {2 * half} END];
CREATE MACRO ms_multirange_complement_{width}(m) AS list_transform([m], lambda whole: ms_multirange_between_{width}(
    whole::BLOB, whole[1:1] = '\\x01'::BLOB, ms_multirange_last_{width}(whole::BLOB)[1:1] = '\\x03'::BLOB))[1];
CREATE MACRO ms_multirange_union_{width}(a, b) AS ms_multirange_union_of(ms_multirange_parts_{width}(a || b));
CREATE MACRO ms_multirange_minus_{width}(a, b) AS
    ms_multirange_complement_{width}(ms_multirange_union_{width}(ms_multirange_complement_{width}(a), b));
CREATE MACRO ms_multirange_intersect_{width}(a, b) AS
    ms_multirange_minus_{width}(a, ms_multirange_complement_{width}(b));
CREATE MACRO ms_multirange_contains_{width}(a, b) AS ms_multirange_union_{width}(a, b) = a;
CREATE MACRO ms_multirange_overlaps_{width}(a, b) AS ms_multirange_intersect_{width}(a, b) <> ''::BLOB;
CREATE MACRO ms_multirange_contains_value_{width}(m, n) AS CASE WHEN n IS NOT NULL THEN
    len(list_filter(ms_multirange_parts_{width}(m), lambda part: ms_range_contains_{width}(part::BLOB, n))) > 0 END;
CREATE MACRO ms_multirange_gathered_{width}(items) AS
    ms_multirange_union_of(flatten(list_transform(items, lambda item: ms_multirange_parts_{width}(item::BLOB))));
CREATE MACRO ms_multirange_shared_{width}(items) AS ms_multirange_complement_{width}(
    ms_multirange_gathered_{width}(list_transform(items, lambda item: ms_multirange_complement_{width}(item::BLOB))));
"""


STATEMENTS: Final = _COMMON + _of_width(8) + _of_width(16)


def written(argument: Expr, kind: SqlType, shown: Callable[[Expr, SqlType], Expr]) -> Expr:
    """multirange_out; ``shown`` writes a bound."""
    part = identifier("part")
    each = exp.Lambda(this=written_range(exp.Column(this=part), range_of(kind), shown), expressions=[part.copy()])
    texts = function("list_transform", _of(kind, "parts", argument), each)
    return chain(exp.DPipe, [text("{"), function("array_to_string", texts, text(",")), text("}")])


def union_of(items: Expr, kind: SqlType) -> Expr:
    """The union of a list of ranges or of multiranges."""
    return _of(kind, "gathered", items) if kind.name in MULTIRANGES else macro("ms_multirange_union_of", items)


def shared_by(items: Expr, kind: SqlType) -> Expr:
    """The intersection of a list of multiranges."""
    return _of(kind, "shared", items)


def _of(kind: SqlType, name: str, *arguments: Expr) -> Expr:
    return macro(f"ms_multirange_{name}_{ranges.width_of(range_of(kind))}", *arguments)


def _over(name: str) -> Build:
    """A macro of multiranges of the first argument's type."""
    return lambda printer, arguments, node: _of(node.arguments[0].type, name, *arguments)


def _contains_value(printer: DuckPrinter, arguments: list[Expr], node: Call) -> Expr:
    kind = node.arguments[0].type
    return _of(kind, "contains_value", arguments[0], number_of(printer, arguments[1], range_of(kind)))


BUILDS: Final[dict[str, Build]] = {
    "multirange_make": lambda printer, arguments, node: macro("ms_multirange_make", *arguments),
    "multirange_of": lambda printer, arguments, node: macro("ms_multirange_of", *arguments),
    "multirange_contains_value": _contains_value,
    **{
        f"multirange_{name}": _over(name)
        for name in ("parts", "span", "contains", "overlaps", "union", "intersect", "minus")
    },
}
