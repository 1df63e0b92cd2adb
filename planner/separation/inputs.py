"""What the rest of a query reads of tables and views, apart from it: the rows that leave with the query.

Owns: which parts of a plan are inputs (scans with the filters and projections that belong to each alone), and which of
them become one, since they read the same relation:

    Join                                       Join
      Project a, Filter b > 1, Scan t(a, b)      Project a, Filter b > 1, Snapshot i3(a, b)      i3: Scan t(a, b, c)
      Scan t(a, c)                               Snapshot i3(a, c)

Several are read as one where that is less by a guess: a filter lets half of the rows through, and columns are equally
wide. What is computed again where the query goes on is the same there (immutable), or the inputs stay apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT4
from planner.algebra.construction import Fresh, conjunction, rename_columns, volatility
from planner.algebra.nodes import PART, ROW_ID, Call, Column, Filter, Project, Relation, Scalar, Scan, Snapshot
from planner.algebra.nodes import Literal as Constant
from planner.algebra.walk import RELATIONS, descend, free_columns, walk
from planner.incremental.names import Names, stored_name
from planner.separation.cuts import below_chain, taken_names

#: The share of rows that a filter lets through, about.
_LET_THROUGH: Final = 0.5

#: Names of runs with what is in them.
Inputs = tuple[tuple[str, Relation], ...]


def inputs_apart(relation: Relation, stay: Collection[str] = ()) -> tuple[Relation, Inputs]:
    """A plan over snapshots of what it reads of tables and views, or of a part of a result, and these; the snapshots
    that ``stay`` are read as they are."""
    names, fresh = Names(), Fresh(relation)
    for taken in taken_names(relation):
        names.unique(taken)
    found: dict[str, Relation] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, RELATIONS) or not _is_input(node, stay):
            return node
        name = names.unique(f"i{len(found) + 1}")
        found[name] = node
        return _read(name, node.columns)

    apart: Relation = descend(relation, change)
    places: dict[str, Relation] = {}
    for parts in _shared(found):
        name = names.unique(f"i{len(found) + 1}")
        one = _Together(parts, fresh)
        places |= {part: one.read_as(name, found[part]) for part in parts}
        found = {part: rows for part, rows in found.items() if part not in parts} | {name: one.relation}
    if places:
        apart = descend(apart, lambda node: places.get(node.trace, node) if isinstance(node, Snapshot) else node)
    return apart, tuple((name, _with_a_column(rows, fresh)) for name, rows in found.items())


def _read(name: str, columns: Sequence[Column]) -> Snapshot:
    return Snapshot(name, tuple(columns), tuple(map(stored_name, columns)))


def _with_a_column(relation: Relation, fresh: Fresh) -> Relation:
    """No file holds rows without columns."""
    return relation if relation.columns else Project(relation, ((fresh.column("none", INT4), Constant(1, INT4)),))


def _is_input(relation: Relation, stay: Collection[str]) -> bool:
    leaf = below_chain(relation)
    is_part = isinstance(leaf, Snapshot) and _is_sliced(leaf) and leaf.trace not in stay
    if not isinstance(leaf, Scan) and not is_part:
        return False
    nested = sum(isinstance(item, RELATIONS) for item in walk(relation)) > len(_chain(relation))
    return not nested and volatility(relation) != "volatile" and not free_columns(relation)


def _is_sliced(leaf: Scan | Snapshot) -> bool:
    return ROW_ID in leaf.sources or PART in leaf.sources


def _chain(relation: Relation) -> list[Relation]:
    """Filters and projections, from the top, and what they stand on."""
    found = [relation]
    while isinstance(relation, Filter | Project):
        relation = relation.input
        found.append(relation)
    return found


# -- several as one ----------------------------------------------------------------------------------------------------


def _shared(found: dict[str, Relation]) -> list[dict[str, Relation]]:
    """Inputs that are read as one, by name."""
    groups: dict[tuple[str, int, str], list[dict[str, Relation]]] = {}
    for name, relation in found.items():
        leaf = below_chain(relation)
        if isinstance(leaf, Scan) and _may_be_together(leaf) and volatility(relation) == "immutable":
            groups.setdefault((leaf.kind, leaf.oid, leaf.name), []).append({name: relation})
    return [parts for group in groups.values() for parts in _gathered(group) if len(parts) > 1]


def _may_be_together(leaf: Scan) -> bool:
    """Whether its rows may be read with those of other scans: parts of it are known by its own numbers only."""
    return bool(leaf.columns) and PART not in leaf.sources


def _gathered(group: list[dict[str, Relation]]) -> list[dict[str, Relation]]:
    """The parts of one relation that are read together, gathered as long as that makes them less."""
    while True:
        for left, right in combinations(group, 2):
            both = left | right
            if _size(both) <= _size(left) + _size(right):
                group = [*(parts for parts in group if parts is not left and parts is not right), both]
                break
        else:
            return group


def _size(parts: dict[str, Relation]) -> float:
    """About how much is read: the share of rows, times the columns."""
    if len(parts) == 1:
        ((_, relation),) = parts.items()
        is_filtered = any(isinstance(node, Filter) for node in _chain(relation))
        return (_LET_THROUGH if is_filtered else 1.0) * max(1, len(relation.columns))
    one = _Together(parts, Fresh(*parts.values()))
    return min(1.0, _LET_THROUGH * len(one.tests) if one.tests else 1.0) * len(one.relation.columns)


@dataclass(slots=True, init=False)
class _Together:
    """Inputs of one relation as one; ``tests`` are their filters, none where one of them has none."""

    relation: Relation
    tests: tuple[Scalar, ...]
    _columns: dict[str, Column]

    def __init__(self, parts: dict[str, Relation], fresh: Fresh) -> None:
        scans = [leaf for part in parts.values() if isinstance(leaf := below_chain(part), Scan)]
        kinds = {source: column for scan in scans for source, column in zip(scan.sources, scan.columns, strict=True)}
        self._columns = {source: fresh.copy(column) for source, column in kinds.items()}
        tests = [self._test(part) for part in parts.values()]
        self.tests = () if None in tests else tuple(dict.fromkeys(test for test in tests if test is not None))
        scan = replace(scans[0], columns=tuple(self._columns.values()), sources=tuple(self._columns))
        self.relation = Filter(scan, _any(self.tests)) if self.tests else scan

    def _test(self, part: Relation) -> Scalar | None:
        """The filters directly above a part's scan, over the columns of the whole."""
        *above, scan = _chain(part)
        assert isinstance(scan, Scan)
        direct: list[Filter] = []
        for node in reversed(above):
            if not isinstance(node, Filter):
                break
            direct.append(node)
        test = conjunction(node.predicate for node in direct)
        if test is None:
            return None
        mapping = {column: self._columns[source] for column, source in zip(scan.columns, scan.sources, strict=True)}
        renamed: Scalar = rename_columns(test, mapping)
        return renamed

    def read_as(self, name: str, part: Relation) -> Relation:
        """A part, over the whole in a run."""
        *above, scan = _chain(part)
        assert isinstance(scan, Scan)
        made: Relation = Snapshot(name, scan.columns, tuple(stored_name(self._columns[item]) for item in scan.sources))
        for node in reversed(above):
            assert isinstance(node, Filter | Project)
            made = replace(node, input=made)
        return made


def _any(tests: Iterable[Scalar]) -> Scalar:
    items = tuple(tests)
    return items[0] if len(items) == 1 else Call("or", items, BOOL)
