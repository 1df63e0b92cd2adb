"""PostgreSQL's operators on the stored types, by symbol: which canonical function each is and what it returns.

Owns: the operator table as data, written as families instead of pg_operator's rows. Choice among overloads is
``planner.bind.casts``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final

from planner.bind.casts import Overload

_INTEGERS: Final = ("int2", "int4", "int8")
_FLOATS: Final = ("float4", "float8")
_STAMPS: Final = ("date", "timestamp", "timestamptz")
ARITHMETIC: Final = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
COMPARISONS: Final = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
MATCHES: Final = {"~~": "like", "~~*": "ilike", "~": "regex_match", "~*": "regex_imatch"}
#: Negated spellings: NOT around the canonical function.
NEGATED: Final = {"!~~": "~~", "!~~*": "~~*", "!~": "~", "!~*": "~*"}
#: Operators that PostgreSQL has on these types and Millstream has not.
UNSUPPORTED: Final = frozenset(
    ("&", "|", "#", "~", "<<", ">>", "|/", "||/", "@", "@>", "<@", "&&", "->", "->>", "#>")
) | frozenset(("#>>", "?", "?|", "?&", "#-", "!!", "@@", "@?", "<->", "^@", "-|-"))


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
        ("interval", "interval", "interval"),
    ),
    "*": (("interval", "float8", "interval"), ("float8", "interval", "interval")),
    "/": (("interval", "float8", "interval"),),
    "%": (),
}


def _comparison(name: str) -> Iterator[Overload]:
    for family in (_INTEGERS, _FLOATS, _STAMPS):
        for left, right in product(family, family):
            yield Overload(name, (left, right), "bool")
    for alike in ("numeric", "text", "bpchar", "name", "bool", "time", "interval", "uuid", "bytea", "jsonb", "oid"):
        yield Overload(name, (alike, alike), "bool")
    yield Overload(name, ("name", "text"), "bool")
    yield Overload(name, ("text", "name"), "bool")


@cache
def overloads(symbol: str) -> tuple[Overload, ...]:
    """The binary operators of a symbol."""
    if symbol in ARITHMETIC:
        times = (Overload(ARITHMETIC[symbol], (left, right), result) for left, right, result in _TIMES[symbol])
        return (*_arithmetic(symbol), *times)
    if symbol in COMPARISONS:
        return tuple(_comparison(COMPARISONS[symbol]))
    if symbol in MATCHES:
        return tuple(Overload(MATCHES[symbol], (left, "text"), "bool") for left in ("text", "name", "bpchar"))
    if symbol == "^":
        return (Overload("power", ("float8", "float8"), "float8"), Overload("power", ("numeric", "numeric"), "numeric"))
    if symbol == "||":
        return (Overload("concat", ("text", "text"), "text"), Overload("concat", ("bytea", "bytea"), "bytea"))
    return ()


@cache
def prefix_overloads(symbol: str) -> tuple[Overload, ...]:
    """The prefix operators of a symbol."""
    if symbol not in ("-", "+"):
        return ()
    kinds = (*_INTEGERS, *_FLOATS, "numeric", *(("interval",) if symbol == "-" else ()))
    return tuple(Overload("neg" if symbol == "-" else "", (kind,), kind) for kind in kinds)
