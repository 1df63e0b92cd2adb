"""PostgreSQL's own types, casts, operators, functions and aggregates, as its system catalogs list them.

Owns: reading ``*.tsv`` (written by ``tools/postgres_catalog.py`` from a real server) and the look-ups that resolution
needs. Whether Millstream can compute a function is not known here: the rows decide which function PostgreSQL would
choose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct

_NULL: Final = "\\N"


class PgType(Struct, frozen=True):
    """A row of pg_type. ``kind`` is typtype: b(ase), c(omposite), d(omain), e(num), p(seudo), r(ange), m(ultirange)."""

    oid: int
    name: str
    length: int
    kind: str
    category: str
    preferred: bool
    element: int
    array: int


class PgCast(Struct, frozen=True):
    """A row of pg_cast. ``context``: i(mplicit), a(ssignment), e(xplicit). ``method``: f(unction), b(inary coercible),
    i (by the types' text forms)."""

    source: int
    target: int
    function: int
    context: str
    method: str


class PgRange(Struct, frozen=True):
    """A row of pg_range: a range type, the type of its bounds, and its multirange type."""

    oid: int
    subtype: int
    multirange: int


class PgOperator(Struct, frozen=True):
    """A row of pg_operator; ``left`` is 0 for a prefix operator. ``function`` computes it."""

    oid: int
    name: str
    left: int
    right: int
    result: int
    function: int
    commutator: int
    negator: int


class PgProc(Struct, frozen=True):
    """A row of pg_proc. ``kind``: f(unction), a(ggregate), w(indow), p(rocedure). ``volatility``: i, s or v.

    ``arguments`` are the oids of the parameter types, of which the last ``defaults`` have default values; ``variadic``
    is the element type of a VARIADIC last argument, or 0. ``source`` names the C function: two functions with the same
    source are the same.
    """

    oid: int
    name: str
    kind: str
    arguments: tuple[int, ...]
    defaults: int
    variadic: int
    result: int
    returns_set: bool
    strict: bool
    volatility: str
    source: str
    argument_names: tuple[str, ...]


class PgAggregate(Struct, frozen=True):
    """A row of pg_aggregate. ``kind``: n(ormal), o(rdered-set), h(ypothetical-set)."""

    function: int
    kind: str
    direct: int


class _Line(Struct, frozen=True):
    """A row that is parsed on first use: a session uses dozens of thousands of functions."""

    names: tuple[str, ...]
    values: tuple[str, ...]


def _lines(catalog: str) -> Iterator[_Line]:
    text = files("catalog.postgres").joinpath(f"{catalog}.tsv").read_text(encoding="utf-8")
    header, *lines = text.splitlines()
    names = tuple(header.split("\t"))
    return (_Line(names, tuple(line.split("\t"))) for line in lines)


def _row(line: _Line) -> dict[str, str | None]:
    # few of the hundred thousand fields read at start have an escape, so the check saves as many calls
    values = [item if "\\" not in item else None if item == _NULL else unescaped(item) for item in line.values]
    return dict(zip(line.names, values, strict=True))


@cache
def _named(catalog: str, column: str) -> Mapping[str, tuple[_Line, ...]]:
    found: dict[str, list[_Line]] = defaultdict(list)
    for line in _lines(catalog):
        found[unescaped(line.values[line.names.index(column)])].append(line)
    return {name: tuple(lines) for name, lines in found.items()}


def rows(catalog: str) -> Iterator[dict[str, str | None]]:
    """The rows of one catalog, in COPY's text format, by column name."""
    return map(_row, _lines(catalog))


_ESCAPES: Final = {"\\\\": "\\", "\\t": "\t", "\\n": "\n", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\v": "\v"}


def unescaped(text: str) -> str:
    """A field in COPY's text format without its escapes."""
    if "\\" not in text:
        return text
    pieces, position = [], 0
    while position < len(text):
        width = 2 if text[position] == "\\" else 1
        piece = text[position : position + width]
        pieces.append(_ESCAPES.get(piece, piece[-1]))
        position += width
    return "".join(pieces)


def _oids(text: str | None) -> tuple[int, ...]:
    return tuple(map(int, text.split())) if text else ()


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip('"') for name in text.strip("{}").split(",")) if text else ()


def _int(row: Mapping[str, str | None], name: str) -> int:
    return int(row[name] or 0)


@cache
def ranges() -> Mapping[int, PgRange]:
    """pg_range, by the oid of the range type."""
    found = (
        PgRange(_int(row, "rngtypid"), _int(row, "rngsubtype"), _int(row, "rngmultitypid")) for row in rows("pg_range")
    )
    return {item.oid: item for item in found}


#: The oids of extension members (``tools/postgres_extensions.py``), which are the same in every database. Clients take
#: lower oids for PostgreSQL's own, and users' objects get theirs from 16384 on.
MEMBERS: Final = range(1 << 29, (1 << 29) + (1 << 16))
#: Extensions with types. Resolution knows their rows even if they were not created, as no value has one of their types
#: then.
_TYPED: Final = ("hstore",)


def with_members(catalog: str) -> Iterator[dict[str, str | None]]:
    """The rows of one catalog, with those that extensions with types add to it."""
    yield from rows(catalog)
    for extension in _TYPED:
        yield from rows(f"extensions/{extension}/{catalog}")


@cache
def types() -> Mapping[int, PgType]:
    """pg_type by oid."""
    found = {}
    for row in with_members("pg_type"):
        oid, length = _int(row, "oid"), _int(row, "typlen")
        name, kind, category = str(row["typname"]), str(row["typtype"]), str(row["typcategory"])
        preferred = row["typispreferred"] == "t"
        # Only a type that is subscripted as an array has elements in array literals (typelem of name is "char").
        element = _int(row, "typelem") if length == -1 else 0
        found[oid] = PgType(oid, name, length, kind, category, preferred, element, _int(row, "typarray"))
    return found


#: The first oid of user-defined types (catalog.objects), and of the types of their relations' rows
#: (catalog.values.oids).
_FIRST_OID: Final = 16384
_FIRST_ROW: Final = 1 << 30


def type_row(oid: int) -> PgType:
    """pg_type by oid. A user-defined type has an odd oid; the one before it belongs to its array type."""
    if oid < _FIRST_OID or oid in MEMBERS:
        return types()[oid]
    name = "enum" if oid < _FIRST_ROW else "record"
    if oid % 2 == 0:
        return PgType(oid, f"_{name}", -1, "b", "A", False, oid + 1, 0)
    if oid < _FIRST_ROW:
        return PgType(oid, name, 4, "e", "E", False, 0, oid - 1)
    return PgType(oid, name, -1, "c", "C", False, 0, oid - 1)


@cache
def type_oids() -> Mapping[str, int]:
    """Oids by pg_type.typname."""
    return {item.name: oid for oid, item in types().items() if oid not in MEMBERS}


@cache
def casts() -> Mapping[tuple[int, int], PgCast]:
    """pg_cast by (source, target)."""
    found = {}
    for row in with_members("pg_cast"):
        source, target = _int(row, "castsource"), _int(row, "casttarget")
        context, method = str(row["castcontext"]), str(row["castmethod"])
        found[source, target] = PgCast(source, target, _int(row, "castfunc"), context, method)
    return found


@cache
def operators(name: str) -> tuple[PgOperator, ...]:
    """The operators with a name, in the order of their oids."""
    return tuple(map(_operator, map(_row, _named("pg_operator", "oprname").get(name, ()))))


@cache
def member_operators(name: str) -> tuple[PgOperator, ...]:
    """The operators with a name that take a type of an extension."""
    found = (row for extension in _TYPED for row in rows(f"extensions/{extension}/pg_operator"))
    return tuple(_operator(row) for row in found if row["oprname"] == name)


def _operator(row: Mapping[str, str | None]) -> PgOperator:
    rest = ("oprleft", "oprright", "oprresult", "oprcode", "oprcom", "oprnegate")
    return PgOperator(_int(row, "oid"), str(row["oprname"]), *(_int(row, item) for item in rest))


@cache
def _names_behind() -> Mapping[int, str]:
    """The operators' names, by the functions that compute them."""
    return {
        int(line.values[line.names.index("oprcode")]): name
        for name, lines in _named("pg_operator", "oprname").items()
        for line in lines
    }


def operator_behind(oid: int) -> PgOperator | None:
    """The operator that a function computes, or None."""
    name = _names_behind().get(oid)
    return None if name is None else next(item for item in operators(name) if item.function == oid)


def cast_behind(function: PgProc) -> int | None:
    """The type to which a function casts, None if it implements no cast; if there are several casts, the type of its
    result."""
    targets = [item.target for item in casts().values() if item.function == function.oid]
    return function.result if function.result in targets else next(iter(targets), None)


@cache
def functions(name: str) -> tuple[PgProc, ...]:
    """The functions, aggregates and procedures with a name, in the order of their oids."""
    return tuple(_function(_row(line)) for line in _named("pg_proc", "proname").get(name, ()))


def function(oid: int) -> PgProc:
    """A function by its oid. Raises KeyError."""
    return next(item for item in functions(_function_names()[oid]) if item.oid == oid)


@cache
def _function_names() -> Mapping[int, str]:
    return {int(line.values[0]): name for name, lines in _named("pg_proc", "proname").items() for line in lines}


def _function(row: Mapping[str, str | None]) -> PgProc:
    return PgProc(
        oid=_int(row, "oid"),
        name=str(row["proname"]),
        kind=str(row["prokind"]),
        arguments=_oids(row["proargtypes"]),
        defaults=_int(row, "pronargdefaults"),
        variadic=_int(row, "provariadic"),
        result=_int(row, "prorettype"),
        returns_set=row["proretset"] == "t",
        strict=row["proisstrict"] == "t",
        volatility=str(row["provolatile"]),
        source=str(row["prosrc"]),
        argument_names=_names(row["proargnames"]),
    )


@cache
def aggregates() -> Mapping[int, PgAggregate]:
    """pg_aggregate by the function's oid."""
    found = {}
    for row in rows("pg_aggregate"):
        oid = _int(row, "aggfnoid")
        found[oid] = PgAggregate(oid, str(row["aggkind"]), _int(row, "aggnumdirectargs"))
    return found
