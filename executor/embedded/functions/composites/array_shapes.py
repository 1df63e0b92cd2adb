"""Arrays of any dimensions in DuckDB: a struct of the elements in one list and of the shape
(``catalog.values.array_shapes``).

Owns: ``SHAPED``, their functions, and what makes such an array of a list and back. DuckDB compares the structs as
PostgreSQL does the arrays: by elements, then by shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from catalog.values import array_shapes as shapes
from catalog.values.errors import SqlError
from catalog.values.types import INT4, INT8, TEXT, SqlType, array, shaped
from executor.embedded.functions.batches import Functions
from executor.embedded.printing.nodes import bound, called, cast_to, macro
from executor.printing.nodes import Build, Expr, function
from planner.algebra.scalars import Call

if TYPE_CHECKING:
    from executor.embedded.printing.dialect import DuckPrinter

_Shape = list[int]


def _stacked(given: list[_Shape | None]) -> list[int]:
    return list(shapes.stacked([item for item in given if item is not None]))


def _filled(sizes: list[int | None] | None, lowers: list[int | None] | None) -> list[int]:
    """array_fill()'s shape. Raises 22004, 2202E and 54000."""
    if sizes is None or lowers is None:
        raise SqlError("22004", "dimension array or low bound array cannot be null")
    if None in sizes or None in lowers:
        raise SqlError("22004", "dimension values cannot be null")
    if len(lowers) != len(sizes):
        raise SqlError("2202E", "wrong number of array subscripts", "Low bound array has different size.")
    return list(shapes.shaped([int(size or 0) for size in sizes], [int(low or 0) for low in lowers]))


FUNCTIONS: Final[Functions] = {
    "shape_items": (lambda written: shapes.split_shaped(written)[0], "VARCHAR[]"),
    "shape_read": (lambda written: list(shapes.split_shaped(written)[1]), "INTEGER[]"),
    "shape_written": (shapes.written, "VARCHAR"),
    "doc_shaped": (shapes.document, "VARCHAR"),
    "shape_bounds": (shapes.bounds_text, "VARCHAR"),
    "shape_stacked": (_stacked, "INTEGER[]"),
    "shape_joined": (lambda left, right: list(shapes.joined(left, right)), "INTEGER[]"),
    "shape_slice": (lambda shape, low, high: list(shapes.sliced(shape, low, high)[1]), "INTEGER[]"),
    "shape_places": (lambda shape, low, high: shapes.sliced(shape, low, high)[0], "INTEGER[]"),
    "shape_replaced": (lambda *given: list(shapes.replaced(*given)[1]), "INTEGER[]"),
    "shape_sources": (lambda *given: shapes.replaced(*given)[0], "INTEGER[]"),
}
#: Those that see NULL.
OF_NULL: Final[Functions] = {"shape_filled": (_filled, "INTEGER[]")}

STATEMENTS: Final = """
CREATE MACRO ms_shaped(a) AS CASE WHEN a IS NOT NULL THEN
    {'items': a, 'shape': CASE WHEN len(a) = 0 THEN [0] ELSE [1, len(a), 1] END} END;
CREATE MACRO ms_items(x) AS struct_extract(x, 'items');
CREATE MACRO ms_shape(x) AS struct_extract(x, 'shape');
CREATE MACRO ms_with_shape(a, shape) AS CASE WHEN a IS NOT NULL AND shape IS NOT NULL
    THEN {'items': a, 'shape': shape} END;
CREATE MACRO ms_as_list(x) AS CASE WHEN x IS NULL THEN NULL
    WHEN ms_shape(x)[1] = 0 OR (ms_shape(x)[1] = 1 AND ms_shape(x)[3] = 1) THEN ms_items(x)
    ELSE error('!0A000!an array of more than one dimension, or with bounds, is not supported here') END;
CREATE MACRO ms_shaped_ndims(x) AS CASE WHEN ms_shape(x)[1] > 0 THEN ms_shape(x)[1] END;
CREATE MACRO ms_shaped_dims(x) AS CASE WHEN ms_shape(x)[1] > 0 THEN shape_bounds(ms_shape(x)) END;
CREATE MACRO ms_shaped_length(x, d) AS CASE WHEN d > 0 AND d <= ms_shape(x)[1] THEN ms_shape(x)[1 + d] END;
CREATE MACRO ms_shaped_lower(x, d) AS CASE WHEN d > 0 AND d <= ms_shape(x)[1]
    THEN ms_shape(x)[1 + ms_shape(x)[1] + d] END;
CREATE MACRO ms_shaped_upper(x, d) AS CASE WHEN d > 0 AND d <= ms_shape(x)[1]
    THEN ms_shape(x)[1 + ms_shape(x)[1] + d] + ms_shape(x)[1 + d] - 1 END;
CREATE MACRO ms_shaped_subscripts(x, d, backwards) AS CASE WHEN d > 0 AND d <= ms_shape(x)[1] THEN
    CASE WHEN backwards THEN list_reverse(generate_series(ms_shaped_lower(x, d), ms_shaped_upper(x, d)))
    ELSE generate_series(ms_shaped_lower(x, d), ms_shaped_upper(x, d)) END END;
CREATE MACRO ms_shaped_at(x, places) AS ms_items(x)[
    1 + list_extract(shape_places(ms_shape(x),
        CASE WHEN len(places) = ms_shape(x)[1] AND list_count(places) = len(places) THEN places END, places), 1)];
CREATE MACRO ms_shaped_slice(x, low, high) AS CASE WHEN list_count(low) = len(low) AND list_count(high) = len(high)
    THEN ms_with_shape(list_transform(shape_places(ms_shape(x), low, high), lambda p: ms_items(x)[p + 1]),
        shape_slice(ms_shape(x), low, high)) END;
CREATE MACRO ms_shaped_cat(x, y) AS CASE WHEN x IS NULL THEN y WHEN y IS NULL THEN x
    ELSE ms_with_shape(list_concat(ms_items(x), ms_items(y)), shape_joined(ms_shape(x), ms_shape(y))) END;
CREATE MACRO ms_stacked(xs) AS ms_with_shape(
    flatten(list_transform(xs, lambda x: coalesce(ms_items(x), []))),
    shape_stacked(list_transform(xs, lambda x: coalesce(ms_shape(x), [0]))));
CREATE MACRO ms_gathered(xs) AS CASE WHEN list_count(xs) < len(xs)
    THEN error('!22004!cannot accumulate null arrays')
    WHEN len(list_distinct(list_transform(xs, lambda x: ms_shape(x)))) > 1
    THEN error('!2202E!cannot accumulate arrays of different dimensionality')
    WHEN len(xs) > 0 AND ms_shape(xs[1])[1] = 0 THEN error('!2202E!cannot accumulate empty arrays')
    ELSE ms_stacked(xs) END;
CREATE MACRO ms_filled(empty, value, shape) AS ms_with_shape(list_resize(empty,
    CASE WHEN shape[1] = 0 THEN 0 ELSE list_product(shape[2:1 + shape[1]]) END::BIGINT, value), shape);
CREATE MACRO ms_replaced(items, shape, given, low, high, is_slice) AS {
    'items': list_transform(shape_sources(shape, low, high, len(given), is_slice),
        lambda p: CASE WHEN p < 0 THEN given[-p] ELSE items[p] END),
    'shape': shape_replaced(shape, low, high, len(given), is_slice)};
CREATE MACRO ms_shaped_put(x, empty, given, low, high, is_slice) AS
    CASE WHEN given IS NULL THEN coalesce(x, {'items': empty, 'shape': [0]})
    ELSE ms_replaced(coalesce(ms_items(x), empty), coalesce(ms_shape(x), [0]), given, low, high, is_slice) END;
CREATE MACRO ms_shaped_alike(x, scale) AS ms_with_shape(ms_scales_alike(ms_items(x), scale), ms_shape(x));
CREATE MACRO ms_shaped_replace(x, old, new) AS ms_with_shape(ms_array_replace(ms_items(x), old, new), ms_shape(x));
"""


def is_shaped(kind: SqlType) -> bool:
    """Whether values of a type carry their shape."""
    return kind.name == "shaped"


def shaped_type(items: Expr, shape: Expr) -> Expr:
    """The struct's type, of those of its fields."""
    fields = [
        exp.ColumnDef(this=exp.Identifier(this=name, quoted=True), kind=kind)
        for name, kind in (("items", items), ("shape", shape))
    ]
    return exp.DataType(this=exp.DataType.Type.STRUCT, expressions=fields, nested=True)


def parts(value: Expr) -> tuple[Expr, Expr]:
    """An array's elements and its shape."""
    return macro("ms_items", value.copy()), macro("ms_shape", value.copy())


def struct(fields: list[Expr]) -> Expr:
    """An array of its elements and shape, neither of which is NULL."""
    names = (exp.Identifier(this=name, quoted=True) for name in ("items", "shape"))
    return exp.Struct(
        expressions=[exp.PropertyEQ(this=name, expression=field) for name, field in zip(names, fields, strict=True)]
    )


def with_shape(items: Expr, shape: Expr) -> Expr:
    """An array of its elements and shape; NULL where one is."""
    return macro("ms_with_shape", items, shape)


def over_items(value: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The array with its elements changed, list by list."""
    return bound(
        value, lambda given: with_shape(change(macro("ms_items", given.copy())), macro("ms_shape", given.copy()))
    )


def cast(
    printer: DuckPrinter,
    argument: Expr,
    source: SqlType,
    target: SqlType,
    listed: Callable[[Expr, SqlType, SqlType], Expr],
) -> Expr:
    """To or from a type of arrays of any dimensions; ``listed`` casts lists of elements."""
    assert target.element is not None
    element = array(target.element)
    if is_shaped(target) and source.element is None:  # a text
        items = listed(function("shape_items", argument), array(TEXT), element)
        found = with_shape(items, function("shape_read", argument.copy()))
    elif is_shaped(target) and is_shaped(source):
        assert source.element is not None
        inner = array(source.element)
        found = over_items(argument, lambda items: listed(items, inner, element))
    elif is_shaped(target):
        found = macro("ms_shaped", listed(argument, source, element))
    else:
        assert source.element is not None
        return listed(macro("ms_as_list", argument), array(source.element), element)
    return exp.Cast(this=found, to=printer.type(target))


def written(value: Expr, shown: Callable[[Expr], Expr], name: str = "shape_written") -> Expr:
    """An array's text, or another that a function makes of its shape; ``shown`` makes the list of its elements'."""
    return bound(
        value,
        lambda given: function(name, shown(macro("ms_items", given.copy())), macro("ms_shape", given.copy())),
    )


def _named(name: str) -> Build:
    return lambda printer, arguments, node: called(name, *arguments)


def _retyped(name: str) -> Build:
    return lambda printer, arguments, node: cast_to(printer, called(name, *arguments), node.type)


def _places(printer: Any, places: list[Expr]) -> Expr:
    return cast_to(printer, exp.Array(expressions=places), array(INT4))


def _at(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    return macro("ms_shaped_at", arguments[0], _places(printer, arguments[1:]))


def _slice(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    value, *bounds = arguments
    half = len(bounds) // 2
    low, high = (_places(printer, side) for side in (bounds[:half], bounds[half:]))
    return macro("ms_shaped_slice", value, low, high)


def _over_arrays(name: str) -> Build:
    """Of a list of arrays, which are brought to one form."""

    def build(printer: Any, arguments: list[Expr], node: Call) -> Expr:
        inner = node.arguments[0].type.element
        assert inner is not None
        assert inner.element is not None
        given = arguments[0]
        if not is_shaped(inner):
            kind = exp.Identifier(this="a", quoted=True)
            one = exp.Lambda(this=macro("ms_shaped", exp.Column(this=kind)), expressions=[kind.copy()])
            given = cast_to(printer, function("list_transform", given, one), array(shaped(inner.element)))
        return cast_to(printer, macro(name, given), node.type)

    return build


def _empty(printer: Any, kind: SqlType) -> Expr:
    assert kind.element is not None
    return cast_to(printer, exp.Array(expressions=[]), array(kind.element))


def _put(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    """An element of an array, one given, or a slice's given elements, in its place."""
    value, given, *bounds = arguments
    is_slice = is_shaped(node.arguments[1].type)
    half = len(bounds) // 2
    low, high = (
        cast_to(printer, exp.Array(expressions=side), array(INT8))
        for side in ((bounds[:half], bounds[half:]) if is_slice else (bounds, bounds))
    )
    values = macro("ms_items", given) if is_slice else exp.Array(expressions=[given])
    whether = exp.Boolean(this=is_slice)
    return cast_to(
        printer, macro("ms_shaped_put", value, _empty(printer, node.type), values, low, high, whether), node.type
    )


def _fill(printer: Any, arguments: list[Expr], node: Call) -> Expr:
    value, sizes, *lowers = arguments
    units = exp.Lambda(this=exp.Literal.number(1), expressions=[exp.Identifier(this="a", quoted=True)])
    given = lowers or [cast_to(printer, function("list_transform", sizes.copy(), units), array(INT4))]
    found = macro("ms_filled", _empty(printer, node.type), value, function("shape_filled", sizes, *given))
    return cast_to(printer, found, node.type)


SHAPED: Final[Mapping[str, Build]] = {
    "shaped_items": _named("ms_items"),
    "shaped_ndims": _retyped("ms_shaped_ndims"),
    "shaped_dims": _named("ms_shaped_dims"),
    "shaped_length": _retyped("ms_shaped_length"),
    "shaped_lower": _retyped("ms_shaped_lower"),
    "shaped_upper": _retyped("ms_shaped_upper"),
    "shaped_subscripts": lambda printer, arguments, node: cast_to(
        printer, macro("ms_shaped_subscripts", *arguments, *([exp.false()] if len(arguments) == 2 else [])), node.type
    ),
    "shaped_at": _at,
    "shaped_slice": _slice,
    "shaped_cat": _named("ms_shaped_cat"),
    "shaped_replace": _named("ms_shaped_replace"),
    "shaped_put": _put,
    "stacked": _over_arrays("ms_stacked"),
    "gathered": _over_arrays("ms_gathered"),
    "array_fill": _fill,
}
