"""Casts as PostgreSQL's analysis adds them, and constants as their types' output functions write them.

Owns: ``coerce`` (coerce_type), ``cast`` (coerce_to_target_type), ``agreed`` (select_common_type) and the canonical
texts of constants. Constants of JSON, array and similar types stay as they were written.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from catalog.extensions import is_member
from catalog.objects import FIRST_OID
from catalog.values.types import ARRAYS, SqlType, by_oid, is_known
from planner.bind.conversion.literals import value_of
from planner.bind.conversion.resolution import TEXT, UNKNOWN, array_of, common, pathway
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.analysis_scope import Place
from planner.bind.deparsing.trees import Array, Call, Case, Cast, ColumnOf, Const, Listed, Merged, Node, Query, Var
from planner.bind.lookup.type_names import declared_typmod

INTEGER: Final = 23
NUMERIC: Final = 1700
REGCLASS: Final = 2205
INTERVAL: Final = 1186
#: Pseudo-types that accept a value of any type.
ANYTHING: Final = frozenset((2276, 2283, 2277, 2776, 3500, 3831, 4537, 5077, 5078, 5079, 5080, 4538))
_TRUE: Final = frozenset(("t", "true", "y", "yes", "on", "1"))
_FALSE: Final = frozenset(("f", "false", "n", "no", "off", "0"))
#: Dates and times whose value depends on when they are read, or that have no fixed value.
_SPECIAL: Final = re.compile("(?i)now|today|tomorrow|yesterday|epoch|inf|allballs|bc")


def coerce(place: Place, node: Node, oid: int, implicit: bool = True) -> Node:
    """A value converted to a type."""
    if isinstance(node, Const) and node.oid == UNKNOWN:
        return constant(place, node.text, oid) if oid not in ANYTHING else node
    if node.oid == oid or oid in ANYTHING:
        return node
    if node.oid == UNKNOWN:
        raise AsWrittenError
    if oid == REGCLASS and isinstance(node, Const):
        return node  # a sequence, which stored texts name by its oid
    source, target = place.base(node.oid), place.base(oid)
    path = pathway(source, target, "explicit")
    if path is None:
        raise AsWrittenError
    inner = node if target == oid or source == target else hidden(coerce(place, node, target, implicit))
    return Cast(inner, oid, -1, implicit, path != "function")


def hidden(node: Node) -> Node:
    """Marks a cast as implicit where another cast shows it already."""
    return replace(node, implicit=True) if isinstance(node, Cast) else node


def cast(place: Place, node: Node, kind: SqlType, domain: int = 0) -> Node:
    """``node::kind`` as the text has it."""
    oid, typmod = kind.oid, declared_typmod(kind)
    if kind.name in ARRAYS and typmod >= 0:
        raise AsWrittenError
    if isinstance(node, Const) and node.oid == UNKNOWN and oid == INTERVAL and node.text is not None:
        found: Node = Const(_shown(place, node.text, kind), oid, typmod)
    else:
        found = coerce(place, node, oid, implicit=False)
    if typmod != typmod_of(found):
        is_new = found is not node and not isinstance(found, Const)
        found = Cast(hidden(found) if is_new else found, oid, typmod, relabel=typmod < 0)
    return Cast(hidden(found) if found is not node else found, domain, relabel=True) if domain else found


def typmod_of(node: Node) -> int:
    """The type modifier of an expression (exprTypmod)."""
    match node:
        case Const() | Var() | Merged() | Cast():
            return node.typmod
        case Case(branches=branches, otherwise=otherwise):
            return _alike([otherwise, *(result for _, result in branches)])
        case Listed(word="COALESCE" | "GREATEST" | "LEAST", arguments=arguments):
            return _alike(arguments)
        case Listed(word="NULLIF", arguments=arguments):
            return typmod_of(arguments[0])
        case Array(elements=elements) if elements:
            return _alike(elements)
    return -1


def _alike(nodes: Sequence[Node]) -> int:
    found = {(item.oid, typmod_of(item)) for item in nodes}
    return found.pop()[1] if len(found) == 1 else -1


def agreed(place: Place, nodes: Sequence[Node]) -> int:
    """The common type of several values."""
    if len(kinds := {item.oid for item in nodes}) == 1 and UNKNOWN not in kinds:
        return kinds.pop()
    found = common(place.bases(nodes))
    if found is None:
        raise AsWrittenError
    return found


def as_text(node: Node) -> Node:
    """A result column: a string of unknown type becomes text."""
    return Const(node.text, TEXT) if isinstance(node, Const) and node.oid == UNKNOWN else node


def in_array(place: Place, nodes: Sequence[Node], element: int) -> Array:
    """ARRAY of values that are implicitly converted to a type."""
    return Array(tuple(coerce(place, item, element) for item in nodes), array_of(element))


def as_variadic(place: Place, call: Call, element: int, count: int) -> Call:
    """A call whose last arguments become the elements of an array."""
    first, rest = call.arguments[:-count], call.arguments[-count:]
    return replace(call, arguments=(*first, in_array(place, rest, element)), variadic=True)


# --- constants -------------------------------------------------------------------------------------------------------


def constant(place: Place, text: str | None, oid: int) -> Const:
    """A literal read as a type."""
    if text is None or (oid >= FIRST_OID and not is_member(oid)) or not is_known(oid):
        return Const(text, oid)
    return Const(_shown(place, text, by_oid(oid)), oid)


def _shown(place: Place, text: str, kind: SqlType) -> str:
    """The output function's text for a literal read by the type's input function."""
    word = text.strip()
    match kind.name:
        case "bool":
            return "t" if word.lower() in _TRUE else "f" if word.lower() in _FALSE else text
        case "int2" | "int4" | "int8" if re.fullmatch(r"[+-]?\d+", word):
            return str(int(word))
        case "numeric" if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word):
            return format(Decimal(word), "f")
        case "float4" | "float8" if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word):
            return _float(float(word))
        case "date" | "timestamp" | "timestamptz" | "time" if not _SPECIAL.search(text):
            return _moment(_value(place, text, kind), text)
        case "interval":
            value = _value(place, text, kind)
            assert isinstance(value, tuple)
            return _interval(*value)
        case "uuid" | "hstore":
            return str(value_of(text, kind))
    return text


def _value(place: Place, text: str, kind: SqlType) -> object:
    context = place.binding.context
    return value_of(text, kind, context.time_zone, context.reading)


def _float(value: float) -> str:
    """float8out's shortest text."""
    shown = repr(value).removesuffix(".0")
    mantissa, _, exponent = shown.partition("e")
    return f"{mantissa}e{int(exponent):+03d}" if exponent else shown


def _moment(value: object, text: str) -> str:
    match value:
        case dt.datetime(tzinfo=None):
            return _short(value.isoformat(" "))
        case dt.datetime():
            return _short(value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ")) + "+00"
        case dt.date() | dt.time():
            return _short(value.isoformat())
    return text


def _short(moment: str) -> str:
    """A text without the zeros at the end of a second's fraction."""
    return moment.rstrip("0") if "." in moment else moment


def _interval(months: int, days: int, micros: int) -> str:
    """interval_out's text (EncodeInterval, INTSTYLE_POSTGRES)."""
    years, months = int(months / 12), months - int(months / 12) * 12
    parts, before = list[str](), False
    for count, word in ((years, "year"), (months, "mon"), (days, "day")):
        if count:
            parts.append(f"{'+' if before and count > 0 else ''}{count} {word}{'' if count == 1 else 's'}")
            before = count < 0
    if micros or not parts:
        sign = "-" if micros < 0 else "+" if before else ""
        seconds, part = divmod(abs(micros), 1_000_000)
        shown = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        parts.append(sign + shown + (f".{part:06d}".rstrip("0") if part else ""))
    return " ".join(parts)


def outputs_of(query: Query) -> tuple[ColumnOf, ...]:
    """A query's result columns."""
    return tuple(ColumnOf(item.name, item.node.oid, typmod_of(item.node)) for item in query.targets)
