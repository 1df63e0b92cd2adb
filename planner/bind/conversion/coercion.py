"""Types of expressions: coercion, common types, and precision and scale of numeric results.

Owns: ``coerce``, which converts a literal and wraps any other expression in ``Cast``, the common type of UNION, CASE
and the like (https://www.postgresql.org/docs/15/typeconv-union-case.html), and the numeric result rules of
``catalog.values.types``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.array_shapes import is_list, listed
from catalog.values.errors import SqlError, out_of_range, unsupported
from catalog.values.forms.bits import fit_bits
from catalog.values.nested_texts import no_dimensions
from catalog.values.opaque import FORMED
from catalog.values.scales import is_padded
from catalog.values.times.precision import expressed, fit_moment
from catalog.values.times.styles import USUAL, Reading
from catalog.values.types import (
    BITS,
    INT4,
    INT8,
    MAX_PRECISION,
    MULTIRANGES,
    NAMED_OIDS,
    NUMERIC,
    OPAQUE,
    QUOTIENT,
    ROUNDED,
    SPREAD,
    TEXT,
    UNCONSTRAINED,
    Composite,
    SqlType,
    array,
    by_name,
    numeric,
    plain,
    record,
    shaped,
)
from planner.algebra.nodes import Call, Cast, Literal, Parameter, Scalar, Value
from planner.bind.conversion.carried_types import CASTS
from planner.bind.conversion.domains import has_domains, into_type
from planner.bind.conversion.literals import INTEGER_BITS, fit_numeric, fit_text, value_of
from planner.bind.conversion.named_oids import read_oid, read_oids, shown_oid, shown_oids
from planner.bind.conversion.relative_dates import relative
from planner.bind.conversion.resolution import Level, first_common, pathway
from planner.bind.conversion.row_types import coerce_row
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Binding, Environment

STRINGS: Final = frozenset(("text", "varchar", "bpchar", "name", "char"))
NUMBERS: Final = frozenset(("int2", "int4", "int8", "numeric", "float4", "float8"))
#: Digits that an integer type needs as a numeric.
_INTEGER_DIGITS: Final = {"int2": 5, "int4": 10, "int8": 19, "oid": 10}
#: Types of a length in which explicit casts cut.
_CUT: Final = BITS | {"varchar", "bpchar"}
#: Types whose values those of another type carry.
_CARRIED: Final = OPAQUE | {"money", "xid8"} | MULTIRANGES.keys()
_WIDTH: Final = ("int2", "int4", "int8", "numeric", "float4", "float8")


def as_numeric(kind: SqlType) -> SqlType:
    """The numeric that holds every value of a number type exactly (floats: unconstrained)."""
    if kind.name == "numeric":
        return kind
    digits = _INTEGER_DIGITS.get(kind.name)
    return NUMERIC if digits is None else numeric(digits, 0)


def numeric_result(function: str, left: SqlType, right: SqlType) -> SqlType:
    """Precision and scale of + - * / % on two numerics."""
    (p1, s1), (p2, s2) = ((kind.precision, kind.scale) for kind in (left, right))
    loose = left.is_loose or right.is_loose
    scale = max(s1, s2)
    match function:
        case "add" | "sub":
            return numeric(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "mul":
            rounds = loose or s1 + s2 > MAX_PRECISION
            return numeric(p1 + p2, min(s1 + s2, UNCONSTRAINED[1]) if rounds else s1 + s2)
        case "mod":
            return numeric(min(p1 - s1, p2 - s2) + scale, scale)
        case _:
            return SqlType("numeric", QUOTIENT)


def common_numeric(kinds: Sequence[SqlType]) -> SqlType:
    """The numeric that holds the values of several; with integers a ``SPREAD`` stays one, whose zero is theirs."""
    if all(kind.modifiers == SPREAD or kind.scale == 0 for kind in kinds) and any(kind.scale for kind in kinds):
        return SqlType("numeric", SPREAD)
    scale = max(kind.scale for kind in kinds)
    return numeric(max(kind.precision - kind.scale for kind in kinds) + scale, scale)


def numeric_of(scalar: Scalar) -> SqlType:
    """What a cast to numeric without digits makes of a value: it keeps those that it has."""
    if scalar.type.name in ("numeric", *_INTEGER_DIGITS):
        return as_numeric(scalar.type)
    written = scalar.value if isinstance(scalar, Literal) and scalar.type.name == "unknown" else None
    return written_digits(written) if isinstance(written, str) else NUMERIC


def written_digits(text: str) -> SqlType:
    """The numeric that a number in quotes needs; unconstrained where the text is none or not plain."""
    whole, _, decimals = text.strip().lstrip("+-").partition(".")
    plain = (whole + decimals).isdigit() and (whole + decimals).isascii() and len(whole + decimals) <= 38
    return numeric(len(whole + decimals), len(decimals)) if plain else NUMERIC


def target_type(name: str, source: SqlType) -> SqlType:
    """A type that is asked for by name only; a numeric takes the digits that the source needs."""
    if name == source.name or (name == "anyenum" and source.enum is not None):
        return source
    return as_numeric(source) if name == "numeric" else by_name(name)


def coerce(
    binding: Binding, scalar: Scalar, target: SqlType, level: Level = "implicit", node: Any = None
) -> Scalar | None:
    """The scalar as a value of ``target``; None where no cast of that level exists. Raises for a literal's bad text."""
    source = scalar.type
    if source == target:
        return scalar
    found = _coerced(binding, scalar, target, level, node)
    if found is None or (target.row is None and target.element is None) or not has_domains(target):
        return found
    is_checked = source.row is not None or (source.element is not None and source.element == target.element)
    return found if is_checked else into_type(binding, found, node)


def _coerced(binding: Binding, scalar: Scalar, target: SqlType, level: Level, node: Any) -> Scalar | None:
    source = scalar.type
    if source.row is not None and target.row is not None:
        return coerce_row(
            binding, scalar, target, lambda item, kind, place: coerce(binding, item, kind, level, place), node
        )
    if target.name in NAMED_OIDS and (source.name in STRINGS or (source.name == "unknown" and _is_text(scalar))):
        return read_oid(binding, scalar, target, node)
    if _is_of_names(target) and source.name == "unknown" and _is_text(scalar):
        assert isinstance(scalar, Literal)
        return read_oids(binding, scalar, target, node)
    if source.name == "unknown":
        return _coerce_unknown(binding, scalar, target, level, node)
    if not castable(source, target, level):
        return None
    if source.name in ("inet", "cidr") and target.name in STRINGS:
        return coerce(binding, Call("net_show", (scalar,), TEXT), target, level, node)
    if not _CARRIED.isdisjoint((source.name, target.name)) and _is_computed(source, target, level):
        return _computed(binding, scalar, target, level, node)
    if source.name in NAMED_OIDS and target.name in STRINGS:
        return coerce(binding, shown_oid(binding, scalar), target, level, node)
    if _is_of_names(source) and (target.element or target).name in STRINGS and not isinstance(scalar, Literal):
        return coerce(binding, shown_oids(binding, scalar), target, level, node)
    if "shaped" in (source.name, target.name) and isinstance(scalar, Literal):
        reshaped = _reshaped(binding, scalar, target, level, node)
        if reshaped is not None:
            return reshaped
    if target.element is not None and isinstance(scalar, Literal | Call):
        items = _retyped_items(binding, scalar, target, level, node)
        if items is not None:
            return items
    if isinstance(scalar, Literal):
        folded = _fold(scalar, target, level)
        if folded is not None:
            return folded
    return Cast(scalar, target, level == "explicit")


def _is_computed(source: SqlType, target: SqlType, level: Level) -> bool:
    """Whether a cast is a function's, or changes what carries the value."""
    found = pathway(source.oid, target.oid, level)
    return found == "function" or (found == "relabel" and (source.name, target.name) in CASTS)


def _computed(binding: Binding, scalar: Scalar, target: SqlType, level: Level, node: Any) -> Scalar:
    """A cast that a function computes, or that cuts bit strings. Raises 0A000 for those that Millstream has not."""
    pair = (scalar.type.name, target.name)
    if pair in (("int4", "bit"), ("int8", "bit")):
        length = target.modifiers[0] if target.modifiers else 1
        return Call("bits_of", (Cast(scalar, INT8), Literal(length, INT4)), SqlType("bit", (length,)))
    if pair[0] in STRINGS:  # xml, of which pg_cast has a function
        return Cast(scalar, target, level == "explicit")
    if pair[0] in BITS and pair[1] in BITS:
        return (isinstance(scalar, Literal) and _fold(scalar, target, level)) or Cast(
            scalar, target, level == "explicit"
        )
    if pair == ("money", "numeric"):
        found = Call(CASTS[pair], (scalar,), numeric(19, 2))
        return coerce(binding, found, target, level, node) or found
    if pair not in CASTS:
        words = f"a cast from {display(scalar.type)} to {display(target)}"
        raise unsupported(words, "Write the value as a literal.", binding.position(node))
    if pair[0] == "shaped":
        scalar = Cast(scalar, TEXT, True)
    return Call(CASTS[pair], (scalar,), target)


def _is_of_names(kind: SqlType) -> bool:
    """Whether values of a type are arrays of oids that are shown by name."""
    return kind.name == "array" and kind.element is not None and kind.element.name in NAMED_OIDS


def coerced_implicitly(binding: Binding, scalar: Scalar, target: SqlType, node: Any) -> Scalar:
    """An argument of an overload, which was chosen so that there is such a cast."""
    found = coerce(binding, scalar, target, "implicit", node)
    assert found is not None
    return found


def _is_text(scalar: Scalar) -> bool:
    return isinstance(scalar, Literal) and scalar.value is not None


def as_expressed(scalar: Scalar) -> Scalar:
    """A value that a cast has rounded or cut, as expressions have it: no longer of the type that did it."""
    kind = expressed(scalar.type)
    if kind == scalar.type:
        return scalar
    return replace(scalar, type=kind) if isinstance(scalar, Literal | Call) else Cast(scalar, kind)


def blank_padded(scalar: Scalar) -> Scalar:
    """A char(n) with its blanks, which are not kept, where something counts or shows them."""
    if scalar.type.name != "bpchar":
        return scalar
    if scalar.type.modifiers:
        return Call("rpad", (scalar, Literal(scalar.type.modifiers[0], INT4), Literal(" ", TEXT)), TEXT)
    return Literal(scalar.value, TEXT) if isinstance(scalar, Literal) else Call("padded", (scalar,), TEXT)


def without_blanks(scalar: Scalar) -> Scalar:
    """A value as it is compared: a constant bpchar is one again."""
    if isinstance(scalar, Cast) and is_padded(scalar.type) and isinstance(scalar.argument, Literal):
        return Literal(str(scalar.argument.value).rstrip(" "), scalar.type)
    return scalar


def _padded(text: str) -> Scalar:
    """A text as a bpchar without a length, whose blanks are told by where it comes from (``planner.scales``)."""
    kind = SqlType("bpchar")
    return Cast(Literal(text, TEXT), kind, explicit=True) if text.endswith(" ") else Literal(text, kind)


def _reshaped(binding: Binding, literal: Literal, target: SqlType, level: Level, node: Any) -> Scalar | None:
    """A constant array as one that says its dimensions, or back. Raises 0A000 where they would be lost."""
    inner, value = literal.type.element, literal.value
    if inner is None or target.element is None:
        return None
    if value is None:
        return Literal(None, target)
    assert isinstance(value, tuple)
    items, shape = value if literal.type.name == "shaped" else (value, listed(len(value)))
    if target.name != "shaped" and not is_list(shape):
        raise no_dimensions(binding.position(node))
    cells = coerce(binding, Literal(items, array(inner)), array(target.element), level, node)
    if not isinstance(cells, Literal):
        return None
    return Literal((cells.value, shape) if target.name == "shaped" else cells.value, target)


def _retyped_items(binding: Binding, scalar: Literal | Call, target: SqlType, level: Level, node: Any) -> Scalar | None:
    """A constant array, or one of listed elements, with each element coerced; None for every other."""
    assert target.element is not None
    inner = scalar.type.element
    if "shaped" in (scalar.type.name, target.name):
        return None
    if inner is None or (isinstance(scalar, Literal) and scalar.value is None):
        return None
    if isinstance(scalar, Call):
        items = scalar.arguments if scalar.function == "array" else None
    else:
        assert isinstance(scalar.value, tuple)
        items = tuple(Literal(item, inner) for item in scalar.value)
    if items is None:
        return None
    found = [coerce(binding, item, target.element, level, node) for item in items]
    return array_of([item for item in found if item is not None], target.element)


def array_of(items: Sequence[Scalar], element: SqlType) -> Scalar:
    """The array of some elements of its type: a constant where they all are."""
    literals = [item for item in items if isinstance(item, Literal)]
    if len(literals) == len(items):
        return Literal(tuple(item.value for item in literals), array(element))
    return Call("array", tuple(items), array(element))


def castable(source: SqlType, target: SqlType, level: Level) -> bool:
    """Whether one type may become another at a level."""
    return source.name == "unknown" or pathway(source.oid, target.oid, level) is not None


def _coerce_unknown(binding: Binding, scalar: Scalar, target: SqlType, level: Level, node: Any) -> Scalar:
    if isinstance(scalar, Literal):
        return _typed_literal(binding, scalar, target, level, node)
    if isinstance(scalar, Parameter):
        base = plain(target)
        known = binding.parameter(scalar.index)
        if known is None:
            binding.set_parameter(scalar.index, base)
            known = base
        parameter = Parameter(scalar.index, known)
        if known == target:
            return parameter
        if not castable(known, target, "assignment"):
            raise SqlError(
                "42P08",
                f"inconsistent types deduced for parameter ${scalar.index + 1}",
                position=binding.position(node),
            )
        return Cast(parameter, target, level == "explicit")
    return Cast(scalar, target, True)


def _typed_literal(binding: Binding, literal: Literal, target: SqlType, level: Level, node: Any) -> Scalar:
    if literal.value is None:
        return Literal(None, target)
    text = str(literal.value)
    if is_padded(target):
        return _padded(text)
    if (found := relative(binding.raw.node, text, target)) is not None:
        return found
    if level == "explicit" and target.name in STRINGS:
        return Literal(fit_text(text, target, explicit=True), target)
    try:
        return _typed(text, target, level, partial(_read, binding, node))
    except SqlError as error:
        error.position = binding.position(node)
        raise


def _typed(text: str, target: SqlType, level: Level, read: Callable[[str, SqlType], Value] = value_of) -> Literal:
    """A text's value. An explicit cast to a type with a length reads all of it, and cuts it then.

    Raises 0A000 for an array that only meets one of numerics of fewer decimals: the statement does not ask to round it.
    """
    kind = target.element or target
    if level == "explicit" and kind.name in _CUT and kind.modifiers:
        return Literal(_cut(value_of(text, plain(target)), target), target)
    value = read(text, target)
    is_of_numerics = target.element is not None and target.element.name == "numeric"
    if is_of_numerics and level == "implicit" and value != value_of(text, plain(target)):
        raise unsupported("an array in quotes beside one of fewer decimals", "Cast it to numeric[].")
    return Literal(value, target)


def _cut(value: Value, target: SqlType) -> Value:
    """A value in its type's length; an array's elements in theirs."""
    if value is None:
        return None
    if target.element is not None:
        assert isinstance(value, tuple)
        items, *shape = value if target.name == "shaped" else (value,)
        found = tuple(_cut(item, target.element) for item in items)
        return (found, *shape) if shape else found
    if target.name in BITS:
        return _fit_bits(str(value), target, "explicit")
    return fit_text(str(value), target, explicit=True)


def _read(binding: Binding, node: Any, text: str, target: SqlType) -> Value:
    """A text's value in the session's time zone and way of reading."""
    zone, reading = binding.context.time_zone, binding.context.reading
    value = value_of(text, target, zone, reading)
    if reading != USUAL and not _reads(text, target, zone, USUAL, value):
        is_date = _reads(text, target, zone, Reading(reading.dates), value)
        words = f"a date in the order {reading.dates}" if is_date else "an interval with one sign for all its fields"
        binding.restyled.append((words, binding.position(node)))
    return value


def _reads(text: str, target: SqlType, zone: str, reading: Reading, value: Value) -> bool:
    """Whether another way of reading gives that value, too."""
    try:
        return value_of(text, target, zone, reading) == value
    except SqlError:
        return False


def _fit_bits(digits: str, target: SqlType, level: Level) -> str:
    if not target.modifiers:
        return digits
    return fit_bits(digits, target.name, target.modifiers[0], level == "explicit")


def _fold(literal: Literal, target: SqlType, level: Level) -> Scalar | None:
    """A literal converted at once, where that is sure to be what an engine would give."""
    value, source = literal.value, literal.type
    if value is None:
        return Literal(None, target)
    if source.name == target.name and source.name in ROUNDED:
        return Literal(fit_moment(value, target), target)
    if source.name in STRINGS and is_padded(target):
        return _padded(str(value)) if source.name != "bpchar" else None
    if source.name in STRINGS and target.name in STRINGS:
        return Literal(fit_text(str(value), target, level == "explicit"), target)
    if source.name in STRINGS and target.name in FORMED | {"money"}:
        return _typed(str(value), target, level)
    if source.name in BITS and target.name in BITS:
        return Literal(_fit_bits(str(value), target, level), target)
    if source.name not in NUMBERS or target.name not in NUMBERS or source.name == "float4":
        return None
    if target.name in INTEGER_BITS:
        return Literal(_to_integer(value, target), target)
    if isinstance(value, float):
        return None
    if target.name == "numeric":
        return Literal(_to_numeric(value, target, level), target)
    if isinstance(value, Decimal):
        return Literal(value_of(str(value), target), target)
    return Literal(float(value), target) if isinstance(value, int) and target.name == "float8" else None


def _to_numeric(value: object, target: SqlType, level: Level) -> Decimal:
    """A constant that only meets values of more decimals keeps its own."""
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    fitted = fit_numeric(exact, target)
    return exact if level == "implicit" and fitted == exact else fitted


def _to_integer(value: object, target: SqlType) -> int:
    if isinstance(value, Decimal):
        number = int(value.quantize(Decimal(1), ROUND_HALF_UP)) if value.adjusted() < 20 else 1 << 100
    elif isinstance(value, float):
        if value != value or abs(value) > 1e30:
            raise out_of_range(f"{display(target)} out of range")
        number = int(Decimal(value).quantize(Decimal(1), ROUND_HALF_EVEN))
    else:
        assert isinstance(value, int)
        number = value
    limit = 1 << INTEGER_BITS[target.name] - 1
    if not -limit <= number < limit:
        raise out_of_range(f"{display(target)} out of range")
    return number


def common_type(kinds: Sequence[SqlType], what: str, position: Callable[[int], int | None]) -> SqlType:
    """The type that branches of CASE, UNION, VALUES, COALESCE agree on. Raises 42804, 42846 at ``position(index)``."""
    oid, other = first_common([kind.oid for kind in kinds])
    chosen = next((kind for kind in kinds if kind.oid == oid), TEXT)
    if other is not None:
        message = f"{what} types {display(chosen)} and {display(kinds[other])} cannot be matched"
        raise SqlError("42804", message, position=position(other))
    for index, kind in enumerate(kinds):
        if not castable(kind, chosen, "implicit"):
            message = f"{what} could not convert type {display(kind)} to {display(chosen)}"
            raise SqlError("42846", message, position=position(index))
    if chosen.name == "numeric":
        return common_numeric([as_numeric(kind) for kind in kinds if kind.name != "unknown"])
    if chosen.element is not None:
        elements = [kind.element for kind in kinds if kind.element is not None]
        element = common_type(elements, what, position)
        return shaped(element) if any(kind.name == "shaped" for kind in kinds) else array(element)
    if chosen.row is not None and not chosen.row.oid:
        return _common_row([kind.row for kind in kinds if kind.row is not None], what, position)
    # Modifiers stay only where all inputs agree on them.
    same = chosen.element is not None or all(kind == chosen for kind in kinds)
    return chosen if same else plain(chosen)


def common_kind(scalars: Sequence[Scalar], what: str, position: Callable[[int], int | None]) -> SqlType:
    """The type that expressions agree on: ``common_type``, with room for numbers in quotes and for parameters."""
    kind = common_type([item.type for item in scalars], what, position)
    if kind.name != "numeric":
        return kind
    loose = [item for item in scalars if item.type.name == "unknown"]
    return common_numeric([kind, *(numeric_of(item) for item in loose if item != Literal(None, item.type))])


def _common_row(rows: Sequence[Composite], what: str, position: Callable[[int], int | None]) -> SqlType:
    """The type of rows whose fields' types differ in their digits only; the first one where they differ in more."""
    if len({len(item.fields) for item in rows}) > 1:
        return record(*rows[0].fields)
    fields = []
    for items in zip(*(item.fields for item in rows), strict=True):
        kinds = [kind for _, kind in items]
        known = {kind.oid for kind in kinds if kind.name != "unknown"}
        same = len(set(kinds)) == 1 or len(known) > 1
        fields.append((items[0][0], kinds[0] if same else common_type(kinds, what, position)))
    return record(*fields)


def wider(left: SqlType, right: SqlType) -> SqlType:
    """The wider of two types of one comparison family: numbers, or dates and timestamps."""
    if left.name == right.name:
        return left
    for order in (_WIDTH, ("date", "timestamp", "timestamptz"), ("bpchar", "varchar", "name", "text")):
        if left.name in order and right.name in order:
            return left if order.index(left.name) > order.index(right.name) else right
    return left


def text_if_unknown(env: Environment, scalar: Scalar, node: Any = None) -> Scalar:
    """A scalar whose type nothing determined becomes text."""
    if scalar.type.name != "unknown":
        return scalar
    return coerce(env.binding, scalar, TEXT, "implicit", node) or scalar
