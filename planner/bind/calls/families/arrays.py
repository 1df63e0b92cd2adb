"""Arrays in expressions: ARRAY[...], ARRAY(subquery), subscripts and slices, = ANY (array), and functions of arrays.

Owns: the scalars that these become, and PostgreSQL's errors. ``operator_calls.array_shapes`` has arrays of several
dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pglast.enums import A_Expr_Kind

from catalog.values.array_shapes import EMPTY, too_many
from catalog.values.array_shapes import MOST as DIMENSIONS
from catalog.values.errors import unsupported
from catalog.values.opaque import check_equality
from catalog.values.types import BOOL, INT4, TEXT, VECTORS, SqlType, array, shaped
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Cast,
    Column,
    ColumnRef,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
)
from planner.bind.calls.families.json_functions import bind_parts
from planner.bind.calls.operator_calls.array_shapes import array_of_arrays, call_of_shaped, opened
from planner.bind.calls.operator_calls.array_shapes import subscripted as of_shaped
from planner.bind.calls.operator_calls.operation import operate
from planner.bind.calls.overloading.choice import choose_overload
from planner.bind.calls.overloading.overloads import Table, signatures
from planner.bind.calls.overloading.polymorphic import coerced, result
from planner.bind.conversion.array_items import is_shaped, items_of
from planner.bind.conversion.coercion import array_of, castable, coerce, common_kind
from planner.bind.conversion.domains import into_domain
from planner.bind.conversion.resolution import Level
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.type_names import display, type_or_domain
from planner.bind.state.environment import Environment

_SIGNATURES: Final[dict[str, str]] = {
    "cardinality": "=: anyarray > int4",
    "array_ndims": "=: anyarray > int4",
    "array_dims": "=: anyarray > text",
    "array_length": "=: anyarray int4 > int4",
    "array_lower": "=: anyarray int4 > int4",
    "array_upper": "array_length: anyarray int4 > int4",
    "array_append": "=: anycompatiblearray anycompatible > anycompatiblearray",
    "array_prepend": "=: anycompatible anycompatiblearray > anycompatiblearray",
    "array_cat": "=: anycompatiblearray anycompatiblearray > anycompatiblearray",
    "array_remove": "=: anycompatiblearray anycompatible > anycompatiblearray",
    "array_replace": "=: anycompatiblearray anycompatible anycompatible > anycompatiblearray",
    "array_position": "=: anycompatiblearray anycompatible > int4; anycompatiblearray anycompatible int4 > int4",
    "array_positions": "=: anycompatiblearray anycompatible > _int4",
    "array_to_string": "=: anyarray text > text; anyarray text text > text",
    "string_to_array": "=: text text > _text; text text text > _text",
    "regexp_split_to_array": "=: text text > _text; text text text > _text",
    "parse_ident": "=: text > _text; text bool > _text",
    "array_fill": "=: anyelement _int4 > anyarray; anyelement _int4 _int4 > anyarray",
    "trim_array": "=: anyarray int4 > anyarray",
    "width_bucket": "bucket_of: anycompatible anycompatiblearray > int4",
}
#: Functions that look for elements that equal a value.
_SEARCHES: Final = frozenset(("array_remove", "array_replace", "array_position", "array_positions"))
FUNCTIONS: Final[dict[str, Table]] = {name: signatures(name, text) for name, text in _SIGNATURES.items()}


def is_array_function(name: str, count: int) -> bool:
    """Whether a call with so many arguments means one of ``FUNCTIONS``: width_bucket() also exists without arrays."""
    return name in FUNCTIONS and (name != "width_bucket" or count == 2)


def bind_array_function(env: Environment, node: Any) -> Scalar:
    """A call of one of ``FUNCTIONS``."""
    name = names_of(node.funcname)[-1]
    arguments = [env.bind(item) for item in node.args or ()]
    chosen = choose_overload(env, name, arguments, node, FUNCTIONS[name])
    of_shaped = call_of_shaped(env, chosen, name, arguments, node.args or ())
    if of_shaped is not None:
        return of_shaped
    found = coerced(env, chosen, opened(chosen.name, arguments), node.args or ())
    if name in _SEARCHES and (kind := found[0].type.element) is not None:
        check_equality(kind)
    kind = result(chosen, found)
    return Call(chosen.name, tuple(found), shaped(kind.element) if name == "array_fill" and kind.element else kind)


# --- constructors ----------------------------------------------------------------------------------------------------


def bind_array(env: Environment, node: Any, element: SqlType | None = None) -> Scalar:
    """ARRAY[...]; ``element`` is what a cast around it asks for. Raises 42P18 for an empty one without."""
    nodes = node.elements or ()
    if any(type(item).__name__ == "A_ArrayExpr" for item in nodes):
        inner = [
            bind_array(env, item, element) if type(item).__name__ == "A_ArrayExpr" else env.bind(item) for item in nodes
        ]
        return array_of_arrays(env, inner, nodes, node)
    if element is not None:
        given = [env.bind(item) for item in nodes]
        if any(item.type.element is not None for item in given) and element.element is None:
            kinds = [shaped(element) if is_shaped(item) else array(element) for item in given]
            whole = [_cast(env, *item) for item in zip(given, kinds, nodes, strict=True)]
            return array_of_arrays(env, whole, nodes, node)
        return array_of([_cast(env, item, element, place) for item, place in zip(given, nodes, strict=True)], element)
    if not nodes:
        hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[]."
        raise env.error("42P18", "cannot determine type of empty array", node, hint=hint)
    scalars = [env.bind(item) for item in nodes]
    for item, place in zip(scalars, nodes, strict=True):
        _refuse_vectors(env, item.type, place)
    kind = common_kind(scalars, "ARRAY", lambda index: env.binding.start(nodes[index]))
    if kind.element is not None:
        return array_of_arrays(env, scalars, nodes, node)
    found = [coerce(env.binding, item, kind, "implicit", place) for item, place in zip(scalars, nodes, strict=True)]
    return array_of([item for item in found if item is not None], kind)


def _refuse_vectors(env: Environment, kind: SqlType, node: Any) -> None:
    """Raises 0A000 for int2vector and oidvector, which are arrays and no arrays' dimension."""
    if kind.name in VECTORS:
        raise unsupported(f"an array of {kind.name}", "Cast it to an array first.", env.binding.start(node))


def _cast(env: Environment, scalar: Scalar, kind: SqlType, node: Any) -> Scalar:
    found = coerce(env.binding, scalar, kind, "explicit", node)
    if found is None:
        raise env.error_at("42846", f"cannot cast type {display(scalar.type)} to {display(kind)}", node)
    return found


def bind_array_cast(env: Environment, node: Any) -> Scalar | None:
    """ARRAY[...]::type[], whose elements are cast one by one; None for every other cast."""
    if type(node.arg).__name__ != "A_ArrayExpr":
        return None
    target, domain = type_or_domain(env.binding, node.typeName)
    if target.element is None:
        return None
    found = bind_array(env, node.arg, target.element)
    return into_domain(env.binding, found, domain, node)


def array_of_query(env: Environment, relation: Relation, node: Any) -> Scalar:
    """ARRAY(subquery): its only column's values in its order; an empty array where it has no row."""
    column = relation.columns[0]
    _refuse_vectors(env, column.type, node)
    kind = array(column.type)
    gathered = env.binding.column("array", kind)
    call = AggregateCall("array_agg", (ColumnRef(column),), kind)
    found: Scalar = ScalarSubquery(Aggregate(relation, (), ((gathered, call),)))
    empty: tuple[object, ...] = ()
    if column.type.element is not None:
        kind, empty = shaped(column.type.element), ((), EMPTY)
        found = Call("gathered", (found,), kind)
    return Call("coalesce", (found, Literal(empty, kind)), kind)


def array_of_rows(env: Environment, relation: Relation, kind: SqlType, node: Any) -> Scalar:
    """An array of a query's whole rows, as rows of a type."""
    row = Call("row", tuple(map(ColumnRef, relation.columns)), kind)
    return array_of_query(env, Project(relation, ((env.binding.column("row", kind), row),)), node)


# --- subscripts ------------------------------------------------------------------------------------------------------


def subscripted(env: Environment, scalar: Scalar, indices: Sequence[Any], node: Any) -> Scalar:
    """value[i] and value[low:high], of jsonb too. Raises 42804 for what is no array."""
    first, *others = indices
    if scalar.type.name == "jsonb":
        return bind_parts(env, scalar, indices)
    if scalar.type.name == "hstore":
        return Call("hs_get", (scalar, hstore_key(env, indices, node)), TEXT)
    if scalar.type.name == "name" and not others and not first.is_slice:  # an array of "char" from 0 on
        letter = (Cast(scalar, TEXT), _after(place_of(env, first.uidx)), Literal(1, INT4))
        return Cast(Call("substring", letter, TEXT), SqlType("char"), True)
    if scalar.type.element is None:
        message = f"cannot subscript type {display(scalar.type)} because it does not support subscripting"
        raise env.error_at("42804", message, node)
    require_dimensions(indices)
    if is_shaped(scalar):
        return of_shaped(scalar, indices, lambda item: place_of(env, item))
    if others:  # of one dimension, as all these arrays are
        kind = shaped(scalar.type.element)
        return of_shaped(Cast(scalar, kind), indices, lambda item: place_of(env, item))
    if not first.is_slice:
        place = place_of(env, first.uidx)
        if scalar.type.name in VECTORS:  # they begin at 0
            place = _after(place)
        return Call("subscript", (scalar, place), scalar.type.element)
    low = Literal(1, INT4) if first.lidx is None else place_of(env, first.lidx)
    high = Call("cardinality", (scalar,), INT4) if first.uidx is None else place_of(env, first.uidx)
    return Call("slice", (scalar, low, high), array(scalar.type.element))


def hstore_key(env: Environment, indices: Sequence[Any], node: Any) -> Scalar:
    """The only subscript of an hstore, as text. Raises 0A000 and 42804."""
    first, *others = indices
    if others or first.is_slice:
        raise env.error_at("0A000", "hstore allows only one subscript", first)
    found = coerce(env.binding, env.bind(first.uidx), TEXT, "assignment", first.uidx)
    if found is None:
        raise env.error_at("42804", "hstore subscript must have type text", first.uidx)
    return found


def _after(place: Scalar) -> Scalar:
    return Call("add", (place, Literal(1, INT4)), INT4)


def require_dimensions(indices: Sequence[Any]) -> None:
    """Raises 54000 for more subscripts than an array can have dimensions."""
    if len(indices) > DIMENSIONS:
        raise too_many(len(indices))


def place_of(env: Environment, node: Any) -> Scalar:
    """A subscript as an integer. Raises 42804."""
    scalar = env.bind(node)
    found = coerce(env.binding, scalar, INT4, "assignment", node)
    if found is None:
        raise env.error_at("42804", "array subscript must have type integer", node)
    return found


# --- ANY and ALL -----------------------------------------------------------------------------------------------------


def bind_quantified(env: Environment, node: Any) -> Scalar:
    """``x op ANY (array)`` and ``x op ALL (array)`` of any operator with a boolean result."""
    every = node.kind == A_Expr_Kind.AEXPR_OP_ALL
    symbol, place = names_of(node.name)[-1], env.binding.position(node)
    left, found = env.bind(node.lexpr), items_of(env.bind(node.rexpr))
    if found.type.element is None and found.type.name != "unknown":
        raise env.error("42809", "op ANY/ALL (array) requires array on right side", node)
    item = ColumnRef(Column(0, "element", found.type.element or found.type))
    compared = operate(env, symbol, left, item, node, (node.lexpr, node.rexpr))
    if compared.type != BOOL:
        raise env.error("42809", "op ANY/ALL (array) requires operator to yield boolean", node)
    negated = isinstance(compared, Call) and compared.function == "not"
    call = compared.arguments[0] if negated and isinstance(compared, Call) else compared
    if not isinstance(call, Call) or len(call.arguments) != 2 or not _is_item(call.arguments[1], item):
        raise unsupported(f"{symbol} {'ALL' if every else 'ANY'} (array)", "Use IN, or AND and OR.", place)
    kind = array(call.arguments[1].type)
    level: Level = "explicit" if castable(found.type, kind, "explicit") else "implicit"
    items = coerce(env.binding, found, kind, level, node.rexpr)
    assert items is not None, "the operator was chosen so that the elements coerce"
    scalar = _quantified(call.function, call.arguments[0], items, every != negated)
    return Call("not", (scalar,), BOOL) if negated else scalar


def _is_item(scalar: Scalar, item: ColumnRef) -> bool:
    while isinstance(scalar, Cast):
        scalar = scalar.argument
    return scalar is item


def _quantified(function: str, left: Scalar, items: Scalar, every: bool) -> Scalar:
    """Listed elements are IN's; what is only known at run time is compared there."""
    listed = _listed(items)
    if (function, every) not in (("eq", False), ("ne", True)) or listed is None:
        return Call("all" if every else "any", (Literal(function, TEXT), left, items), BOOL)
    if not listed:
        return Literal(every, BOOL)
    found = Call("in", (left, *listed), BOOL)
    return Call("not", (found,), BOOL) if every else found


def _listed(items: Scalar) -> Sequence[Scalar] | None:
    element = items.type.element
    assert element is not None
    if isinstance(items, Literal) and isinstance(items.value, tuple):
        return [Literal(value, element) for value in items.value]
    return items.arguments if isinstance(items, Call) and items.function == "array" else None
