"""Which types an access method can index, by PostgreSQL's own operator classes (pg_opclass).

Owns: whether a named operator class takes a type (ResolveOpClass()), the default class of a type (GetDefaultOpClass()),
and their errors.
https://www.postgresql.org/docs/15/indexes-opclass.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from catalog.postgres import casts, rows, with_members
from catalog.values.errors import SqlError
from catalog.values.opaque import check_equality
from catalog.values.types import ARRAYS, MULTIRANGES, RANGES, RECORD_OID, SqlType
from planner.bind.conversion.resolution import ANYARRAY, ANYENUM, ANYMULTIRANGE, ANYRANGE, category, is_preferred
from planner.bind.lookup.type_names import display

_HINT: Final = "You must specify an operator class for the index or define a default operator class for the data type."


class _Class(Struct, frozen=True):
    """An operator class, and the oid of the type that it takes."""

    name: str
    kind: int
    is_default: bool


@cache
def _classes() -> Mapping[str, tuple[_Class, ...]]:
    """The operator classes by access method."""
    names = {row["oid"]: str(row["amname"]) for row in rows("pg_am")}
    found: dict[str, list[_Class]] = defaultdict(list)
    for row in with_members("pg_opclass"):
        item = _Class(str(row["opcname"]), int(str(row["opcintype"])), row["opcdefault"] == "t")
        found[names[row["opcmethod"]]].append(item)
    return {name: tuple(classes) for name, classes in found.items()}


def check_indexed(kind: SqlType, method: str, named: tuple[str, ...] = ()) -> None:
    """Raises 42704 for a type that no index of a method is of, or for an unknown operator class, 42804 for a class of
    other types, and 0A000 where equal values are not equal texts. ``named``: the class, where one is written.
    """
    if named:
        _check_named(kind, method, named)
    elif not _is_indexed(kind, method):
        words = f'has no default operator class for access method "{method}"'
        raise SqlError("42704", f"data type {display(kind)} {words}", hint=_HINT)
    if method in ("btree", "hash") and kind.element is None and kind.row is None:
        check_equality(kind)


def _check_named(kind: SqlType, method: str, named: tuple[str, ...]) -> None:
    *schema, name = named
    found = [item.kind for item in _classes()[method] if item.name == name and schema in ([], ["pg_catalog"])]
    if not found:
        words = f'operator class "{".".join(named)}" does not exist for access method "{method}"'
        raise SqlError("42704", words)
    if found[0] not in (kind.oid, *_wider(kind)):
        raise SqlError("42804", f'operator class "{".".join(named)}" does not accept data type {display(kind)}')


def _is_indexed(kind: SqlType, method: str) -> bool:
    classes = [item.kind for item in _classes()[method] if item.is_default]
    if kind.oid in classes:
        return True
    fitting = [oid for oid in classes if oid in _wider(kind)]
    preferred = [oid for oid in fitting if category(oid) == kind.category and is_preferred(oid)]
    return len(preferred or fitting) == 1


def _wider(kind: SqlType) -> frozenset[int]:
    """The types that a value of a type is without being changed (IsBinaryCoercible())."""
    pseudo = (
        (ANYARRAY, kind.name in ARRAYS or kind.element is not None),
        (ANYENUM, kind.enum is not None),
        (ANYRANGE, kind.name in RANGES),
        (ANYMULTIRANGE, kind.name in MULTIRANGES),
        (RECORD_OID, kind.row is not None),
    )
    relabelled = (
        target
        for (source, target), cast in casts().items()
        if source == kind.oid and cast.method == "b" and cast.context == "i"
    )
    return frozenset((*(oid for oid, holds in pseudo if holds), *relabelled))
