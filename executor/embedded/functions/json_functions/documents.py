"""JSON operators and functions as functions of the engine. DuckDB's own neither keep a document's text nor print jsonb
as PostgreSQL does.

Owns: the functions ``doc_*`` over values. Documents are text: json as written, jsonb in output form, so a part of
either is a slice (``catalog.values.json_documents``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from catalog.values.json_documents import (
    Number,
    canonical,
    check,
    elements,
    fields,
    kind,
    parse,
    quoted,
    scalar,
    sorted_keys,
    text_of,
)
from executor.embedded.functions.batches import Functions, error
from executor.embedded.functions.json_functions.document_order import order_key

_INDEX: Final = re.compile(r"\s*[+-]?[0-9]+")


def _jsonb(text: str) -> str:
    return canonical(parse(text))


# --- parts -----------------------------------------------------------------------------------------------------------


def _get(document: str, key: str) -> str | None:
    """The part at a key or index; of repeated keys, the last one counts."""
    return dict(fields(document)).get(key) if kind(document) == "object" else None


def _at(document: str, index: int) -> str | None:
    if kind(document) != "array":
        return None
    items = list(elements(document))
    return items[index] if -len(items) <= index < len(items) else None


def _of_binary(document: str, index: int) -> str | None:
    """jsonb stores a single scalar as an array of one element."""
    return _at(document if kind(document) in ("array", "object") else f"[{document}]", index)


def _path(document: str, path: Sequence[str | None]) -> str | None:
    found: str | None = document
    for step in path:
        if found is None or step is None:
            return None
        if kind(found) == "array":
            found = _at(found, int(step)) if _INDEX.fullmatch(step) else None
        else:
            found = _get(found, step)
    return found


def _shown(part: Callable[..., str | None]) -> Callable[..., str | None]:
    """The result of ->> for a part that -> gives."""

    def shown(*arguments: Any) -> str | None:
        found = part(*arguments)
        return None if found is None else text_of(found)

    return shown


def _length(document: str) -> int:
    if kind(document) != "array":
        raise error("22023", "cannot get array length of a non-array")
    return sum(1 for _ in elements(document))


def _elements(document: str) -> list[str]:
    if kind(document) != "array":
        raise error("22023", "cannot extract elements from a non-array")
    return list(elements(document))


def _array_text(document: str, is_raw: bool) -> str:
    """A JSON array as an array's text, with as many dimensions as arrays enclose its first value (populate_array()).
    Elements are documents if ``is_raw``, else their values as texts."""
    depth = _depth(document)
    return _braced(document, depth, is_raw) if depth else "{}"


def _depth(document: str) -> int:
    """The number of arrays around the first value; 0 if there is none."""
    for item in elements(document):
        inner = _depth(item) if kind(item) == "array" else 0
        if inner or kind(item) != "array":
            return inner + 1
    return 0


def _braced(document: str, depth: int, is_raw: bool) -> str:
    if kind(document) != "array":
        raise error("22P02", "expected JSON array")
    items = elements(document)
    if depth > 1:
        return "{" + ",".join(_braced(item, depth - 1, is_raw) for item in items) + "}"
    return "{" + ",".join(_element_text(item, is_raw) for item in items) + "}"


def _element_text(item: str, is_raw: bool) -> str:
    text = text_of(item)
    if text is None:
        return "NULL"
    escaped = (item if is_raw else text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _fields(document: str) -> Iterator[tuple[str, str]]:
    if kind(document) != "object":
        raise error("22023", "cannot deconstruct a non-object")
    return fields(document)


def _record(document: str, name: str) -> str:
    found = kind(document)
    if found != "object":
        raise error("22023", f"cannot call {name} on {'an array' if found == 'array' else 'a scalar'}")
    return document


def _records(document: str, name: str) -> list[str]:
    found = kind(document)
    if found != "array":
        raise error("22023", f"cannot call {name} on {'an object' if found == 'object' else 'a scalar'}")
    rows = list(elements(document))
    if any(kind(row) != "object" for row in rows):
        raise error("22023", f"argument of {name} must be an array of objects")
    return rows


def _keys(document: str) -> list[str]:
    return [key for key, _ in _fields(document)]


def _values(document: str) -> list[str]:
    return [value for _, value in _fields(document)]


def _texts(parts: Callable[[str], list[str]]) -> Callable[[str], list[str | None]]:
    return lambda document: [text_of(item) for item in parts(document)]


# --- jsonb -----------------------------------------------------------------------------------------------------------


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, Number) and isinstance(right, Number):
        return Decimal(left) == Decimal(right)
    return type(left) is type(right) and bool(left == right)


def _holds(left: Any, right: Any) -> bool:
    """@> below the top level, where an array does not contain a single scalar."""
    if isinstance(left, dict) and isinstance(right, dict):
        return all(key in left and _holds(left[key], item) for key, item in right.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(any(_holds(own, item) for own in left) for item in right)
    return _same(left, right)


def _contains(left: str, right: str) -> bool:
    a, b = parse(left), parse(right)
    if isinstance(a, list) and not isinstance(b, list | dict):
        return any(_same(item, b) for item in a)
    return _holds(a, b)


def _exists(document: str, key: str) -> bool:
    value = parse(document)
    if isinstance(value, dict):
        return key in value
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, str) and not isinstance(item, Number) and item == key for item in items)


def _exists_any(document: str, keys: Sequence[str | None]) -> bool:
    return any(key is not None and _exists(document, key) for key in keys)


def _exists_all(document: str, keys: Sequence[str | None]) -> bool:
    return all(key is None or _exists(document, key) for key in keys)


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items() if item is not None}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


def _strip_text(document: str) -> str:
    """json without its null fields; the other parts as written."""
    match kind(document):
        case "object":
            parts = [f"{quoted(key)}:{_strip_text(part)}" for key, part in fields(document) if kind(part) != "null"]
            return "{" + ",".join(parts) + "}"
        case "array":
            return "[" + ",".join(map(_strip_text, elements(document))) + "]"
        case "string":
            return quoted(str(parse(document)))
        case _:
            return document.strip(" \t\n\r")


def _object(pairs: Sequence[str | None]) -> str:
    if len(pairs) % 2:
        raise error("2202E", "array must have even number of elements")
    return _paired(pairs[::2], pairs[1::2])


def _paired(keys: Sequence[str | None], values: Sequence[str | None]) -> str:
    if len(keys) != len(values):
        raise error("2202E", "mismatched array dimensions")
    if None in keys:
        raise error("22004", "null value not allowed for object key")
    pairs = zip(keys, values, strict=True)
    parts = [f"{quoted(str(key))} : {'null' if item is None else quoted(item)}" for key, item in pairs]
    return "{" + ", ".join(parts) + "}"


def _number(document: str, target: str) -> str:
    """The digits of a number for a cast."""
    return _of_kind(document, "number", target)


def _boolean(document: str) -> bool:
    return _of_kind(document, "boolean", "boolean") == "true"


def _of_kind(document: str, wanted: str, target: str) -> str:
    found = kind(document)
    if found != wanted:
        words = "numeric" if found == "number" else found
        raise error("22023", f"cannot cast jsonb {words} to type {target}")
    return document


def _pretty(value: Any, indent: str = "\n") -> str:
    plain = scalar(value)
    if plain is not None:
        return plain
    inner = indent + "    "
    if isinstance(value, dict):
        parts = [f"{quoted(key)}: {_pretty(value[key], inner)}" for key in sorted_keys(value)]
    else:
        parts = [_pretty(item, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + ",".join(inner + part for part in parts) + indent + closing


def _key(text: str | None) -> str:
    if text is None:
        raise error("22023", "null value not allowed for object key")
    return quoted(text)


def _turns(keys: Sequence[str | None], values: Sequence[str]) -> str:
    """An object from keys and values by turns: each key is a text, each value a document."""
    if len(keys) % 2:
        raise error("22023", "argument list must have even number of elements")
    pairs = zip(keys[::2], values[1::2], strict=True)
    return f"{{{', '.join(f'{_key(key)} : {value}' for key, value in pairs)}}}"


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)


def _lined(document: str, is_lined: bool) -> str:
    """A document with its outermost items on lines of their own, or on one line."""
    depth = 0

    def spaced(token: re.Match[str]) -> str:
        nonlocal depth
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        return ",\n " if token[0] == "," and depth == 1 else token[0]

    return _TOKEN.sub(spaced, document) if is_lined else document


# --- functions of the engine -----------------------------------------------------------------------------------------

FUNCTIONS: Final[Functions] = {
    "doc_json": (check, "VARCHAR"),
    "doc_jsonb": (_jsonb, "VARCHAR"),
    "doc_quoted": (quoted, "VARCHAR"),
    "doc_get": (_get, "VARCHAR"),
    "doc_get_text": (_shown(_get), "VARCHAR"),
    "doc_at": (_at, "VARCHAR"),
    "doc_at_text": (_shown(_at), "VARCHAR"),
    "doc_b_at": (_of_binary, "VARCHAR"),
    "doc_b_at_text": (_shown(_of_binary), "VARCHAR"),
    "doc_path": (_path, "VARCHAR"),
    "doc_path_text": (_shown(_path), "VARCHAR"),
    "doc_type": (kind, "VARCHAR"),
    "doc_length": (_length, "INTEGER"),
    "doc_elements": (_elements, "VARCHAR[]"),
    "doc_elements_text": (_texts(_elements), "VARCHAR[]"),
    "doc_array_text": (_array_text, "VARCHAR"),
    "doc_record": (_record, "VARCHAR"),
    "doc_records": (_records, "VARCHAR[]"),
    "doc_keys": (_keys, "VARCHAR[]"),
    "doc_values": (_values, "VARCHAR[]"),
    "doc_values_text": (_texts(_values), "VARCHAR[]"),
    "doc_contains": (_contains, "BOOLEAN"),
    "doc_exists": (_exists, "BOOLEAN"),
    "doc_exists_any": (_exists_any, "BOOLEAN"),
    "doc_exists_all": (_exists_all, "BOOLEAN"),
    "doc_object": (_object, "VARCHAR"),
    "doc_paired": (_paired, "VARCHAR"),
    "doc_turns": (_turns, "VARCHAR"),
    "doc_lined": (_lined, "VARCHAR"),
    "doc_number": (_number, "VARCHAR"),
    "doc_boolean": (_boolean, "BOOLEAN"),
    "doc_order": (order_key, "BLOB"),
    "doc_strip_text": (_strip_text, "VARCHAR"),
    "doc_strip_nulls": (lambda document: canonical(_stripped(parse(document))), "VARCHAR"),
    "doc_pretty": (lambda document: _pretty(parse(document)), "VARCHAR"),
}
#: Functions that are called with NULL arguments.
OF_NULL: Final[Functions] = {"doc_key": (_key, "VARCHAR")}
