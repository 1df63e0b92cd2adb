"""Operators and functions of hstore, whose values are texts (``catalog.values.forms.hstores``), as functions of the
engine.

Owns: ``FUNCTIONS`` and ``OF_NULL``, ``hs_*``, with PostgreSQL's errors (hstore_op.c, hstore_io.c).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from catalog.values.array_shapes import dimensions, split_shaped
from catalog.values.errors import SqlError
from catalog.values.forms.hstores import Pairs, of_order_key, order_key, pairs, shown, unique
from catalog.values.json_documents import canonical, parse, quoted
from executor.embedded.functions.batches import Functions

Keys = Sequence[str | None]

#: The texts that JSON accepts as numbers (IsValidJsonNumber()).
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TRUTHS: Final = {"t": "true", "f": "false"}


def _kept(text: str, keeps: Callable[[str, str | None], bool]) -> str:
    return shown({key: value for key, value in pairs(text).items() if keeps(key, value)})


def _slice_array(text: str, keys: Keys) -> list[str | None]:
    found = pairs(text)
    return [None if key is None else found.get(key) for key in keys]


def _slice(text: str, keys: Keys) -> str:
    wanted = set(keys)
    return _kept(text, lambda key, value: key in wanted)


def _delete_array(text: str, keys: Keys) -> str:
    gone = set(keys)
    return _kept(text, lambda key, value: key not in gone)


def _delete_pairs(text: str, other: str) -> str:
    gone = pairs(other).items()
    return _kept(text, lambda key, value: (key, value) not in gone)


def _concat(left: str, right: str) -> str:
    return shown(unique((pairs(left) | pairs(right)).items()))


def _contains(whole: str, part: str) -> bool:
    return pairs(part).items() <= pairs(whole).items()


def _flat(text: str) -> list[str | None]:
    return [item for pair in pairs(text).items() for item in pair]


def _matrix(text: str) -> str:
    """The text of a two-dimensional array."""
    rows = (",".join("NULL" if item is None else _element(item) for item in pair) for pair in pairs(text).items())
    return "{" + ",".join(f"{{{row}}}" for row in rows) + "}"


def _element(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _document(text: str, write: Callable[[str], str]) -> str:
    items = (f"{quoted(key)}: {'null' if value is None else write(value)}" for key, value in pairs(text).items())
    return "{" + ", ".join(items) + "}"


def _loose(value: str) -> str:
    return _TRUTHS.get(value) or (value if _NUMBER.fullmatch(value) else quoted(value))


def _pair(key: str | None, value: str | None) -> str | None:
    return None if key is None else shown({key: value})


def _checked(key: str | None) -> str:
    if key is None:
        raise SqlError("22004", "null value not allowed for hstore key")
    return key


def _pairs(keys: Keys | None, values: Keys | None) -> str | None:
    """An hstore from two arrays, of keys and of values; without the second, all values are NULL."""
    if keys is None:
        return None
    if values is not None and len(values) != len(keys):
        raise SqlError("2202E", "arrays must have same bounds")
    found: Pairs = unique(zip(map(_checked, keys), values or [None] * len(keys), strict=True))
    return shown(found)


def _of_array(items: Keys) -> str:
    """An hstore from an array of keys and values by turns."""
    if len(items) % 2:
        raise SqlError("2202E", "array must have even number of elements")
    return shown(unique(zip(map(_checked, items[::2]), items[1::2], strict=True)))


def _of_shaped(text: str) -> str:
    """An hstore from an array of any number of dimensions, given as text."""
    items, shape = split_shaped(text)
    if shape[0] == 2 and dimensions(shape)[1] != 2:
        raise SqlError("2202E", "array must have two columns")
    if shape[0] > 2:
        raise SqlError("2202E", "wrong number of array subscripts")
    return _of_array(items)


FUNCTIONS: Final[Functions] = {
    "hs_get": (lambda text, key: pairs(text).get(key), "VARCHAR"),
    "hs_slice_array": (_slice_array, "VARCHAR[]"),
    "hs_slice": (_slice, "VARCHAR"),
    "hs_exists": (lambda text, key: key in pairs(text), "BOOLEAN"),
    "hs_exists_any": (lambda text, keys: not pairs(text).keys().isdisjoint(keys), "BOOLEAN"),
    "hs_exists_all": (lambda text, keys: pairs(text).keys() >= set(keys) - {None}, "BOOLEAN"),
    "hs_defined": (lambda text, key: pairs(text).get(key) is not None, "BOOLEAN"),
    "hs_delete": (lambda text, gone: _kept(text, lambda key, value: key != gone), "VARCHAR"),
    "hs_delete_array": (_delete_array, "VARCHAR"),
    "hs_delete_pairs": (_delete_pairs, "VARCHAR"),
    "hs_concat": (_concat, "VARCHAR"),
    "hs_contains": (_contains, "BOOLEAN"),
    "hs_contained": (lambda part, whole: _contains(whole, part), "BOOLEAN"),
    "hs_keys": (lambda text: list(pairs(text)), "VARCHAR[]"),
    "hs_values": (lambda text: list(pairs(text).values()), "VARCHAR[]"),
    "hs_array": (_flat, "VARCHAR[]"),
    "hs_matrix": (_matrix, "VARCHAR"),
    "hs_of_array": (_of_array, "VARCHAR"),
    "hs_of_shaped": (_of_shaped, "VARCHAR"),
    "hs_json": (lambda text: _document(text, quoted), "VARCHAR"),
    "hs_json_loose": (lambda text: _document(text, _loose), "VARCHAR"),
    "hs_jsonb_loose": (lambda text: canonical(parse(_document(text, _loose))), "VARCHAR"),
    "hs_order": (order_key, "VARCHAR"),
    "hs_ordered": (of_order_key, "VARCHAR"),
}
#: Functions that are called with NULL arguments.
OF_NULL: Final[Functions] = {
    "hs_pair": (_pair, "VARCHAR"),
    "hs_pairs": (_pairs, "VARCHAR"),
    "hs_assign": (lambda text, key, value: _concat(text or "", shown({_checked(key): value})), "VARCHAR"),
}
