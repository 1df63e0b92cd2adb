"""Dimensions and bounds of arrays that may have several: a *shape* beside the flat list of elements, in row-major
order.

Owns: shapes, as tuples of integers, and the texts of such arrays. An array is compared by its elements, then by their
number, dimensions, and bounds (array_cmp() in arrayfuncs.c); a shape orders in just that way:

    (n, d1, ..., dn, l1, ..., ln)    n dimensions of d1 to dn elements, which begin at l1 to ln
    (0,)                             no elements
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final

from catalog.values.errors import SqlError
from catalog.values.nested_texts import BLANKS, element_text, malformed_array

Shape = tuple[int, ...]
EMPTY: Final[Shape] = (0,)
#: PostgreSQL's MAXDIM.
MOST: Final = 6
#: PostgreSQL's MaxArraySize, in elements.
LARGEST: Final = 134217727
#: The most elements of an array that an assignment may make here, as their places are listed.
GROWN: Final = 1 << 22
#: A missing bound of an assigned slice: not an integer that PostgreSQL accepts.
UNSAID: Final = 1 << 40
_BOUNDS: Final = re.compile(r"((?:\[\s*[+-]?\d+(?:\s*:\s*[+-]?\d+)?\s*\])+)\s*=\s*", re.ASCII)
_BOUND: Final = re.compile(r"\[\s*([+-]?\d+)(?:\s*:\s*([+-]?\d+))?\s*\]", re.ASCII)
_TOKEN: Final = re.compile(
    r'[ \t\n\v\f\r]*(?:(?P<mark>[{},])|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>(?:[^,{}"\\]|\\.)+))', re.DOTALL
)
_RAGGED: Final = "Multidimensional arrays must have sub-arrays with matching dimensions."


def shaped(dimensions: Sequence[int], lowers: Sequence[int] = ()) -> Shape:
    """The shape with this number of elements in each dimension, and lower bounds of 1 unless given. Raises 54000."""
    if len(dimensions) > MOST:
        raise too_many(len(dimensions))
    if not prod(dimensions) or not dimensions:
        return EMPTY
    found = lowers or (1,) * len(dimensions)
    for size, low in zip(dimensions, found, strict=True):
        if not -(1 << 31) <= low <= (1 << 31) - 1 - size:
            raise SqlError("54000", f"array lower bound is too large: {low}")
    return len(dimensions), *dimensions, *found


def too_many(count: int) -> SqlError:
    """The error 54000."""
    return SqlError("54000", f"number of array dimensions ({count}) exceeds the maximum allowed ({MOST})")


def dimensions(shape: Sequence[int]) -> Sequence[int]:
    """The number of elements in each dimension."""
    return shape[1 : 1 + shape[0]]


def lowers(shape: Sequence[int]) -> Sequence[int]:
    """The lower bound of each dimension."""
    return shape[1 + shape[0] :]


def is_list(shape: Sequence[int]) -> bool:
    """Whether the elements alone determine the shape: one dimension with the lower bound 1, or no elements."""
    return shape[0] == 0 or (shape[0] == 1 and shape[2] == 1)


def listed(count: int) -> Shape:
    """The shape of this number of elements in one dimension."""
    return shaped((count,))


def stacked(shapes: Sequence[Sequence[int]]) -> Shape:
    """The shape of arrays combined in a new dimension. Raises 2202E if their shapes differ."""
    if not shapes or all(shape[0] == 0 for shape in shapes):
        return EMPTY
    if len({tuple(shape) for shape in shapes}) > 1:
        message = "multidimensional arrays must have array expressions with matching dimensions"
        raise SqlError("2202E", message)
    first = shapes[0]
    return shaped((len(shapes), *dimensions(first)), (1, *lowers(first)))


def joined(left: Sequence[int], right: Sequence[int]) -> Shape:
    """The shape of left || right (array_cat()). Raises 2202E."""
    if not left[0] or not right[0]:
        return tuple(right if not left[0] else left)
    one, other = list(dimensions(left)), list(dimensions(right))
    if len(one) == len(other) and one[1:] == other[1:] and list(lowers(left))[1:] == list(lowers(right))[1:]:
        return shaped((one[0] + other[0], *one[1:]), lowers(left))
    if len(one) == len(other) + 1 and one[1:] == other:
        return shaped((one[0] + 1, *one[1:]), lowers(left))
    if len(one) + 1 == len(other) and one == other[1:]:
        return shaped((other[0] + 1, *other[1:]), lowers(right))
    alike = len(one) == len(other)
    detail = (
        "Arrays with differing element dimensions are not compatible for concatenation."
        if alike
        else f"Arrays of {len(one)} and {len(other)} dimensions are not compatible for concatenation."
    )
    raise SqlError("2202E", "cannot concatenate incompatible arrays", detail)


def sliced(shape: Sequence[int], low: Sequence[int], high: Sequence[int]) -> tuple[list[int], Shape]:
    """The places of a slice's elements, from 0, and the slice's shape, whose bounds begin at 1; a dimension without
    bounds is taken whole."""
    count = shape[0]
    if not count or len(low) > count:
        return [], EMPTY
    spans = []
    for place, (size, least) in enumerate(zip(dimensions(shape), lowers(shape), strict=True)):
        start, end = least, least + size - 1
        if place < len(low):
            start, end = max(start, low[place]), min(end, high[place])
        if start > end:
            return [], EMPTY
        spans.append(range(start - least, end - least + 1))
    sizes = dimensions(shape)
    steps = [prod(sizes[place + 1 :]) for place in range(count)]
    places = [sum(at * step for at, step in zip(each, steps, strict=True)) for each in product(*spans)]
    return places, shaped([len(span) for span in spans])


def replaced(
    shape: Sequence[int], low: Sequence[int | None], high: Sequence[int | None], given: int, is_slice: bool
) -> tuple[list[int], Shape]:
    """The result of value[low:high] = (given values), or of value[low] = (one value), for an array with a shape.

    Returns where each element comes from (n: the old n-th, -n: the given n-th, from 1; 0: NULL) and the new shape
    (array_set_element() and array_set_slice()). Bounds that are ``UNSAID`` are the array's. Raises 22004, 2202E, 54000.
    """
    if None in (*low, *high):
        raise SqlError("22004", "array subscript in assignment must not be null")
    first, last = [int(item or 0) for item in low], [int(item or 0) for item in high]
    if not shape[0]:
        return _new(first, last, given)
    if (len(first) > shape[0]) if is_slice else (len(first) != shape[0]):
        raise SqlError("2202E", "wrong number of array subscripts")
    sizes, begins = list(dimensions(shape)), list(lowers(shape))
    for place, (size, begin) in enumerate(zip(sizes, begins, strict=True)):
        if place == len(first):  # dimensions without subscripts are taken whole
            first.append(begin)
            last.append(begin + size - 1)
        first[place] = begin if first[place] == UNSAID else first[place]
        last[place] = begin + size - 1 if last[place] == UNSAID else last[place]
        if first[place] > last[place]:
            raise SqlError("2202E", "upper bound cannot be less than lower bound")
        if len(sizes) > 1 and not begin <= first[place] <= last[place] < begin + size:
            raise SqlError("2202E", "array subscript out of range")
    lowest = [min(begins[0], first[0]), *begins[1:]]
    ends = [max(begins[0] + sizes[0] - 1, last[0]), *(map(_last, begins[1:], sizes[1:]))]
    found = _spanning(lowest, ends)
    if prod(map(_size, first, last)) > given:
        raise SqlError("2202E", "source array too small")
    return _sources(lowest, ends, begins, sizes, first, last), found


def _new(first: list[int], last: list[int], given: int) -> tuple[list[int], Shape]:
    """An array of the given values only."""
    if UNSAID in (*first, *last):
        detail = "When assigning to a slice of an empty array value, slice boundaries must be fully specified."
        raise SqlError("2202E", "array slice subscript must provide both boundaries", detail)
    found = _spanning(first, last)
    count = prod(map(_size, first, last))
    if count > given:
        raise SqlError("2202E", "source array too small")
    return [-place - 1 for place in range(count)], found


def _size(first: int, last: int) -> int:
    return max(last - first + 1, 0)


def _last(begin: int, size: int) -> int:
    return begin + size - 1


def _spanning(first: Sequence[int], last: Sequence[int]) -> Shape:
    sizes = list(map(_size, first, last))
    if prod(sizes) > LARGEST:
        raise SqlError("54000", f"array size exceeds the maximum allowed ({LARGEST})")
    if prod(sizes) > GROWN:
        raise SqlError("0A000", f"assignment to an element of an array of more than {GROWN} elements is not supported")
    return shaped(sizes, first)


def _sources(
    lowest: list[int], ends: list[int], begins: list[int], sizes: list[int], first: list[int], last: list[int]
) -> list[int]:
    """Where the elements from ``lowest`` to ``ends`` come from: the given ones are placed from ``first`` to
    ``last``."""
    steps = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
    found, taken = [], 0
    for each in product(*(range(low, end + 1) for low, end in zip(lowest, ends, strict=True))):
        if all(low <= at <= high for at, low, high in zip(each, first, last, strict=True)):
            taken += 1
            found.append(-taken)
        elif begins[0] <= each[0] < begins[0] + sizes[0]:
            found.append(1 + sum((at - begin) * step for at, begin, step in zip(each, begins, steps, strict=True)))
        else:
            found.append(0)
    return found


def split_shaped(text: str) -> tuple[list[str | None], Shape]:
    """The elements' texts in an array's text, and its shape (array_in()). Raises 22P02, 2202E and 54000."""
    body = text.strip(BLANKS)
    bounds = _BOUNDS.match(body)
    items, found = _elements(text, body, bounds.end() if bounds else 0)
    if bounds is None:
        return items, shaped(found)
    lower, sizes = [], []
    for match in _BOUND.finditer(bounds[1]):
        first, last = (1, int(match[1])) if match[2] is None else (int(match[1]), int(match[2]))
        if last < first:
            raise SqlError("2202E", "upper bound cannot be less than lower bound")
        lower.append(first)
        sizes.append(last - first + 1)
    if sizes != found:
        raise malformed_array(text, "Specified array dimensions do not match array contents.")
    return items, shaped(sizes, lower)


def _elements(text: str, body: str, position: int) -> tuple[list[str | None], list[int]]:
    """The elements within braces, and the dimensions of the braces."""
    if not body.startswith("{", position):
        raise malformed_array(text, 'Array value must start with "{" or dimension information.')
    items: list[str | None] = []
    counts: list[int] = []  # the number of items in each open brace
    sizes: dict[int, int] = {}  # by depth, known once a brace is closed
    leaves, before = 0, ""
    while before != "}" or counts:
        match = _TOKEN.match(body, position)
        if match is None:
            raise malformed_array(text, "Unexpected end of input.")
        position, mark = match.end(), match["mark"]
        if mark == "{" and before in ("", "{", ","):
            if leaves and len(counts) >= leaves:
                raise malformed_array(text, 'Unexpected "{" character.')
            counts.append(0)
            if len(counts) > MOST:
                raise too_many(len(counts))
        elif mark == "," and before in ("}", "item"):
            pass
        elif mark == "}" and (before in ("}", "item") or (before == "{" and len(counts) == 1)):
            if sizes.setdefault(len(counts), counts[-1]) != counts.pop():
                raise malformed_array(text, _RAGGED)
            if counts:
                counts[-1] += 1
        elif mark is None and before in ("{", ","):
            leaves = leaves or len(counts)
            if leaves != len(counts):
                raise malformed_array(text, _RAGGED)
            counts[-1] += 1
            items.append(element_text(match, text, "Unexpected array element."))
        else:
            raise malformed_array(text, f'Unexpected "{mark}" character.' if mark else "Unexpected array element.")
        before = mark or "item"
    if body[position:].strip(BLANKS):
        raise malformed_array(text, "Junk after closing right brace.")
    return items, [sizes[depth] for depth in sorted(sizes)] if items else []


def is_shaped(text: str) -> bool:
    """Whether an array's text has bounds, or more than one dimension."""
    return re.match(r"[ \t\n\v\f\r]*(\[|\{[ \t\n\v\f\r]*\{)", text) is not None


def written(items: Sequence[str], shape: Sequence[int], delimiter: str = ",") -> str:
    """The text of an array (array_out()), from its elements' texts, which are quoted as needed."""
    found = _nested(items, shape, "{}", delimiter)
    if all(low == 1 for low in lowers(shape)):
        return found
    return f"{bounds_text(shape)}={found}"


def document(items: Sequence[str], shape: Sequence[int]) -> str:
    """An array as a JSON array of arrays, from its elements as documents."""
    return _nested(items, shape, "[]", ",")


def _nested(items: Sequence[str], shape: Sequence[int], brackets: str, delimiter: str) -> str:
    if not shape[0]:
        return brackets
    found = list(items)
    for size in reversed(dimensions(shape)):
        rows = (delimiter.join(found[place : place + size]) for place in range(0, len(found), size))
        found = [f"{brackets[0]}{row}{brackets[1]}" for row in rows]
    return found[0]


def bounds_text(shape: Sequence[int]) -> str:
    """The result of array_dims(): ``[1:2][1:3]``."""
    pairs = zip(dimensions(shape), lowers(shape), strict=True)
    return "".join(f"[{low}:{low + size - 1}]" for size, low in pairs)
