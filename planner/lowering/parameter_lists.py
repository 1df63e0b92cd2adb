"""Lists of values as one parameter each, so that queries that differ only in the length of their lists are equal.

    Filter(R, a in ($1, $2, 'x'))  =  Filter(R, array_has(a, $1)) over the parameters (ARRAY[$1, $2, 'x'])
    oid($1)                        =  $1 over the parameters (oid($1))

Where NULL is as good as false, a look-up in the array serves; anywhere else the difference counts:

    SELECT 2 IN (1, NULL)      -- NULL, though the array does not have it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.identifiers import LONGEST_NAME
from catalog.values.types import OIDS, array
from planner.algebra.construction import conjunction, conjuncts
from planner.algebra.nodes import Call, Cast, Filter, Join, Literal, Parameter, Relation, Scalar, Value
from planner.algebra.walk import calls_of, contains, descend_relations, find, kinds_of, transform_relations

_PARAMETERS: Final = kinds_of(Parameter)
_LISTS: Final = calls_of("in")
#: The parts of a query that become a parameter.
VALUES: Final = _PARAMETERS | _LISTS
#: Types, each of which holds the values of all types before it.
_WIDER: Final = ("int2", "int4", "int8")
_TEXTS: Final = ("text", "varchar", "unknown")


class General(Struct, frozen=True):
    """A query shared by similar queries, and its parameters as expressions over the given ones."""

    relation: Relation
    arguments: tuple[Scalar, ...]

    def values(self, parameters: Sequence[Value]) -> tuple[Value, ...]:
        """The values of its parameters."""
        return tuple(_value(argument, parameters) for argument in self.arguments)


def with_lists(relation: Relation) -> General:
    """An equal query with one parameter for each list, and with its parameters numbered in the order of the text."""
    first = 1 + max((item.index for item in find(relation, _PARAMETERS)), default=-1)
    computed: list[Scalar] = []

    def placed(value: Scalar) -> Parameter:
        computed.append(value)
        return Parameter(first + len(computed) - 1, value.type)

    def look_up(part: Scalar) -> Scalar:
        if not isinstance(part, Call) or part.function != "in":
            return part
        value, *items = part.arguments
        if not all(item.type == value.type and _is_value(item) for item in items):
            return part
        return Call("array_has", (value, placed(Call("array", tuple(items), array(value.type)))), part.type)

    def change(node: Any) -> Any:
        match node:
            case Filter(predicate=predicate) | Join(kind="inner" | "semi", predicate=predicate) if (
                predicate is not None and contains(predicate, _LISTS)
            ):
                return replace(node, predicate=conjunction(map(look_up, conjuncts(predicate))))
            case Cast() if _is_value(node):
                return placed(node)
            case _:
                return node

    changed = descend_relations(relation, change, VALUES)
    places: dict[Parameter, int] = {}

    def numbered(node: Any) -> Any:
        return Parameter(places.setdefault(node, len(places)), node.type) if isinstance(node, Parameter) else node

    changed = transform_relations(changed, numbered, _PARAMETERS)
    return General(changed, tuple(computed[item.index - first] if item.index >= first else item for item in places))


def _is_value(item: Scalar) -> bool:
    """Whether an item is a parameter or constant of a type to which the list's values can be converted."""
    match item:
        case Parameter() | Literal():
            return item.type.name in (*_WIDER, *_TEXTS, "name", "oid")
        case Cast(argument=below, type=kind):
            return _is_value(below) and (_converted(below.type.name, kind.name) and not kind.modifiers)
        case _:
            return False


def _converted(source: str, target: str) -> bool:
    """Whether every value of one type has an equal value of another."""
    if source in _WIDER:
        return target in _WIDER[_WIDER.index(source) :] or (target in OIDS and source != "int8")
    return source in (*_TEXTS, "name") and target in (*_TEXTS, "name")


def _value(argument: Scalar, parameters: Sequence[Value]) -> Value:
    match argument:
        case Parameter(index=index):
            return parameters[index]
        case Literal(value=value):
            return value
        case Call(arguments=items):
            return tuple(_value(item, parameters) for item in items)
        case Cast(argument=below, type=kind):
            value = _value(below, parameters)
            if isinstance(value, int) and value < 0 and kind.name in OIDS:
                return value + (1 << 32)
            return value[:LONGEST_NAME] if isinstance(value, str) and kind.name == "name" else value
        case _:
            raise AssertionError(type(argument))
