"""JSON functions and constructors of the grammar.

Owns: their signatures, those with any number of arguments and those over rows. A function of jsonb that builds a new
document is the function of json and a cast to jsonb. Operators are in
``planner.bind.calls.overloading.operator_signatures``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from catalog.system.functions import SHOWN
from catalog.values.errors import unsupported
from catalog.values.types import BOOL, INT4, JSON, JSONB, TEXT, SqlType, array
from planner.algebra.nodes import Call, Case, Cast, Literal, Scalar
from planner.bind.calls.overloading.choice import NO_MATCH, choose_overload, no_function
from planner.bind.calls.overloading.overloads import Table, signatures
from planner.bind.calls.overloading.polymorphic import coerced, result
from planner.bind.conversion.array_items import is_shaped, items_of
from planner.bind.conversion.coercion import array_of, coerce
from planner.bind.conversion.named_oids import shown_oid, shown_oids
from planner.bind.conversion.rows import bind_row, fields_of, is_row, whole_row
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display
from planner.bind.state.environment import Environment


def _of_path(canonical: str, result: str) -> str:
    """The signatures of a function of a path: its variables and whether it is silent may be left out."""
    return f"{canonical}: " + "; ".join(f"jsonb jsonpath{more} > {result}" for more in ("", " jsonb", " jsonb bool"))


_SIGNATURES: Final[dict[str, str]] = {
    "json_typeof": "=: json > text",
    "jsonb_typeof": "json_typeof: jsonb > text",
    "json_array_length": "=: json > int4",
    "jsonb_array_length": "json_array_length: jsonb > int4",
    "jsonb_set": "=: jsonb _text jsonb > jsonb; jsonb _text jsonb bool > jsonb",
    "jsonb_set_lax": "=: jsonb _text jsonb > jsonb; jsonb _text jsonb bool > jsonb;"
    " jsonb _text jsonb bool text > jsonb",
    "jsonb_insert": "=: jsonb _text jsonb > jsonb; jsonb _text jsonb bool > jsonb",
    "jsonb_concat": "json_concat: jsonb jsonb > jsonb",
    "json_object": "=: _text > json; _text _text > json",
    "jsonb_object": "json_object: _text > json; _text _text > json",
    "json_strip_nulls": "=: json > json",
    "jsonb_strip_nulls": "=: jsonb > jsonb",
    "jsonb_pretty": "=: jsonb > text",
    **{
        f"jsonb_path_{what}{zoned}": _of_path(f"path_{canonical}{zoned}", result)
        for what, canonical, result in (
            ("exists", "exists", "bool"),
            ("match", "match", "bool"),
            ("query_first", "first", "jsonb"),
            ("query_array", "array", "jsonb"),
        )
        for zoned in ("", "_tz")
    },
    "jsonb_exists": "json_exists: jsonb text > bool",
    "jsonb_contains": "json_contains: jsonb jsonb > bool",
    "to_json": "=: anyelement > json",
    "row_to_json": "to_json: record > json | json_lined: record bool > json",
    "to_jsonb": "to_json: anyelement > jsonb",
    "array_to_json": "to_json: anyarray > json | json_lined: anyarray bool > json",
}
_TABLES: Final[dict[str, Table]] = {name: signatures(name, text) for name, text in _SIGNATURES.items()}
_BUILDERS: Final = frozenset(f"{kind}_build_{what}" for kind in ("json", "jsonb") for what in ("array", "object"))
_PATHS: Final = {
    f"{kind}_extract_path{suffix}": (kind, f"json_path{suffix}")
    for kind in ("json", "jsonb")
    for suffix in ("", "_text")
}
_SUBSCRIPT: Final = "jsonb subscript must be coercible to either integer or text."
#: Functions that take arrays of any dimensions.
_OF_SHAPES: Final = frozenset(("to_json", "json_lined"))
_OF_ROWS: Final = frozenset(("to_json", "to_jsonb", "row_to_json"))
FUNCTIONS: Final = frozenset(_TABLES) | _BUILDERS | frozenset(_PATHS) | _OF_ROWS
#: Those that take an array instead of any number of arguments.
OF_ARRAYS: Final = _BUILDERS | frozenset(_PATHS)


def bind_json_function(env: Environment, node: Any) -> Scalar:
    """A call of one of ``FUNCTIONS``."""
    name = names_of(node.funcname)[-1]
    nodes: tuple[Any, ...] = node.args or ()
    if name in _OF_ROWS and len(nodes) == 1 and (row := of_row(env, nodes[0])) is not None:
        return Cast(row, JSONB, True) if name == "to_jsonb" else row
    if name == "row_to_json" and len(nodes) == 2 and (row := of_row(env, nodes[0])) is not None:
        return _lined(env, row, env.bind(nodes[1]), node)
    arguments = [env.bind(item) for item in nodes]
    if node.func_variadic:
        return _of_array(env, name, arguments, node)
    if name in _BUILDERS:
        return _built(env, name, arguments, node)
    if name in _PATHS:
        return _path(env, name, arguments, node)
    if name not in _TABLES:
        raise env.error("42883", f"function {name}() does not exist", node, hint=NO_MATCH)
    chosen = choose_overload(env, name, arguments, node, _TABLES[name])
    if chosen.name in _OF_SHAPES and is_shaped(arguments[0]):
        found = arguments
    else:
        found = coerced(env, chosen, arguments, nodes)
    if chosen.name == "to_json":
        call = Call("to_json", (_known(env, found[0], nodes[0]),), JSON)
        return Cast(call, JSONB, True) if name == "to_jsonb" else call
    if chosen.name == "json_lined":
        return _lined(env, Call("to_json", (_known(env, found[0], nodes[0]),), JSON), found[1], node)
    call = Call(chosen.name, with_path_defaults(chosen.name, found), result(chosen, found))
    return Cast(call, JSONB, True) if name == "jsonb_object" else call


def _lined(env: Environment, document: Scalar, is_lined: Scalar, node: Any) -> Scalar:
    condition = coerce(env.binding, is_lined, BOOL, "implicit", node.args[1])
    if condition is None:
        raise no_function(env, [document, is_lined], node)
    return Call("json_lined", (document, condition), JSON)


def with_path_defaults(name: str, arguments: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """A call's arguments; of a function of a path all four: no variables, and errors raised."""
    defaults = (Literal("{}", JSONB), Literal(False, BOOL)) if name.startswith("path_") else ()
    return (*arguments, *defaults[max(len(arguments) - 2, 0) :])


def of_row(env: Environment, node: Any) -> Scalar | None:
    """A row that is written out, or of an item of FROM, as a JSON object by its fields' names; None for all else."""
    row = bind_row(env, node) if is_row(node) else whole_row(env, node)
    if isinstance(row, Case):  # NULL where an outer join has filled up its side
        ((condition, _),) = row.branches
        return Case(((condition, Literal(None, JSON)),), _object(env, row.otherwise, node), JSON)
    return None if row is None else _object(env, row, node)


def _object(env: Environment, row: Scalar, node: Any) -> Scalar:
    pairs = [part for name, value in fields_of(row) for part in (Literal(name, TEXT), as_json(env, value, node))]
    return Call("json_row", tuple(pairs), JSON)


def as_json(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    """A value within a document: never NULL, but null."""
    return Call("json_value", (_known(env, scalar, node),), JSON)


def _known(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    """A value in a type that a document can show; oids that have names are these."""
    if scalar.type.name == "unknown":
        return coerce(env.binding, scalar, TEXT, "implicit", node) or scalar
    if scalar.type.name in SHOWN:
        return shown_oid(env.binding, scalar)
    if scalar.type.element is not None and scalar.type.element.name in SHOWN:
        return shown_oids(env.binding, scalar)
    return scalar


def _of_array(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """``name(..., VARIADIC array)``; NULL for no array. Raises 42804 and 42883."""
    *before, given = arguments
    place = node.args[-1]
    if name in _PATHS:
        return _along(env, name, arguments, node)
    items = items_of(given)
    element = items.type.element
    if before:
        raise no_function(env, arguments, node)
    if element is None:
        raise env.error("42804", "VARIADIC argument must be an array", place)
    if isinstance(items, Call) and items.function == "array":
        return _built(env, name, list(items.arguments), node, [place] * len(items.arguments))
    if element.row is not None:
        instead = "Give its elements one by one, or write ARRAY[...]."
        raise unsupported(f"{name}() of a computed array of rows", instead, env.binding.position(place))
    kind, _, what = name.partition("_build_")
    if what == "object":
        _check_key(env, element)
    call = Call("json_items" if what == "array" else "json_items_object", (_known(env, items, place),), JSON)
    return Cast(call, JSONB, True) if kind == "jsonb" else call


def _along(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    """A part of a document by an array of steps."""
    kind, canonical = _PATHS[name]
    document: SqlType = JSON if kind == "json" else JSONB
    if len(arguments) != 2:
        raise no_function(env, arguments, node)
    found = tuple(_coerced(env, name, arguments, [document, array(TEXT)], node))
    return Call(canonical, (found[0], items_of(found[1])), TEXT if canonical.endswith("_text") else document)


def _check_key(env: Environment, kind: SqlType) -> None:
    if kind.element is not None or kind.row is not None or kind.name in ("json", "jsonb"):
        raise env.error("22023", "key value must be scalar, not array, composite, or json", None)


def _built(
    env: Environment, name: str, arguments: list[Scalar], node: Any, places: Sequence[Any] | None = None
) -> Scalar:
    """A document of arguments, which stand at ``places``, or are the call's."""
    kind, _, what = name.partition("_build_")
    nodes: Sequence[Any] = (node.args or ()) if places is None else places
    parts = [as_json(env, item, place) for item, place in zip(arguments, nodes, strict=True)]
    if what == "object":
        if len(arguments) % 2:
            raise env.error("22023", "argument list must have even number of elements", None)
        for index in range(0, len(arguments), 2):
            key = _known(env, arguments[index], nodes[index])
            _check_key(env, key.type)
            parts[index] = key if key.type == TEXT else Cast(key, TEXT, True)
    call = Call(f"json_build_{what}", tuple(parts), JSON)
    return Cast(call, JSONB, True) if kind == "jsonb" else call


def _path(env: Environment, name: str, arguments: list[Scalar], node: Any) -> Scalar:
    kind, canonical = _PATHS[name]
    document: SqlType = JSON if kind == "json" else JSONB
    kinds = [document, *[TEXT] * (len(arguments) - 1)]
    if len(arguments) < 2:
        raise env.error("42883", f"function {name}() does not exist", node, hint=NO_MATCH)
    found = list(_coerced(env, name, arguments, kinds, node))
    path = array_of(found[1:], TEXT)
    return Call(canonical, (found[0], path), TEXT if canonical.endswith("_text") else document)


def bind_parts(env: Environment, document: Scalar, parts: Sequence[Any]) -> Scalar:
    """document[i]['key'], a part of jsonb by its path. Raises 42804 for a slice and for what is neither."""
    return Call("json_path", (document, array_of(_path_of(env, parts), TEXT)), JSONB)


def with_part(env: Environment, document: Scalar, parts: Sequence[Any], given: Scalar) -> Scalar:
    """The document after document[i]['key'] = given; NULL is an empty array first where the first step is a number."""
    path = _path_of(env, parts)
    is_list = isinstance(path[0], Cast) and path[0].argument.type == INT4
    return Call("json_assign", (document, array_of(path, TEXT), given, Literal(is_list, BOOL)), JSONB)


def _path_of(env: Environment, parts: Sequence[Any]) -> list[Scalar]:
    path = []
    for part in parts:
        if part.is_slice:
            place = part.uidx if part.uidx is not None else part.lidx
            raise env.error_at("42804", "jsonb subscript does not support slices", part if place is None else place)
        path.append(_step(env, env.bind(part.uidx), part.uidx))
    return path


def _step(env: Environment, scalar: Scalar, node: Any) -> Scalar:
    number = None if scalar.type.name == "unknown" else coerce(env.binding, scalar, INT4, "implicit", node)
    if number is not None:
        return Cast(number, TEXT)
    found = coerce(env.binding, scalar, TEXT, "implicit", node)
    if found is None:
        message = f"subscript type {display(scalar.type)} is not supported"
        raise env.error_at("42804", message, node, hint=_SUBSCRIPT)
    return found


def _coerced(env: Environment, name: str, arguments: list[Scalar], kinds: list[SqlType], node: Any) -> Iterator[Scalar]:
    for scalar, kind, place in zip(arguments, kinds, node.args, strict=True):
        item = coerce(env.binding, scalar, kind, "implicit", place)
        if item is None:
            raise env.error("42883", f"function {name}() does not exist", node, hint=NO_MATCH)
        yield item


def aggregated(env: Environment, name: str, node: Any, known: Table) -> tuple[Scalar, ...]:
    """The arguments of an aggregate of documents: the key as text, the value as a document."""
    nodes: tuple[Any, ...] = node.args or ()
    if len(nodes) == 1 and not name.endswith("object_agg") and (row := of_row(env, nodes[0])) is not None:
        return (Call("json_value", (row,), JSON) if isinstance(row, Case) else row,)
    arguments = [env.bind(item) for item in nodes]
    choose_overload(env, name, arguments, node, known)
    *keys, value = arguments
    found = [_known(env, item, place) for item, place in zip(keys, nodes, strict=False)]
    return (*(item if item.type == TEXT else Cast(item, TEXT, True) for item in found), as_json(env, value, nodes[-1]))


# --- sets ------------------------------------------------------------------------------------------------------------

#: Set-returning functions: the columns that each yields in FROM, as (name, canonical function).
SETS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    **{f"jsonb_path_query{zoned}": (("", f"path_all{zoned}"),) for zoned in ("", "_tz")},
    **{
        f"{kind}_{name}": columns
        for kind in ("json", "jsonb")
        for name, columns in {
            "array_elements": (("value", "json_elements"),),
            "array_elements_text": (("value", "json_elements_text"),),
            "object_keys": (("", "json_keys"),),
            "each": (("key", "json_keys"), ("value", "json_values")),
            "each_text": (("key", "json_keys"), ("value", "json_values_text")),
        }.items()
    },
}


def bind_set(env: Environment, node: Any) -> tuple[tuple[str, Scalar], ...]:
    """The columns of a set-returning function, as arrays."""
    name = names_of(node.funcname)[-1]
    kind = JSONB if name.startswith("jsonb") else JSON
    arguments = [env.bind(item) for item in node.args or ()]
    if name.startswith("jsonb_path_query"):
        ((_, function),) = SETS[name]
        chosen = choose_overload(env, name, arguments, node, signatures(name, _of_path(function, "jsonb")))
        given = with_path_defaults(function, coerced(env, chosen, arguments, node.args))
        return (("", Call(function, given, array(JSONB))),)
    table = signatures(name, f"=: {kind.name} > text")
    chosen = choose_overload(env, name, arguments, node, table)
    (document,) = coerced(env, chosen, arguments, node.args)
    return tuple(
        (label, Call(function, (document,), array(kind if function in ("json_elements", "json_values") else TEXT)))
        for label, function in SETS[name]
    )
