"""Which files of a foreign table a query needs, by its filters on partition columns.

Owns: what a plan reads of a foreign table (``FileReading``) and the choice of its files. A file is read if, for some
scan of the table, the filter's parts over partition columns are true of the file's own values. The embedded engine
evaluates the parts, so that they mean what they mean in the query. Row groups within files are left to the engines.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError
from catalog.values.types import INT4
from executor.files.followed_folders import OwnFiles
from executor.printing.nodes import leaf_name
from planner.algebra.construction import SUBQUERIES, Fresh, conjunction, conjuncts, volatility
from planner.algebra.nodes import ColumnRef, Filter, Project, Relation, Scan
from planner.algebra.walk import RELATIONS, Node, children, used_columns, walk

_PLACE: Final = "__place"

#: Evaluates a relation over one bound table.
Evaluate = Callable[[Relation, str, pa.Table], pa.Table]


class FileReading(Struct, frozen=True):
    """All columns that a plan reads of a foreign table, and the filters directly above its scans; none where a scan
    has none.
    """

    scan: Scan
    filters: tuple[Filter, ...]


def filters_of(roots: Iterable[Node], oid: int) -> tuple[Filter, ...]:
    """The filters directly above the scans of one relation; none where some scan has none."""
    found: list[Filter] = []
    for root in roots:
        if isinstance(root, Scan) and root.oid == oid:
            return ()
        for node in walk(root):
            for child in children(node):
                if isinstance(child, Scan) and child.oid == oid:
                    if not isinstance(node, Filter):
                        return ()
                    found.append(node)
    return tuple(found)


def needed(found: OwnFiles, reading: FileReading, evaluate: Evaluate) -> OwnFiles:
    """The files without those of which no scan needs a row."""
    if len(found.files) < 2 or not found.partitions or not reading.filters:
        return found
    tests = [_test(item, frozenset(found.partitions)) for item in reading.filters]
    if any(test is None for test in tests):
        return found
    places: set[int] = set()
    table = _values(found)
    for test in tests:
        assert test is not None
        try:
            places.update(evaluate(test[0], test[1], table).column(0).to_pylist())
        except SqlError:  # an error of the data is the query's own, if it has rows there
            return found
    kept = sorted(places)
    values = {name: tuple(texts[place] for place in kept) for name, texts in found.partitions.items()}
    return replace(found, files=tuple(found.files[place] for place in kept), partitions=values)


@lru_cache(maxsize=256)
def _test(item: Filter, names: frozenset[str]) -> tuple[Relation, str] | None:
    """What gives the places of files whose values let rows through, and its leaf's name; None: nothing is asked."""
    scan = item.input
    assert isinstance(scan, Scan)
    own = {column: name for column, name in zip(scan.columns, scan.sources, strict=True) if name in names}
    test = conjunction(part for part in conjuncts(item.predicate) if _is_test(part, own))
    if test is None:
        return None
    place = Fresh(item).column(_PLACE, INT4, nullable=False)
    leaf = Scan(scan.oid, scan.name, "view", (*own, place), (*own.values(), _PLACE))
    return Project(Filter(leaf, test), ((place, ColumnRef(place)),)), leaf_name(leaf)


def _is_test(part: Node, own: Collection[object]) -> bool:
    used = used_columns(part)
    if not used or not all(column in own for column in used) or volatility(part) == "volatile":
        return False
    return not any(isinstance(node, (*SUBQUERIES, *RELATIONS)) for node in walk(part))


def _values(found: OwnFiles) -> pa.Table:
    """The partition columns in their types, a row for each file, and its place."""
    kinds = {column.name: column.type.arrow for column in found.owner.columns}
    columns = {name: pa.array(texts, pa.string()).cast(kinds[name]) for name, texts in found.partitions.items()}
    return pa.table({**columns, _PLACE: pa.array(range(len(found.files)), pa.int32())})
