"""jsonb with changed parts: ||, -, #-, jsonb_set() and similar, and assignments to subscripts.

Owns: the part that a path reaches, and PostgreSQL's errors for a path that reaches none (setPath() in jsonfuncs.c).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from catalog.values.errors import SqlError
from catalog.values.json_documents import Number, canonical, parse
from executor.embedded.functions.batches import Functions, error, raised

_MISSING: Final = object()
_INDEX: Final = re.compile(r"\s*[+-]?[0-9]+")
#: The most elements of a jsonb array (JSONB_MAX_ELEMS).
_LARGEST: Final = 44739242


def _concat(left: str, right: str) -> str:
    a, b = parse(left), parse(right)
    if isinstance(a, dict) and isinstance(b, dict):
        return canonical({**a, **b})
    return canonical([*(a if isinstance(a, list) else [a]), *(b if isinstance(b, list) else [b])])


def _remove(document: str, keys: Sequence[str | None]) -> str:
    value = parse(document)
    if isinstance(value, dict):
        return canonical({key: item for key, item in value.items() if key not in keys})
    if not isinstance(value, list):
        raise error("22023", "cannot delete from scalar")
    return canonical(
        [item for item in value if isinstance(item, Number) or not (isinstance(item, str) and item in keys)]
    )


def _remove_at(document: str, index: int) -> str:
    value = parse(document)
    if not isinstance(value, list):
        what = "object using integer index" if isinstance(value, dict) else "scalar"
        raise error("22023", f"cannot delete from {what}")
    if -len(value) <= index < len(value):
        del value[index]
    return canonical(value)


def _remove_path(document: str, path: Sequence[str | None]) -> str:
    value = parse(document)
    if not isinstance(value, dict | list):
        raise error("22023", "cannot delete path in scalar")
    if not value:
        return document
    steps = _steps(path)
    holder, place = _reach(value, steps)
    if isinstance(holder, dict):
        holder.pop(place, None)
    elif isinstance(holder, list) and -len(holder) <= place < len(holder):
        del holder[place]
    return canonical(value)


def _set(document: str, path: Sequence[str | None], new: str, create: bool) -> str:
    value = parse(document)
    if not isinstance(value, dict | list):
        raise error("22023", "cannot set path in scalar")
    if not value and not create:
        return document
    holder, place = _reach(value, _steps(path))
    if isinstance(holder, dict):
        if place in holder or create:
            holder[place] = parse(new)
    elif isinstance(holder, list):
        if -len(holder) <= place < len(holder):
            holder[place] = parse(new)
        elif create:
            holder.insert(0 if place < 0 else len(holder), parse(new))
    return canonical(value)


_TREATMENTS: Final = '"delete_key", "return_target", "use_json_null", or "raise_exception"'
_RAISED: Final = (
    'Exception was raised because null_value_treatment is "raise_exception".',
    "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
)


def _set_lax(
    document: str | None, path: Sequence[str | None] | None, new: str | None, create: bool | None, of_null: str | None
) -> str | None:
    """jsonb_set() with a treatment of NULL as the new value (jsonb_set_lax())."""
    if document is None or path is None or create is None:
        return None
    if of_null is not None and new is not None:
        return _set(document, path, new, create)
    match of_null:
        case "use_json_null":
            return _set(document, path, "null", create)
        case "delete_key":
            return _remove_path(document, path)
        case "return_target":
            return document
        case "raise_exception":
            raise raised(SqlError("22004", "JSON value must not be null", detail=_RAISED[0], hint=_RAISED[1]))
    raise error("22023", f"null_value_treatment must be {_TREATMENTS}")


def _assign(document: str | None, path: Sequence[str | None], new: str | None, is_list: bool) -> str:
    """document[path] = new (jsonb_subscript_assign()): missing parts are created, arrays are extended with null."""
    if None in path:
        raise error("22004", "jsonb subscript in assignment must not be null")
    steps = _steps(path)
    value = parse(document) if document is not None else [] if is_list else {}
    return canonical(_with(value, steps, 0, None if new is None else parse(new)))


def _with(value: Any, steps: list[str], level: int, new: Any) -> Any:
    """A value with a new part at the remaining steps of the path. Raises 22023 and 22P02."""
    if level == len(steps):
        return new
    if isinstance(value, dict):
        inner = value.get(steps[level], _MISSING)
        value[steps[level]] = (
            _made(steps[level + 1 :], new) if inner is _MISSING else _with(inner, steps, level + 1, new)
        )
    elif isinstance(value, list):
        place = _place(value, steps[level], level + 1)
        if place < len(value):
            value[place] = _with(value[place], steps, level + 1, new)
        else:
            value += [*[None] * (place - len(value)), _made(steps[level + 1 :], new)]
    else:
        raise error("22023", "cannot replace existing key")
    return value


def _place(items: list[Any], step: str, position: int) -> int:
    if not _INDEX.fullmatch(step):
        raise error("22P02", f'path element at position {position} is not an integer: "{step}"')
    if int(step) < -len(items):
        raise error("22023", f"path element at position {position} is out of range: {int(step)}")
    if int(step) > _LARGEST:
        raise error("54000", f"number of jsonb array elements exceeds the maximum allowed ({_LARGEST})")
    return int(step) if int(step) >= 0 else len(items) + int(step)


def _made(steps: list[str], new: Any) -> Any:
    """The value within new arrays for integer steps, and new objects for other steps."""
    for step in reversed(steps):
        new = [*[None] * int(step), new] if _INDEX.fullmatch(step) else {step: new}
    return new


def _insert(document: str, path: Sequence[str | None], new: str, after: bool) -> str:
    value = parse(document)
    if not isinstance(value, dict | list):
        raise error("22023", "cannot set path in scalar")
    holder, place = _reach(value, _steps(path))
    if isinstance(holder, dict):
        if place in holder:
            raise error("22023", "cannot replace existing key")
        holder[place] = parse(new)
    elif isinstance(holder, list):
        inside = -len(holder) <= place < len(holder)
        at = place % len(holder) + after if inside else 0 if place < 0 else len(holder)
        holder.insert(at, parse(new))
    return canonical(value)


def _steps(path: Sequence[str | None]) -> list[str]:
    for position, step in enumerate(path, 1):
        if step is None:
            raise error("22004", f"path element at position {position} is null")
    return [step for step in path if step is not None]


def _reach(value: Any, steps: list[str]) -> tuple[Any, Any]:
    """The container of the last step, and the step as its key or index; (None, None) if there is none."""
    for position, step in enumerate(steps, 1):
        place: Any = step
        if isinstance(value, list):
            if not _INDEX.fullmatch(step):
                raise error("22P02", f'path element at position {position} is not an integer: "{step}"')
            place = int(step)
        if position == len(steps):
            return value, place
        if isinstance(value, dict):
            value = value.get(place)
        elif isinstance(value, list):
            value = value[place] if -len(value) <= place < len(value) else None
    return None, None


FUNCTIONS: Final[Functions] = {
    "doc_concat": (_concat, "VARCHAR"),
    "doc_remove": (_remove, "VARCHAR"),
    "doc_remove_at": (_remove_at, "VARCHAR"),
    "doc_remove_path": (_remove_path, "VARCHAR"),
    "doc_set": (_set, "VARCHAR"),
    "doc_insert": (_insert, "VARCHAR"),
}
#: Functions that are called with NULL arguments.
OF_NULL: Final[Functions] = {"doc_assign": (_assign, "VARCHAR"), "doc_set_lax": (_set_lax, "VARCHAR")}
