"""Which types an access method indexes, by PostgreSQL's own operator classes (pg_opclass).

Owns: the search for a type's default one (GetDefaultOpClass()), and its error.
https://www.postgresql.org/docs/15/indexes-opclass.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Final

from catalog.errors import SqlError
from catalog.opaque import check_equality
from catalog.postgres import casts, rows
from catalog.types import ARRAYS, MULTIRANGES, RANGES, RECORD_OID, SqlType
from planner.bind.calls.resolution import ANYARRAY, ANYENUM, ANYMULTIRANGE, ANYRANGE, category, is_preferred
from planner.bind.types import display

_HINT: Final = "You must specify an operator class for the index or define a default operator class for the data type."


@cache
def _defaults() -> Mapping[str, tuple[int, ...]]:
    """The types of the default operator classes, by access method."""
    names = {row["oid"]: str(row["amname"]) for row in rows("pg_am")}
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows("pg_opclass"):
        if row["opcdefault"] == "t":
            found[names[row["opcmethod"]]].append(int(str(row["opcintype"])))
    return {name: tuple(kinds) for name, kinds in found.items()}


def check_indexed(kind: SqlType, method: str) -> None:
    """Raises 42704 for a type that no index of a method is of, and 0A000 where equal values are not equal texts."""
    if not _is_indexed(kind, method):
        words = f'has no default operator class for access method "{method}"'
        raise SqlError("42704", f"data type {display(kind)} {words}", hint=_HINT)
    if method in ("btree", "hash") and kind.element is None and kind.row is None:
        check_equality(kind)


def _is_indexed(kind: SqlType, method: str) -> bool:
    classes = _defaults()[method]
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
