"""PostgreSQL's operators on the stored types, by symbol: the canonical function of each, and its result.

Owns: the list of operators that Millstream has, written as families. ``planner.bind.conversion.resolution`` decides
which operator PostgreSQL would choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final

from planner.bind.calls.overloading.overloads import ANY_SPAN, Overload, Table, table
from planner.bind.conversion import carried_types as formed

_INTEGERS: Final = ("int2", "int4", "int8")
_FLOATS: Final = ("float4", "float8")
_STAMPS: Final = ("date", "timestamp", "timestamptz")
ARITHMETIC: Final = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
COMPARISONS: Final = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
MATCHES: Final = {"~~": "like", "~~*": "ilike", "~": "regex_match", "~*": "regex_imatch"}
BITS: Final = {"&": "bitand", "|": "bitor", "#": "bitxor", "<<": "shift_left", ">>": "shift_right"}
_PREFIXES: Final = {"@": "abs", "~": "bitnot", "|/": "sqrt", "||/": "cbrt"}
SETS: Final = {"@>": "array_contains", "<@": "array_contained", "&&": "array_overlaps"}
_OF_JSONB: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "@>": (("json_contains", "jsonb", "bool"),),
    "<@": (("json_contained", "jsonb", "bool"),),
    "?": (("json_exists", "text", "bool"),),
    "?|": (("json_exists_any", "_text", "bool"),),
    "?&": (("json_exists_all", "_text", "bool"),),
    "-": tuple(("json_remove", kind, "jsonb") for kind in ("text", "int4", "_text")),
    "#-": (("json_remove_path", "_text", "jsonb"),),
    "@?": (("path_found", "jsonpath", "bool"),),
    "@@": (("path_holds", "jsonpath", "bool"),),
}
_TESTS_OF_SPANS: Final = {
    "@>": "range_contains",
    "<@": "range_contained",
    "&&": "range_overlaps",
    "<<": "range_before",
    ">>": "range_after",
    "&<": "range_overleft",
    "&>": "range_overright",
    "-|-": "range_adjacent",
}
_SPANS_OF_SPANS: Final = {"+": "range_union", "*": "range_intersect", "-": "range_minus"}
#: The operands of an operator of rows.
ROWS: Final = ("record", "record")
#: Negated spellings: NOT around the canonical function.
NEGATED: Final = {"!~~": "~~", "!~~*": "~~*", "!~": "~", "!~*": "~*"}


def _wider(left: str, right: str, order: tuple[str, ...]) -> str:
    return order[max(order.index(left), order.index(right))]


def _arithmetic(symbol: str) -> Iterator[Overload]:
    name = ARITHMETIC[symbol]
    families = (_INTEGERS,) if symbol == "%" else (_INTEGERS, _FLOATS)
    for family in families:
        for left, right in product(family, family):
            yield Overload(name, (left, right), _wider(left, right, family))
    yield Overload(name, ("numeric", "numeric"), "numeric")


_TIMES: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "+": (
        ("date", "int4", "date"),
        ("int4", "date", "date"),
        ("date", "time", "timestamp"),
        ("time", "date", "timestamp"),
        *((stamp, "interval", "timestamp" if stamp == "date" else stamp) for stamp in _STAMPS),
        *(("interval", stamp, "timestamp" if stamp == "date" else stamp) for stamp in _STAMPS),
        ("time", "interval", "time"),
        ("interval", "time", "time"),
        ("timetz", "interval", "timetz"),
        ("interval", "timetz", "timetz"),
        ("date", "timetz", "timestamptz"),
        ("timetz", "date", "timestamptz"),
        ("interval", "interval", "interval"),
    ),
    "-": (
        ("date", "int4", "date"),
        ("date", "date", "int4"),
        *((stamp, "interval", "timestamp" if stamp == "date" else stamp) for stamp in _STAMPS),
        ("timestamp", "timestamp", "interval"),
        ("timestamptz", "timestamptz", "interval"),
        ("time", "time", "interval"),
        ("time", "interval", "time"),
        ("timetz", "interval", "timetz"),
        ("interval", "interval", "interval"),
    ),
    "*": (("interval", "float8", "interval"), ("float8", "interval", "interval")),
    "/": (("interval", "float8", "interval"),),
    "%": (),
}


#: Types of which only values of the same type are compared.
_ALIKE: Final = (
    *("numeric", "text", "bpchar", "name", "bool", "time", "timetz", "interval", "uuid", "bytea", "oid", "char"),
    "jsonb",
    *formed.COMPARED,
)


def _comparison(name: str) -> Iterator[Overload]:
    for family in (_INTEGERS, _FLOATS, _STAMPS):
        for left, right in product(family, family):
            yield Overload(name, (left, right), "bool")
    for alike in _ALIKE:
        yield Overload(name, (alike, alike), "bool")
    if name in ("eq", "ne"):
        for pair in (
            ("xid", "xid"),
            ("xid", "int4"),
            ("cid", "cid"),
            ("tsvector", "tsvector"),
        ):
            yield Overload(name, pair, "bool")
    yield Overload(name, ("oidvector", "oidvector"), "bool")
    yield Overload(name, ("anyarray", "anyarray"), "bool")
    yield Overload(name, ("anyenum", "anyenum"), "bool")
    for kind in ANY_SPAN:
        yield Overload(name, (kind, kind), "bool")
    yield Overload(name, ROWS, "bool")
    yield Overload(name, ("name", "text"), "bool")
    yield Overload(name, ("text", "name"), "bool")


@cache
def binary_operators(symbol: str) -> Table:
    """The binary operators of a symbol."""
    return table(_binary(symbol))


def _binary(symbol: str) -> Iterator[Overload]:
    if symbol in ARITHMETIC:
        yield from _arithmetic(symbol)
        for left, right, result in _TIMES[symbol]:
            yield Overload(ARITHMETIC[symbol], (left, right), result)
    elif symbol in COMPARISONS:
        yield from _comparison(COMPARISONS[symbol])
    elif symbol in MATCHES:
        for kind in ("text", "name", "bpchar"):
            yield Overload(MATCHES[symbol], (kind, "text"), "bool")
        if symbol == "~~":
            yield Overload("octets_like", ("bytea", "bytea"), "bool")
    elif symbol in BITS:
        for kind in _INTEGERS:
            yield Overload(BITS[symbol], (kind, "int4" if symbol in ("<<", ">>") else kind), kind)
    elif symbol == "^@":
        yield Overload("starts_with", ("text", "text"), "bool")
    elif symbol == "^":
        for kind in ("float8", "numeric"):
            yield Overload("power", (kind, kind), kind)
    elif symbol == "||":
        for left, right in (("text", "text"), ("text", "anynonarray"), ("anynonarray", "text")):
            yield Overload("concat", (left, right), "text")
        yield Overload("concat", ("bytea", "bytea"), "bytea")
        arrays, element = "anycompatiblearray", "anycompatible"
        yield Overload("array_cat", (arrays, arrays), arrays)
        yield Overload("array_append", (arrays, element), arrays)
        yield Overload("array_prepend", (element, arrays), arrays)
        yield Overload("json_concat", ("jsonb", "jsonb"), "jsonb")
    elif symbol in SETS:
        yield Overload(SETS[symbol], ("anyarray", "anyarray"), "bool")
    yield from _of_documents(symbol)
    for name, left, right, result in formed.OPERATORS.get(symbol, ()):
        yield Overload(name, (left, right), result)
    yield from _of_spans(symbol)


def _of_spans(symbol: str) -> Iterator[Overload]:
    """Operators of ranges and multiranges."""
    if symbol in _TESTS_OF_SPANS:
        for pair in product(ANY_SPAN, ANY_SPAN):
            yield Overload(_TESTS_OF_SPANS[symbol], pair, "bool")
    for kind in ANY_SPAN:
        if symbol in _SPANS_OF_SPANS:
            yield Overload(_SPANS_OF_SPANS[symbol], (kind, kind), kind)
        if symbol == "@>":
            yield Overload("range_contains_value", (kind, "anyelement"), "bool")
        if symbol == "<@":
            yield Overload("range_contained_value", ("anyelement", kind), "bool")


def _of_documents(symbol: str) -> Iterator[Overload]:
    for kind in ("json", "jsonb"):
        match symbol:
            case "->" | "->>":
                name, result = ("json_get", kind) if symbol == "->" else ("json_get_text", "text")
                yield Overload(name, (kind, "text"), result)
                yield Overload(name, (kind, "int4"), result)
            case "#>":
                yield Overload("json_path", (kind, "_text"), kind)
            case "#>>":
                yield Overload("json_path_text", (kind, "_text"), "text")
    for name, right, result in _OF_JSONB.get(symbol, ()):
        yield Overload(name, ("jsonb", right), result)


@cache
def prefix_operators(symbol: str) -> Table:
    """The prefix operators of a symbol."""
    if symbol in _PREFIXES:
        kinds = {"@": (*_INTEGERS, *_FLOATS, "numeric"), "~": _INTEGERS}.get(symbol, ("float8",))
        own = formed.PREFIXES.get(symbol, ())
        found = [Overload(_PREFIXES[symbol], (kind,), kind) for kind in kinds]
        return table(found + [Overload(name, (kind,), kind) for name, kind in own])
    if symbol not in ("-", "+"):
        return {}
    signed = (*_INTEGERS, *_FLOATS, "numeric", *(("interval",) if symbol == "-" else ()))
    return table(Overload("neg" if symbol == "-" else "", (kind,), kind) for kind in signed)
