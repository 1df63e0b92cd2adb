"""Arrays of several dimensions in DuckDB's functions and macros: structs of a list of all elements and the shape
(``catalog.values.array_shapes``).

Owns: ``FUNCTIONS``, ``OF_NULL`` and ``STATEMENTS``. DuckDB compares the structs as PostgreSQL compares arrays: by their
elements, then by their shape.
"""

from __future__ import annotations

from typing import Final

from catalog.values import array_shapes as shapes
from catalog.values.errors import SqlError
from executor.embedded.functions.batches import Functions

_Shape = list[int]


def _stacked(given: list[_Shape | None]) -> list[int]:
    return list(shapes.stacked([item for item in given if item is not None]))


def _filled(sizes: list[int | None] | None, lowers: list[int | None] | None) -> list[int]:
    """The shape of an array_fill(). Raises 22004, 2202E and 54000."""
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
#: Functions that are called with NULL arguments.
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
