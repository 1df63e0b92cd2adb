"""Plans cut at pipeline breakers, and what of their results is the state of a query that runs so (thesis, chapter 6).

Owns: where a plan may be cut (``places``), the pipelines that cuts make of it (``cut``), which finished ones are state
(``select_state``, algorithm 6.5), and the plan that goes on from there (``remaining``, algorithm 6.6).

    Sort                          result     reads p2                 finished: p1        remaining
      Filter(Aggregate)           p2         reads p1                                       Sort
        Join                                                                                  Filter(Aggregate)
          Scan lineitem                                                                         Join
          Join                    p1         build: the child                                     Scan lineitem
            Scan orders                      of the join                                          Snapshot p1
            Scan customer

A result is kept behind the filters and projections that follow its breaker, where it has the fewest rows; a breaker
that only they separate from the query's result is not cut off. Where ORDER BY and LIMIT end the query the rows that
they choose are kept, and ordered once more (``with_order_above``): so an engine still holds no more rows than these.
Knows no engine, and not what a cut costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import volatility
from planner.algebra.identity import NodeMap, NodeSet, replaced
from planner.algebra.nodes import (
    Aggregate,
    Filter,
    Fixpoint,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    Values,
    Window,
    With,
    Working,
)
from planner.algebra.walk import RELATIONS, Node, children, descend, free_columns, walk
from planner.incremental.names import Names, stored_name

#: What ends a pipeline: ``build`` is the side of a join, or a subquery, that others are looked up in, the thesis'
#: index-optimised operator, of which only this child is replaced; ``shared`` a WITH query; ``rows`` what a query only
#: orders (``planner/separation/slicing``); ``result`` the last one, which nothing ends.
Breaker = Literal["group", "window", "set operation", "recursion", "build", "shared", "rows", "result"]
#: Estimates of a relation's rows.
Rows = Callable[[Relation], float]
_RESULT: Final = "result"


class Place(Struct, frozen=True):
    """A relation of a plan whose rows may be kept, and the breaker that gathers them."""

    breaker: Breaker
    relation: Relation
    name: str = ""  # of a shared one
    probe: Relation | None = None  # what is looked up in it, where it is a join's build


class Pipeline(Struct, frozen=True):
    """What runs as one: ``relation`` over the results of those that it ``reads`` directly (definition 5), which stands
    for ``place`` in the whole plan."""

    name: str
    breaker: Breaker
    place: Relation
    relation: Relation
    reads: tuple[str, ...]

    @property
    def result(self) -> Snapshot:
        """What reads its rows."""
        columns = self.place.columns
        return Snapshot(self.name, columns, tuple(map(stored_name, columns)))


class Pipelined(Struct, frozen=True):
    """A plan and its pipelines in an order in which they may run; the last one's rows are the plan's."""

    whole: Relation
    pipelines: tuple[Pipeline, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The pipelines'."""
        return tuple(item.name for item in self.pipelines)


# -- where -------------------------------------------------------------------------------------------------------------


def places(whole: Relation, rows: Rows | None = None) -> list[Place]:
    """Where a plan may be cut, builds before what is looked up in them. Of an inner join the side with fewer estimated
    ``rows`` is the build side; without estimates, and of other joins, the right one."""
    shared = dict(_definitions(whole))
    names = NodeMap((relation, name) for name, relation in shared.items())
    chosen_from = NodeSet(first.input for node in walk(whole) if (first := _first_rows(node)) is not None)
    found = []
    for parent, node in _visited(whole, rows):
        if node in names and isinstance(parent, With):
            found.append(Place("shared", node, names[node]))
            continue
        breaker = None if node in chosen_from else _breaker(parent, node, rows)
        if breaker is not None and is_closed(node):
            found.append(Place(breaker, node, probe=_beside(parent, node) if breaker == "build" else None))
    return found


def _beside(parent: Node | None, node: Relation) -> Relation | None:
    """The other side of a join."""
    return (parent.left if node is parent.right else parent.right) if isinstance(parent, Join) else None


def _definitions(whole: Relation) -> tuple[tuple[str, Relation], ...]:
    return whole.definitions if isinstance(whole, With) else ()


def _visited(root: Relation, rows: Rows | None) -> Iterator[tuple[Node | None, Any]]:
    """All nodes with what is above them, children first."""
    stack: list[tuple[Node | None, Any, bool]] = [(None, root, False)]
    while stack:
        parent, node, done = stack.pop()
        if done:
            yield parent, node
            continue
        stack.append((parent, node, True))
        below = children(node)
        if isinstance(node, Join):
            build = _build_side(node, rows)
            below.sort(key=lambda child: child is not build)
        stack.extend((node, child, False) for child in reversed(below))


def _breaker(parent: Node | None, node: Any, rows: Rows | None) -> Breaker | None:
    """What gathers a relation's rows where it stands; None where nothing does, or what is above belongs to it."""
    if not isinstance(node, RELATIONS) or parent is None:
        return None
    nested = isinstance(parent, Filter | Project) and node is not parent.input
    if isinstance(parent, With | Filter | Project) and not nested:
        return None
    first = _first_rows(parent)
    match below_chain(node if first is None else first.input):
        case Aggregate():
            return "group"
        case Window():
            return "window"
        case SetOperation(kind=kind, all=every) if kind != "union" or not every:
            return "set operation"
        case Fixpoint():
            return "recursion"
        case Values() | Snapshot() | Working():
            return None
        case _:
            is_build = (
                node is _build_side(parent, rows)
                if isinstance(parent, Join)
                else nested or not isinstance(parent, RELATIONS)
            )
            return "build" if is_build else None


def with_order_above(whole: Relation) -> Relation:
    """ORDER BY ... LIMIT at a query's end, and the same order once more above it: so what is below may lose it."""
    match whole:
        case With(body=body):
            return replace(whole, body=with_order_above(body))
        case Project(input=below):
            return replace(whole, input=with_order_above(below))
        case Limit(input=Sort(keys=keys)) if is_closed(whole):
            return Sort(whole, keys)
        case _:
            return whole


def _first_rows(node: Any) -> Sort | None:
    """The order of which only the first rows are ordered again."""
    match node:
        case Sort(input=Limit(input=Sort() as first)):
            return first
        case _:
            return None


def below_chain(relation: Relation) -> Relation:
    """What filters and projections stand on."""
    while isinstance(relation, Filter | Project):
        relation = relation.input
    return relation


def _build_side(node: Join, rows: Rows | None) -> Relation:
    if node.kind == "inner" and rows is not None and rows(node.left) < rows(node.right):
        return node.left
    return node.left if node.kind == "right" else node.right


def is_bare(relation: Relation) -> bool:
    """Whether a relation only filters and projects the rows of a leaf: to read it again costs what it has cost."""
    return isinstance(below_chain(relation), Scan | Snapshot | Values)


def is_closed(relation: Relation) -> bool:
    """Whether a relation has the same rows wherever in its statement, and however often, it is computed."""
    nodes = list(walk(relation))
    own = {item.name for item in nodes if isinstance(item, Fixpoint)}
    rounds = {item.name for item in nodes if isinstance(item, Working)}
    if not relation.columns or not rounds <= own:
        return False
    return volatility(relation) != "volatile" and not free_columns(relation)


# -- cutting -----------------------------------------------------------------------------------------------------------


def cut(
    whole: Relation, wanted: Callable[[Place], bool], rows: Rows | None = None, last: Relation | None = None
) -> Pipelined:
    """The pipelines of a plan that is cut at the ``wanted`` of its places, and at its WITH queries where at any; the
    ``last`` place is a part of the plan of which the rest only orders the rows."""
    found = places(whole, rows)
    chosen = [item for item in found if item.breaker == "shared" or wanted(item)]
    chosen += [] if last is None else [Place("rows", last)]
    names = Names()
    for taken in taken_names(whole):
        names.unique(taken)
    results = NodeMap[Snapshot]()
    made = [_pipeline(item, item.name or names.unique(f"p{at}"), results) for at, item in enumerate(chosen, 1)]
    body = whole.body if isinstance(whole, With) else whole
    result = _pipeline(Place("result", body), names.unique(_RESULT), results)
    known = {item.name for item in made}
    pipelines = (_reading(item, known) for item in (*made, result))
    return Pipelined(whole, tuple(pipelines))


def taken_names(whole: Relation) -> set[str]:
    """Names that snapshots of a plan have already."""
    return {item.trace for item in walk(whole) if isinstance(item, Snapshot)} | dict(_definitions(whole)).keys()


def _pipeline(place: Place, name: str, results: NodeMap[Snapshot]) -> Pipeline:
    """The pipeline of a place, whose result those to come will read."""
    relation: Relation = descend(place.relation, lambda node: replaced(results, node))
    made = Pipeline(name, place.breaker, place.relation, relation, ())
    if place.breaker != "shared":  # which is read by snapshots of its own already
        results[place.relation] = made.result
    return made


def _reading(pipeline: Pipeline, known: Collection[str]) -> Pipeline:
    return Pipeline(pipeline.name, pipeline.breaker, pipeline.place, pipeline.relation, _read(pipeline.relation, known))


def _read(relation: Relation, known: Collection[str]) -> tuple[str, ...]:
    """Which of these results a relation reads, in the order in which it names them."""
    traces = (item.trace for item in walk(relation) if isinstance(item, Snapshot))
    return tuple(dict.fromkeys(trace for trace in traces if trace in known))


# -- state -------------------------------------------------------------------------------------------------------------


def select_state(pipelines: Collection[Pipeline], finished: Collection[str]) -> tuple[str, ...]:
    """The finished pipelines that an unfinished one reads directly (algorithm 6.5, definition 2)."""
    wanted = {name for item in pipelines if item.name not in finished for name in item.reads}
    return tuple(item.name for item in pipelines if item.name in finished and item.name in wanted)


def remaining(plan: Pipelined, finished: Collection[str]) -> tuple[Relation, tuple[str, ...]]:
    """The plan over the state's results, each replaced at its topmost place (algorithm 6.6), and which it reads."""
    state = set(select_state(plan.pipelines, finished))
    results = NodeMap((item.place, item.result) for item in plan.pipelines if item.name in state)
    change = _replacing(results)
    whole = plan.whole
    if not isinstance(whole, With):
        left: Relation = descend(whole, change)
        return left, _read(left, state)
    kept = tuple((name, descend(below, change)) for name, below in whole.definitions if name not in finished)
    body: Relation = descend(whole.body, change)
    left = With(kept, body) if kept else body
    return left, _read(left, state)


def _replacing(results: NodeMap[Snapshot]) -> Callable[[Any], Any]:
    """Parents first: what a snapshot has taken the place of is not looked at any more."""
    return lambda node: replaced(results, node)
