"""WITH RECURSIVE: the rounds of a recursion go on from the rows that changed (semi-naive evaluation: Bancilhon and
Ramakrishnan), and what is taken away takes along what rests on it alone.

With B the base, I what the step S reads beside the recursion's own rows, and each row r of F with a rank::

    F = B + S(F, I)                         S is linear in F:  S(F + dF, I) = S(F, I) + S(dF, I)
    D = dB + S(F, dI)                       what changes in the first round, by the rows as they were
    D = S(D, I')                            in each later one, until nothing does

UNION ALL: a row's rank is its round, and rows of different rounds count apart. So what D takes away and adds of one
round meets, and dF is the sum of all D. (Counts without rounds do not tell a cycle that holds itself from one that the
base reaches.)

UNION: a row's rank is greater than that of one row at least from which it comes, unless it is in the base, so that
every row rests on the base. Each row has two counts: of all its derivations, from B and from rows of F, and of those
from B and from rows with a lower rank, which are no cycles (Gupta, Mumick and Subrahmanian count derivations where
there is no recursion, Motik et al. those that do not go through one)::

    gone    rows whose lower derivations are 0 now; D = -S(gone) takes from the counts of others, which may go, too
    come    rows outside of F with derivations, also those that were gone: they get a rank above all others, so that
            all of their derivations are lower ones; D = S(come)

The ranks, and the counts of derivations from rows of lower ranks, are Millstream's own; these papers do not have them.

All of it goes forward by the delta propagation of the step's region (``propagation``), over rows with their ranks.

Guard: the recursion's own rows go through filters, projections, inner joins, and the left sides of joins that keep it,
alone; nothing in it depends on a row beside the recursion. Without ALL, equal values of its columns have equal
representations, or are arrays of such, and rows are found by one column at least.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import INT8, SqlType
from planner.algebra.nodes import (
    Call,
    Column,
    ColumnRef,
    Filter,
    Fixpoint,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Snapshot,
    Unnest,
    Window,
    WindowCall,
    Working,
)
from planner.algebra.walk import find, free_columns, inputs, kinds_of, transform
from planner.incremental.dataflow.building import Building, NotMaintained, with_columns
from planner.incremental.dataflow.graph import (
    Operator,
    Propagated,
    Ranked,
    Recursive,
    Shared,
    candidates_trace,
    leaf,
    names_of,
    rows_trace,
)
from planner.incremental.dataflow.keyable import is_keyable

_RECURSIONS: Final = kinds_of(Fixpoint, Working)
_FIXPOINTS: Final = kinds_of(Fixpoint)
_WORKING: Final = kinds_of(Working)
#: How operators are written through which a recursion's own rows do not go.
_WRITTEN: Final[Mapping[type, str]] = {Limit: "LIMIT", Window: "a window function", SetOperation: "a set operation"}

#: Makes nodes of what a relation consists of; what stands for it is a region. Raises NotMaintained.
Opened = Callable[[Relation], Relation]
#: Makes a node of a region.
Closed = Callable[[Relation], Snapshot]


def recursive(building: Building, node: Fixpoint, opened: Opened, closed: Closed) -> Relation:
    """What stands for a recursion's rows. Raises NotMaintained."""
    working = [item for item in find(node.step, _WORKING) if item.name == node.name]
    if not working:
        return opened(SetOperation("union", node.all, node.base, node.step, node.columns))
    _require_own_rows(node)
    if len(working) > 1:
        raise NotMaintained("the step of WITH RECURSIVE reads its rows more than once")
    base = closed(opened(node.base))
    ranked = _ranked_rows(building, node, working[0])
    rank = ranked.columns[-1]
    step = opened(_with_rank(node.step, working[0], ranked, rank))
    result = building.node(closed(with_columns(step, (*node.step.columns, rank))))
    _require_types(node, base.columns, building.leaf(result).columns)
    own, read = _within(building, building.node(ranked), result)
    rows = building.nodes[building.node(ranked)]
    assert isinstance(rows, Ranked)
    keyable = [column for column in rows.columns[:-1] if is_keyable(column.type)]
    if not node.all and not keyable:
        raise NotMaintained("WITH RECURSIVE without ALL has no column by which rows are found")
    place, first = (building.fresh.column(name, INT8, False) for name in ("place", "first"))
    return building.add(
        Recursive(
            building.next_id(),
            node.columns,
            _named_alike(node),
            node.all,
            building.node(base),
            base,
            _all_rows(building, node, base, rows, building.opened(building.leaf(result), {item.id for item in own})),
            rows,
            own,
            (building.node(base), *read),
            names_of(keyable),
            len(keyable) == len(node.columns) and not any(map(_is_inexact, keyable)),
            _alike(building, rows, place, first),
            place,
            first,
        )
    )


def _require_own_rows(node: Fixpoint) -> None:
    if free_columns(node):
        raise NotMaintained("WITH RECURSIVE is computed for each row beside it")
    own = {item.name for item in find(node, _FIXPOINTS)}
    if any(item.name not in own for item in find(node, _WORKING)):
        raise NotMaintained("WITH RECURSIVE stands in the step of another one and reads its rows")
    if not node.all:
        for column in node.columns:
            if not _is_compared(column.type):
                raise NotMaintained(f"WITH RECURSIVE without ALL compares values of type {column.type}")


def _is_compared(kind: SqlType) -> bool:
    """Whether equal values of a type are told by their representations, or those of their elements."""
    return is_keyable(kind) if kind.element is None else _is_compared(kind.element)


def _is_inexact(column: Column) -> bool:
    """Whether values of different bits may be equal: zeros of both signs."""
    return column.type.name in ("float4", "float8")


def _require_types(node: Fixpoint, *sides: tuple[Column, ...]) -> None:
    """The rows of both terms are rows of the recursion as they are."""
    for side in sides:
        if any(own.type.arrow != other.type.arrow for own, other in zip(node.columns, side, strict=False)):
            raise NotMaintained("the terms of WITH RECURSIVE have columns of different types")


# -- the step ---------------------------------------------------------------------------------------------------------


def _ranked_rows(building: Building, node: Fixpoint, working: Working) -> Snapshot:
    """The leaf for the recursion's rows in its step, with their ranks."""
    known = dict(zip(working.sources, working.columns, strict=True))
    columns = tuple(known.get(column) or building.fresh.copy(column) for column in node.columns)
    columns = (*columns, building.fresh.column("rank", INT8, False))
    number = building.next_id()
    return building.add(Ranked(number, columns, leaf(rows_trace(building.scope, number), columns)))


def _with_rank(step: Relation, working: Working, ranked: Snapshot, rank: Column) -> Relation:
    """The step with another leaf for the recursion's own rows, whose ranks it passes on."""
    found: Relation = ranked
    for operator, below in reversed(_path(step, working)):
        match operator:
            case Filter() | Unnest():
                found = replace(operator, input=found)
            case Project():
                found = replace(operator, input=found, outputs=(*operator.outputs, (rank, ColumnRef(rank))))
            case Join(kind="inner") if operator.right is below:
                found = replace(operator, right=found)
            case Join(kind="inner" | "left" | "semi" | "anti") if operator.left is below:
                found = replace(operator, left=found)
            case _:
                written = _WRITTEN.get(type(operator), "a grouping, DISTINCT or a join")
                raise NotMaintained(f"the own rows of WITH RECURSIVE go through {written} in its step")
    return found


def _path(root: Relation, wanted: Relation) -> list[tuple[Relation, Relation]]:
    """Operators from the root down to a relation, each with its input on the way. Raises NotMaintained."""
    stack: list[tuple[Relation, list[tuple[Relation, Relation]]]] = [(root, [])]
    while stack:
        node, above = stack.pop()
        if node is wanted:
            return above
        stack.extend((below, [*above, (node, below)]) for below in inputs(node))
    raise NotMaintained("a subquery reads the own rows of WITH RECURSIVE")


def _within(building: Building, ranked: int, result: int) -> tuple[tuple[Operator, ...], tuple[int, ...]]:
    """The nodes from the ranked rows to the step's, and those that they read beside. Raises NotMaintained."""
    depends = {ranked}
    for node in building.nodes[ranked + 1 : result + 1]:
        if isinstance(node, Operator) and not depends.isdisjoint(node.inputs):
            depends.add(node.id)
    wanted, found, read = {result}, list[Operator](), dict[int, None]()
    for node in reversed(building.nodes[ranked + 1 : result + 1]):
        if node.id not in wanted or not isinstance(node, Operator):
            continue
        if isinstance(node, Propagated):
            if any(term.node in depends and term.own_key is not None for term in node.terms):
                raise NotMaintained("the own rows of WITH RECURSIVE may be missing in a join of its step")
        elif not isinstance(node, Shared):
            raise NotMaintained("the own rows of WITH RECURSIVE go through more than joins and filters in its step")
        found.append(node)
        wanted.update(depends.intersection(node.inputs))
        read.update((below, None) for below in node.inputs if below not in depends)
    return tuple(reversed(found)), tuple(read)


def _all_rows(building: Building, node: Fixpoint, base: Snapshot, rows: Ranked, step: Relation) -> Fixpoint:
    """What makes all rows, for UNION ALL with their ranks, of those of the base and by the step over ranked rows."""
    fresh = building.fresh
    *own, rank = rows.columns
    given, columns = (tuple(map(fresh.copy, rows.columns if node.all else own)) for _ in range(2))
    below = tuple((column, ColumnRef(known)) for column, known in zip(own, given, strict=False))
    start: Scalar = Literal(0, INT8)
    working = Project(Working(node.name, given, columns), (*below, (rank, ColumnRef(given[-1]) if node.all else start)))
    trace = rows_trace(building.scope, rows.id)
    step = transform(step, lambda item: working if isinstance(item, Snapshot) and item.trace == trace else item)
    terms = [
        list[tuple[Column, Scalar]]((fresh.copy(column), ColumnRef(column)) for column in side.columns[: len(own)])
        for side in (base, step)
    ]
    if node.all:
        later = Call("add", (ColumnRef(step.columns[-1]), Literal(1, INT8)), INT8)
        for term, value in zip(terms, (start, later), strict=True):
            term.append((fresh.copy(rank), value))
    return Fixpoint(node.name, node.all, Project(base, tuple(terms[0])), Project(step, tuple(terms[1])), columns)


# -- equal rows and recursions ----------------------------------------------------------------------------------------


def _alike(building: Building, rows: Ranked, place: Column, first: Column) -> Relation:
    """For the place of each row that of the first equal one."""
    columns = rows.columns[:-1]
    given = leaf(candidates_trace(building.scope, building.next_id()), (*columns, place))
    call = WindowCall("min", (ColumnRef(place),), INT8, tuple(map(ColumnRef, columns)))
    outputs = tuple((column, ColumnRef(column)) for column in (place, first))
    return Project(Window(given, ((first, call),)), outputs)


def _named_alike(node: Fixpoint) -> Fixpoint:
    """The recursion with the name that all equal ones have."""
    names: dict[str, str] = {}

    def change(item: Any) -> Any:
        if isinstance(item, Fixpoint | Working):
            return replace(item, name=names.setdefault(item.name, f"recursive_{len(names)}"))
        return item

    found: Fixpoint = transform(node, change, _RECURSIONS)
    return found
