"""Which operator, function or common type PostgreSQL would choose for given argument types.

Owns: the algorithms of the documentation's chapter "Type Conversion" (and parse_coerce.c, parse_func.c, parse_oper.c
behind it) over the oids of ``catalog.postgres``. Knows neither expressions nor what Millstream can compute.
https://www.postgresql.org/docs/15/typeconv.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar

from msgspec import Struct

from catalog.postgres import (
    MEMBERS,
    PgOperator,
    PgProc,
    casts,
    functions,
    member_operators,
    operators,
    ranges,
    type_oids,
    type_row,
)

Level = Literal["implicit", "assignment", "explicit"]
Pathway = Literal["relabel", "function", "array", "text"]

BOOL: Final = 16
TEXT: Final = 25
UNKNOWN: Final = 705
RECORD: Final = 2249
_RECORDS: Final = 2287
ANY: Final = 2276
ANYARRAY: Final = 2277
ANYELEMENT: Final = 2283
ANYNONARRAY: Final = 2776
ANYENUM: Final = 3500
ANYCOMPATIBLE: Final = 5077
ANYCOMPATIBLEARRAY: Final = 5078
ANYCOMPATIBLENONARRAY: Final = 5079
ANYRANGE: Final = 3831
ANYMULTIRANGE: Final = 4537
ANYCOMPATIBLERANGE: Final = 5080
ANYCOMPATIBLEMULTIRANGE: Final = 4538

#: What operators between ranges and multiranges, and between them and a value, take.
OF_RANGES: Final = (ANYRANGE, ANYMULTIRANGE, ANYELEMENT)

_SIMPLE: Final = frozenset((ANYELEMENT, ANYARRAY, ANYNONARRAY, ANYENUM, ANYRANGE, ANYMULTIRANGE))
_COMPATIBLE: Final = frozenset(
    (ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY, ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE)
)
_POLYMORPHIC: Final = _SIMPLE | _COMPATIBLE
#: oidvector and int2vector have elements, but no array becomes one.
_VECTORS: Final = frozenset((22, 30))
_CONTEXTS: Final[dict[str, str]] = {"implicit": "i", "assignment": "ia", "explicit": "iae"}


def category(oid: int) -> str:
    """pg_type.typcategory."""
    return type_row(oid).category


def is_preferred(oid: int) -> bool:
    """Whether a type is the preferred one of its category."""
    return type_row(oid).preferred


def element_of(oid: int) -> int:
    """The element type of an array type; 0 for every other."""
    return type_row(oid).element if category(oid) == "A" or oid == _RECORDS else 0


def subtype_of(oid: int) -> int:
    """The type of a range type's bounds; 0 for every other."""
    found = ranges().get(oid)
    return 0 if found is None else found.subtype


def range_of(oid: int) -> int:
    """The range type of a multirange type; 0 for every other."""
    return next((item.oid for item in ranges().values() if item.multirange == oid), 0)


def _is_composite(oid: int) -> bool:
    return type_row(oid).kind == "c"


def array_of(oid: int) -> int:
    """The array type of an element type; 0 where there is none."""
    return type_row(oid).array


def pathway(source: int, target: int, level: Level) -> Pathway | None:
    """How a value of one type becomes one of another at a level; None if it does not (find_coercion_pathway)."""
    if source == target:
        return "relabel"
    cast = casts().get((source, target))
    if cast is not None:
        if cast.context not in _CONTEXTS[level]:
            return None
        return {"b": "relabel", "f": "function"}.get(cast.method, "text")  # type: ignore[return-value]
    if (source == RECORD and _is_composite(target)) or (target == RECORD and _is_composite(source)):
        return "relabel"
    inner, outer = element_of(source), element_of(target)
    if inner and outer and target not in _VECTORS:
        return None if pathway(inner, outer, level) is None else "array"
    if level == "assignment" and category(target) == "S":
        return "text"
    if level == "explicit" and "S" in (category(source), category(target)):
        return "text"
    return None


def can_coerce(sources: Sequence[int], targets: Sequence[int], level: Level = "implicit") -> bool:
    """Whether values of the sources' types may become the targets' (can_coerce_type)."""
    for source, target in zip(sources, targets, strict=True):
        if source in (target, UNKNOWN) or target == ANY or target in _POLYMORPHIC:
            continue
        if pathway(source, target, level) is None:
            return False
    return not _POLYMORPHIC.intersection(targets) or polymorphic_types(sources, targets) is not None


# --- polymorphic arguments -------------------------------------------------------------------------------------------


def polymorphic_types(sources: Sequence[int], declared: Sequence[int]) -> dict[int, int] | None:
    """What each polymorphic type among ``declared`` stands for; None when the arguments do not agree.

    https://www.postgresql.org/docs/15/extend-type-system.html#EXTEND-TYPES-POLYMORPHIC
    """
    found: dict[int, int] = {}
    pairs = list(zip(sources, declared, strict=True))
    for family, arrays, plain, nonarray, ranged, multiranged, agreed in (
        (_SIMPLE, ANYARRAY, ANYELEMENT, ANYNONARRAY, ANYRANGE, ANYMULTIRANGE, _all_equal),
        (
            *(_COMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, ANYCOMPATIBLENONARRAY),
            *(ANYCOMPATIBLERANGE, ANYCOMPATIBLEMULTIRANGE, common),
        ),
    ):
        if not family.intersection(declared):
            continue
        kinds = _range_of(pairs, ranged, multiranged)
        elements = _elements(pairs, family, arrays, (ranged, multiranged))
        if elements is None or kinds is None:
            return None
        known = [item for item in elements if item != UNKNOWN]
        chosen = agreed(known) if known else TEXT if family is _COMPATIBLE else UNKNOWN
        if chosen is None or not _suits(chosen, declared, arrays, nonarray):
            return None
        if kinds != UNKNOWN and subtype_of(kinds) != chosen:
            return None
        multirange = UNKNOWN if kinds == UNKNOWN else ranges()[kinds].multirange
        found |= {ranged: kinds, multiranged: multirange}
        found |= {plain: chosen, nonarray: chosen, arrays: array_of(chosen) if chosen != UNKNOWN else UNKNOWN}
        if family is _SIMPLE:
            found[ANYENUM] = chosen
    return found


def _range_of(pairs: Sequence[tuple[int, int]], ranged: int, multiranged: int) -> int | None:
    """The range type that all ranges and multiranges among the arguments are of, unknown where there are none; None
    when they do not agree, or are something else. A bound's type alone says nothing: several ranges may have it."""
    known = [
        source if target == ranged else range_of(source)
        for source, target in pairs
        if target in (ranged, multiranged) and source != UNKNOWN
    ]
    if not known:
        return UNKNOWN
    return known[0] if len(set(known)) == 1 and known[0] in ranges() else None


def _elements(
    pairs: Sequence[tuple[int, int]], family: frozenset[int], arrays: int, ranged: tuple[int, int]
) -> list[int] | None:
    """What each argument says of the element type; None when one that must be an array is none."""
    found = []
    for source, target in pairs:
        if target not in family:
            continue
        if target in ranged and source != UNKNOWN:
            source = subtype_of(source) or subtype_of(range_of(source))
        if target == arrays and source != UNKNOWN:
            source = element_of(source)
            if not source:
                return None
        found.append(source)
    return found


def _suits(chosen: int, declared: Sequence[int], arrays: int, nonarray: int) -> bool:
    if chosen == UNKNOWN:
        return ANYENUM not in declared
    if nonarray in declared and element_of(chosen):
        return False
    if ANYENUM in declared and nonarray == ANYNONARRAY and type_row(chosen).kind != "e":
        return False
    return arrays not in declared or bool(array_of(chosen))


def _all_equal(kinds: Sequence[int]) -> int | None:
    return kinds[0] if len(set(kinds)) == 1 else None


def common(kinds: Sequence[int]) -> int | None:
    """The type that several agree on, for UNION, CASE and the like; None when they do not (select_common_type)."""
    chosen, other = first_common(kinds)
    return chosen if other is None and can_coerce(kinds, [chosen] * len(kinds)) else None


def first_common(kinds: Sequence[int]) -> tuple[int, int | None]:
    """The type that several agree on, or the one so far and the index of the first type of another category."""
    known = [(index, kind) for index, kind in enumerate(kinds) if kind != UNKNOWN]
    if not known:
        return TEXT, None
    chosen = known[0][1]
    for index, kind in known[1:]:
        if kind == chosen:
            continue
        if category(kind) != category(chosen):
            return chosen, index
        if is_preferred(chosen):
            continue
        if can_coerce((chosen,), (kind,)) and not can_coerce((kind,), (chosen,)):
            chosen = kind
    return chosen, None


# --- candidates ------------------------------------------------------------------------------------------------------


class Candidate(Struct, frozen=True):
    """A function with its argument types as this call gives them: variadic ones spread, defaults left out."""

    function: PgProc
    arguments: tuple[int, ...]
    spread: bool = False


class Ambiguous(Exception):
    """Several candidates are equally good (42725)."""


_Item = TypeVar("_Item")
_Arguments = Callable[[_Item], Sequence[int]]


def select(candidates: Sequence[_Item], arguments: Sequence[int], of: _Arguments[_Item]) -> _Item | None:
    """The best candidate, None when none fits, for one that is no exact match. Raises Ambiguous."""
    left = [item for item in candidates if can_coerce(arguments, of(item))]
    for narrow in (_most_exact, _most_preferred, _by_category, _by_known):
        if len(left) > 1:
            left = narrow(left, arguments, of)
    if len(left) > 1:
        raise Ambiguous
    return left[0] if left else None


def _best(candidates: list[_Item], points: Callable[[_Item], int]) -> list[_Item]:
    scores = [points(item) for item in candidates]
    top = max(scores)
    return [item for item, score in zip(candidates, scores, strict=True) if score == top]


def _most_exact(candidates: list[_Item], arguments: Sequence[int], of: _Arguments[_Item]) -> list[_Item]:
    def points(item: _Item) -> int:
        return sum(source == target and source != UNKNOWN for source, target in zip(arguments, of(item), strict=True))

    return _best(candidates, points)


def _most_preferred(candidates: list[_Item], arguments: Sequence[int], of: _Arguments[_Item]) -> list[_Item]:
    def points(item: _Item) -> int:
        return sum(
            target == source or (category(target) == category(source) and is_preferred(target))
            for source, target in zip(arguments, of(item), strict=True)
            if source != UNKNOWN
        )

    return _best(candidates, points)


def _by_category(candidates: list[_Item], arguments: Sequence[int], of: _Arguments[_Item]) -> list[_Item]:
    """Unknown arguments take the string category where some candidate accepts it, else the one that all agree on."""
    unknown = [index for index, source in enumerate(arguments) if source == UNKNOWN]
    wanted: dict[int, tuple[str, bool]] = {}
    for index in unknown:
        targets = [of(item)[index] for item in candidates]
        categories = {category(target) for target in targets}
        if "S" not in categories and len(categories) > 1:
            return candidates
        chosen = "S" if "S" in categories else categories.pop()
        wanted[index] = chosen, any(category(target) == chosen and is_preferred(target) for target in targets)

    def suits(item: _Item) -> bool:
        return all(
            category(of(item)[index]) == kind and (is_preferred(of(item)[index]) or not preferred)
            for index, (kind, preferred) in wanted.items()
        )

    return [item for item in candidates if suits(item)] or candidates


def _by_known(candidates: list[_Item], arguments: Sequence[int], of: _Arguments[_Item]) -> list[_Item]:
    """If all known arguments are of one type, unknown ones are assumed to be of it."""
    known = {source for source in arguments if source != UNKNOWN}
    if len(known) != 1 or UNKNOWN not in arguments:
        return candidates
    same = [known.copy().pop()] * len(arguments)
    fitting = [item for item in candidates if can_coerce(same, of(item))]
    return fitting if len(fitting) == 1 else candidates


# --- operators and functions -----------------------------------------------------------------------------------------


def operator(name: str, left: int, right: int) -> PgOperator | None:
    """The operator for two operand types; ``left`` 0 for a prefix operator; None: 42883. Raises Ambiguous: 42725.

    https://www.postgresql.org/docs/15/typeconv-oper.html
    """
    # those of extensions are there for who has a value of an extension's type
    own = member_operators(name) if left in MEMBERS or right in MEMBERS else ()
    found = [item for item in (*operators(name), *own) if bool(item.left) == bool(left)]
    if not left:
        exact = [item for item in found if item.right == right]
        return exact[0] if exact else select(found, (right,), lambda item: (item.right,))
    assumed = (left if left != UNKNOWN else right, right if right != UNKNOWN else left)
    for item in found:
        if (item.left, item.right) == assumed and UNKNOWN not in assumed:
            return item
    return select(found, (left, right), lambda item: (item.left, item.right))


class TypeCall(Struct, frozen=True):
    """``name(x)`` that means a cast to the type ``target``."""

    target: int


def function_call(name: str, arguments: Sequence[int], others: Sequence[PgProc] = ()) -> Candidate | TypeCall | None:
    """The function that a call by position means, PostgreSQL's own or one of ``others``; None: 42883. Raises
    Ambiguous: 42725.

    https://www.postgresql.org/docs/15/typeconv-func.html
    """
    found = _candidates((*functions(name), *others), len(arguments))
    if (exact := _exact(found, arguments)) is not None:
        return exact
    if len(arguments) == 1 and (target := type_oids().get(name)) is not None and _is_cast(arguments[0], target):
        return TypeCall(target)
    return select(found, arguments, lambda item: item.arguments)


def _is_cast(source: int, target: int) -> bool:
    return source == UNKNOWN or pathway(source, target, "explicit") in ("relabel", "text")


def call_among(known: Sequence[PgProc], arguments: Sequence[int]) -> Candidate | None:
    """The same of functions of one schema alone, which the call names."""
    found = _candidates(known, len(arguments))
    return _exact(found, arguments) or select(found, arguments, lambda item: item.arguments)


def _exact(found: Sequence[Candidate], arguments: Sequence[int]) -> Candidate | None:
    """The candidate that takes just these types. Raises Ambiguous."""
    exact = [item for item in found if item.arguments == tuple(arguments)]
    if len(exact) > 1:
        raise Ambiguous
    return exact[0] if exact else None


def call_by_names(known: Sequence[PgProc], arguments: Sequence[int], labels: Sequence[str]) -> Candidate | None:
    """The function that a call means whose last arguments have names, with its arguments' types in the call's order.

    https://www.postgresql.org/docs/15/sql-syntax-calling-funcs.html
    """
    found = []
    for item in known:
        places = places_of(item, len(arguments) - len(labels), labels)
        if places is not None:
            found.append(Candidate(item, tuple(item.arguments[place] for place in places)))
    found = _distinct(found)
    return _exact(found, arguments) or select(found, arguments, lambda item: item.arguments)


def places_of(function: PgProc, first: int, labels: Sequence[str]) -> tuple[int, ...] | None:
    """Which parameter each argument of a call is, ``first`` without names and then those of ``labels``; None where the
    call does not fit."""
    count = len(function.arguments)
    names = function.argument_names[:count]
    rest = names[first:]
    required = names[first : count - function.defaults]
    if function.variadic or len(names) < count or not set(labels) <= set(rest) or not set(required) <= set(labels):
        return None
    return (*range(first), *(names.index(label, first) for label in labels))


def _candidates(known: Sequence[PgProc], count: int) -> list[Candidate]:
    """Functions that take so many arguments; one that needs fewer tricks comes before its equal (typeconv-func, 2)."""
    found: list[Candidate] = []
    for item in sorted(known, key=lambda item: bool(item.variadic)):
        given = len(item.arguments)
        if item.variadic and count >= given:
            arguments, spread = item.arguments[:-1] + (item.variadic,) * (count - given + 1), True
        elif given - item.defaults <= count <= given:
            arguments, spread = item.arguments[:count], False
        else:
            continue
        found.append(Candidate(item, arguments, spread))
    return _distinct(found)


def _distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Of those that take the same types the first, and others of its schema, which make a call of it ambiguous: they
    differ in what may be left out."""
    found: dict[tuple[int, ...], list[Candidate]] = {}
    for item in candidates:
        known = found.setdefault(item.arguments, [])
        if not known or (item.function.source, item.spread) == (known[0].function.source, known[0].spread):
            known.append(item)
    return [item for known in found.values() for item in known]


def result_type(declared: int, sources: Sequence[int], targets: Sequence[int]) -> int | None:
    """A function's result type for actual arguments; None where nothing determines it (42804)."""
    if declared not in _POLYMORPHIC:
        return declared
    found = (polymorphic_types(sources, targets) or {}).get(declared, UNKNOWN)
    return None if found in (UNKNOWN, 0) else found
