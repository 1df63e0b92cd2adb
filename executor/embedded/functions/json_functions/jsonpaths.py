"""Functions over SQL/JSON paths, as functions of the engine.

Owns: the functions ``doc_path_*``. Their arguments are a document, a path, its variables, whether errors are
suppressed, and the session's zone (empty if the result must not depend on it).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from catalog.values.errors import SqlError
from catalog.values.json_documents import canonical, parse
from catalog.values.jsonpath.datetimes import Moment
from catalog.values.jsonpath.errors import PathError
from catalog.values.jsonpath.evaluation import finds, found
from catalog.values.jsonpath.syntax import parse_path
from catalog.values.jsonpath.text import canonical_path
from executor.embedded.functions.batches import Functions


def _raised(error: PathError) -> SqlError:
    return SqlError(error.sqlstate, error.message, error.detail, error.hint)


def _items(document: str, path: str, variables: str, silent: bool, zone: str) -> Iterator[Any]:
    """The items up to the first error."""
    try:
        for item in found(parse_path(path), parse(document), parse(variables), zone):
            yield str(item) if isinstance(item, Moment) else item
    except PathError as error:
        if not silent:
            raise _raised(error) from None


def _exists(document: str, path: str, variables: str, silent: bool, zone: str) -> bool | None:
    """Whether a path finds an item. A lax path stops at the first item; NULL for a suppressed error."""
    try:
        return finds(parse_path(path), parse(document), parse(variables), zone)
    except PathError as error:
        if not silent:
            raise _raised(error) from None
        return None


def _match(document: str, path: str, variables: str, silent: bool, zone: str) -> bool | None:
    items = list(_items(document, path, variables, silent, zone))
    if len(items) == 1 and (items[0] is None or isinstance(items[0], bool)):
        return items[0]
    if not silent:
        raise SqlError("22038", "single boolean result is expected")
    return None


def _all(document: str, path: str, variables: str, silent: bool, zone: str) -> list[str]:
    return [canonical(item) for item in _items(document, path, variables, silent, zone)]


def _array(document: str, path: str, variables: str, silent: bool, zone: str) -> str:
    return canonical(list(_items(document, path, variables, silent, zone)))


def _first(document: str, path: str, variables: str, silent: bool, zone: str) -> str | None:
    return next(iter(_all(document, path, variables, silent, zone)), None)


FUNCTIONS: Final[Functions] = {
    "doc_jsonpath": (canonical_path, "VARCHAR"),
    "doc_path_exists": (_exists, "BOOLEAN"),
    "doc_path_match": (_match, "BOOLEAN"),
    "doc_path_all": (_all, "VARCHAR[]"),
    "doc_path_array": (_array, "VARCHAR"),
    "doc_path_first": (_first, "VARCHAR"),
}
