"""From a relation to its dataflow.

Owns: the order in which the methods are tried, where regions end, and what stays above the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from planner.algebra.construction import Fresh, has_subquery, volatility
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Filter,
    Fixpoint,
    InZone,
    Join,
    Limit,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    Unnest,
    Values,
    Window,
    With,
    Working,
)
from planner.algebra.reading_time import is_timed
from planner.algebra.walk import (
    BY_POSITION,
    RELATIONS,
    children,
    descend,
    descend_relations,
    find,
    free_columns,
    inputs,
    is_relation,
    kinds_of,
    transform_relations,
)
from planner.incremental.dataflow import (
    counted_partners,
    first_of_partitions,
    first_rows,
    groupings,
    ordered_windows,
    propagation,
    recomputation,
    recursion,
    time_bounds,
)
from planner.incremental.dataflow.building import Building, NotMaintained, with_columns
from planner.incremental.dataflow.float_sums import with_counted_checks
from planner.incremental.dataflow.graph import (
    Dataflow,
    DataflowNode,
    FirstOfPartitions,
    FirstRows,
    Key,
    Operator,
    OrderedWindow,
    Propagated,
    Recomputed,
    Recursive,
    Shared,
    Source,
    Term,
    TimeBounded,
    every,
    references,
)
from planner.incremental.dataflow.rewrites.counted_keys import counted_joins, with_counted_keys
from planner.incremental.dataflow.rewrites.higher_order import WithViews, with_views
from planner.incremental.dataflow.rewrites.rewriting import UNSIZED, Sized
from planner.rules import optimise, unnest
from planner.rules.row_order.forget_orders import forget_orders
from planner.rules.subqueries.counted_rows import count_rows

_SCANS: Final = kinds_of(Scan)
#: Relations with all columns of their inputs.
_PASSING: Final = (Scan, Filter, Join, Window, Unnest, Sort, Limit, InZone)

#: How operators are written that no method takes.
_WRITTEN: Final[Mapping[type, str]] = {Limit: "LIMIT"}


class Planned(Struct, frozen=True):
    """A relation's dataflow, None where computing the relation anew costs no more, why operators are computed anew at
    each read, and what the dataflow does not read since facts about the rows tell it (``left_out``)."""

    dataflow: Dataflow | None
    reasons: tuple[str, ...]
    left_out: tuple[str, ...] = ()


class Rewritten(Struct, frozen=True):
    """A relation with higher-order views, and the predicates of the left joins in it that are to count keys."""

    found: WithViews
    counted: frozenset[Scalar]

    @property
    def views(self) -> frozenset[Column]:
        """A column of each higher-order view."""
        return self.found.views


def dataflow_of(
    relation: Relation,
    scope: str,
    constants: frozenset[str] = frozenset(),
    sized: Sized = UNSIZED,
    left_out: tuple[str, ...] = (),
) -> Planned:
    """The dataflow of a relation over tables, states and views whose rows are kept; ``constants`` are traces that never
    change. The ``scope`` is unlike that of any other dataflow. ``sized`` says which rewrites the relation goes through,
    and what they know of the rows. Without what is ``left_out``, the relation is simpler than the one that computes the
    rows anew, so that plain rows are kept.

    The relation has no subqueries in expressions where these are to be maintained
    (``joined``)."""
    if volatility(relation) != "immutable" and not time_bounds.are_followed(relation):
        return Planned(None, (_reason_of(relation),))
    if any(scan.kind not in ("table", "view") for scan in find(relation, _SCANS)):
        return Planned(None, ("a relation is read that is neither a table nor a state",))
    if isinstance(relation, With):
        return Planned(None, ("a query is shared by its readers",))

    def planned(found: Rewritten) -> Planned:
        return replace(_Planning(found, scope, constants, bool(left_out)).planned(), left_out=left_out)

    found = rewritten(relation, sized, constants)
    best = planned(found)
    if found.views and best.reasons:
        plain = planned(_with_counted(WithViews(relation, frozenset()), sized))
        return plain if len(plain.reasons) < len(best.reasons) else best
    return best


def rewritten(relation: Relation, sized: Sized, constants: frozenset[str]) -> Rewritten:
    """The relation of which ``dataflow_of`` makes nodes."""
    return _with_counted(with_views(relation, sized, constants), sized)


def _with_counted(found: WithViews, sized: Sized) -> Rewritten:
    relation = with_counted_keys(found.relation, sized)
    return Rewritten(WithViews(relation, found.views), counted_joins(relation, sized))


def _reason_of(relation: Relation) -> str:
    """Why a relation whose functions are not immutable is computed at each read."""
    return (
        "its rows depend on when they are read"
        if is_timed(relation)
        else "a function depends on more than its arguments"
    )


def joined(relation: Relation) -> Relation:
    """The relation with its subqueries as joins, as far as there are such, optimised."""
    try:
        return optimise(with_counted_checks(optimise(forget_orders(unnest(count_rows(relation))))))
    except SqlError:  # what has no join stays, and is computed at each read
        return optimise(relation)


def require_incremental(relation: Relation, constants: frozenset[str]) -> None:
    """Raises 0A000 for a relation of which something is computed anew at each read."""
    refuse_recomputation(dataflow_of(joined(relation), "", constants))


def refuse_recomputation(planned: Planned) -> None:
    """Raises 0A000 where something is computed anew at each read."""
    for reason in planned.reasons:
        construct = f"a view with refresh_policy = 'incremental' of which a part is computed at each read ({reason})"
        raise unsupported(construct, "Leave the option out, or write that part in the query that reads the view.")


class _Planning:
    """One relation's."""

    def __init__(self, rewritten: Rewritten, scope: str, constants: frozenset[str], keeps_plain: bool) -> None:
        """``keeps_plain``: plain rows are kept."""
        relation = rewritten.found.relation
        self._keeps_plain = keeps_plain
        self._found, self._counted = rewritten.found, rewritten.counted
        self._building = Building(Fresh(relation), scope)
        self._constants = constants
        #: Relations that consist of regions' operators over leaves.
        self._open = NodeSet()
        #: Sorts of such relations, which LIMIT may take.
        self._sorted = NodeSet()
        #: The places in their partitions that filters ask for.
        self._places = first_of_partitions.places(relation)
        self._outputs: dict[int, None] = {}
        self._reasons: dict[str, None] = {}

    def planned(self) -> Planned:
        """The dataflow."""
        relation = self._found.relation
        final = self._presented(self._alike(relation))
        final = self._restored(with_columns(final, relation.columns))
        reasons, nodes = tuple(self._reasons), self._needed(final)
        kept = _kept(nodes, self._outputs)
        if not self._keeps_plain and all(self._building.is_plain(self._building.leaf(node)) for node in kept):
            return Planned(None, reasons)
        nodes = tuple(self._found.marked(self._building.filled(node, kept)) for node in nodes)
        return Planned(Dataflow(self._building.scope, nodes, kept, tuple(self._outputs), final), reasons)

    def _presented(self, relation: Relation) -> Relation:
        """The final relation, in which the order of the rows stays what it is: to show rows in order is no part of
        their maintenance."""
        if isinstance(relation, Project | Sort) and _is_ordered(relation):
            return replace(relation, input=self._presented(relation.input))
        found = self._transformed(relation)
        if found in self._sorted:
            return self._left(found)
        if found not in self._open:
            return found
        output = self._output(found)
        match relation:
            case Limit(input=Sort(keys=keys)) if _is_ordered(relation) and isinstance(output, Snapshot):
                return Sort(output, keys)
            case _:
                return output

    def _alike(self, relation: Relation) -> Relation:
        """The relation whose scans of one table read the same columns, so that one node has their rows."""
        used: dict[int, dict[str, Column]] = {}
        for scan in find(relation, _SCANS):
            used.setdefault(scan.oid, {}).update(zip(scan.sources, scan.columns, strict=True))

        def change(node: Any) -> Any:
            if type(node) in BY_POSITION:
                sides = {name: getattr(node, name) for name in BY_POSITION[type(node)]}
                wider = {name: side for name, side in sides.items() if isinstance(side, _PASSING)}
                return replace(node, **{name: Project(side, references(side.columns)) for name, side in wider.items()})
            if not isinstance(node, Scan) or len(node.sources) == len(used[node.oid]):
                return node
            own = dict(zip(node.sources, node.columns, strict=True))
            copy = self._building.fresh.copy
            columns = {name: own.get(name) or copy(column) for name, column in used[node.oid].items()}
            return replace(node, columns=tuple(columns.values()), sources=tuple(columns))

        found: Relation = descend(relation, change, _SCANS)
        return found

    def _transformed(self, relation: Relation) -> Relation:
        """The relation with nodes in the places of what is maintained."""
        found: Relation = transform_relations(descend_relations(relation, self._recursion), self._change)
        return found

    def _opened(self, relation: Relation) -> Relation:
        """The region that stands for a relation, in whose order no rows come. Raises NotMaintained."""
        found = self._transformed(relation)
        while isinstance(found, Sort):
            found = found.input
        if found not in self._open:
            raise NotMaintained(next(reversed(self._reasons)))
        return found

    def _recursion(self, node: Any) -> Any:
        """A recursion's node, which is made before what it consists of; another relation as it is."""
        if not isinstance(node, Fixpoint):
            return node
        outputs = {**self._outputs}
        try:
            return recursion.recursive(self._building, node, self._opened, self._closed)
        except NotMaintained as error:
            self._reasons[error.reason] = None
            self._outputs = outputs
            return node

    def _change(self, node: Any) -> Any:
        if not isinstance(node, RELATIONS):
            return node
        made = self._made(node)
        if made is not None:
            self._open.add(made)
            return made
        if isinstance(node, Sort) and node.input in self._open:
            self._sorted.add(node)
            return node
        return self._left(node)

    def _made(self, node: Relation) -> Relation | None:
        """What stands for an operator whose inputs are open; None where it is computed when the rows are read."""
        match node:
            case Snapshot() if self._building.node_of(node) is not None:
                return node
            case Fixpoint() | Working():
                return None
            case Scan():
                return self._building.source(node)
            case Snapshot() if node.trace in self._constants:
                return self._building.constant(node)
            case Snapshot():
                return self._building.source(node)
            case Values():
                return self._building.constant(node)
            case _:
                pass
        if isinstance(node, Sort) or any(item not in self._open for item in _inputs(node)):
            return None
        try:
            if _is_lateral(node):
                raise NotMaintained("a relation is computed for each row beside it (LATERAL)")
            return self._maintained(node)
        except NotMaintained as error:
            self._reasons[error.reason] = None
            return None

    def _maintained(self, node: Relation) -> Relation:
        """The methods, in the order in which they are tried."""
        match node:
            case Filter() if time_bounds.is_bounded(node):
                return time_bounds.bounded(self._building, node, self._closed)
            case Join(kind="left", predicate=predicate) if predicate in self._counted and propagation.is_region(node):
                join = counted_partners.counted(self._building, node, self._grouped, self._closed)
                found = propagation.folded(self._building, join)
                return with_columns(found, node.columns)
            case _ if propagation.is_region(node):
                return propagation.folded(self._building, node)
            case Join(kind="right"):
                mirrored = Join("left", node.right, node.left, node.predicate)
                if not propagation.is_region(mirrored):
                    raise NotMaintained("a join reads the columns of its other side")
                return Project(propagation.folded(self._building, mirrored), references(node.columns))
            case Aggregate() if not any(has_subquery(value) for _, value in (*node.keys, *node.aggregates)):
                return self._grouped(node)
            case Window() if not any(has_subquery(call) for _, call in node.calls):
                return self._windowed(node)
            case SetOperation(columns=()):
                raise NotMaintained("a set operation has no columns")
            case SetOperation(kind="union", all=True):
                return self._together(node)
            case SetOperation(kind="union"):
                return self._distinct(node)
            case SetOperation():
                return recomputation.set_operation(self._building, node, self._closed)
            case Limit():
                return first_rows.first_rows(self._building, node, self._closed)
            case Join(kind="full") if node.predicate is not None and not has_subquery(node.predicate):
                return recomputation.full_join(self._building, node, self._closed)
            case _:
                raise NotMaintained(
                    f"{_WRITTEN.get(type(node), type(node).__name__.lower())} is computed from all rows"
                )

    def _closed(self, relation: Relation) -> Snapshot:
        return propagation.propagated(self._building, relation)

    def _grouped(self, node: Aggregate) -> Relation:
        """A grouping, by the parts that its aggregates allow (``groupings``)."""
        return groupings.grouped(self._building, node, self._closed)

    def _windowed(self, node: Window) -> Relation:
        wanted = first_of_partitions.wanted(node, self._places)
        if wanted is not None:
            return first_of_partitions.first_of_partitions(self._building, node, wanted, self._closed)
        if ordered_windows.is_covered(node):
            return ordered_windows.windowed(self._building, node, self._grouped, self._closed)
        return recomputation.window(self._building, node, self._closed)

    def _together(self, node: SetOperation) -> Relation:
        """UNION ALL: the sum of what its sides become. d(L + R) = dL + dR"""
        building = self._building
        terms, definition = [], building.expanded(node)
        sides = self._closed(node.left), self._closed(node.right)
        for side in sides:
            renamed = zip(node.columns, side.columns, strict=True)
            relation = Project(side, tuple((column, ColumnRef(source)) for column, source in renamed))
            weight = building.weight(building.node(side))
            changed = propagation.with_weight(building, relation, side, weight)
            terms.append(Term(building.node(side), changed, weight=weight))
        made = replace(node, left=sides[0], right=sides[1])
        return building.add(Propagated(building.next_id(), node.columns, definition, tuple(terms)), made)

    def _distinct(self, node: SetOperation) -> Relation:
        below = replace(node, all=True, columns=tuple(map(self._building.fresh.copy, node.columns)))
        keys = tuple(zip(node.columns, map(ColumnRef, below.columns), strict=True))
        return self._grouped(Aggregate(self._together(below), keys, ()))

    # -- what stays above the nodes ------------------------------------------------------------------------------------

    def _left(self, node: Relation) -> Relation:
        """An operator that is computed when the rows are read, over what is maintained below it."""
        if node in self._sorted:
            self._reasons["ORDER BY is computed from all rows"] = None
        sides = {"input", "left", "right", "base", "step", "body"}.intersection(node.__struct_fields__)
        found = {name: side for name in sides if (side := getattr(node, name)) is not None}
        changed = {name: self._output(side) for name, side in found.items() if side in self._open}
        changed |= {name: self._left(side) for name, side in found.items() if side in self._sorted}
        return replace(node, **changed) if changed else node

    def _output(self, relation: Relation) -> Relation:
        try:
            leaf = self._closed(relation)
        except NotMaintained as error:
            self._reasons[error.reason] = None
            return relation  # its leaves are restored
        if not self._keeps_plain and self._building.is_plain(leaf):
            return relation
        self._outputs[self._building.node(leaf)] = None
        return leaf

    def _restored(self, final: Relation) -> Relation:
        """The relation with what stood there before for nodes whose rows are not kept for it."""

        def change(item: Any) -> Any:
            node = self._building.node_of(item)
            if node is None or node in self._outputs:
                return item
            return self._restored(self._building.nodes[node].definition)

        changed: Relation = transform_relations(final, change)
        return changed

    def _needed(self, final: Relation) -> tuple[DataflowNode, ...]:
        """The nodes that outputs read, in order, and the views that the final relation reads itself. What a term
        fetches is an input of its node, too."""
        shown = {scan.oid for scan in find(final, _SCANS) if scan.kind == "view"}
        wanted = {node.id for node in self._building.nodes if _view_of(node) in shown} | self._outputs.keys()
        found = []
        for node in reversed(self._building.nodes):
            if node.id in wanted:
                found.append(node)
                wanted.update(node.inputs if isinstance(node, Operator) else ())
        return tuple(reversed(found))


def _view_of(node: DataflowNode) -> int | None:
    """The view whose rows a source has."""
    match node:
        case Source(definition=Scan(kind="view", oid=oid)):
            return oid
        case _:
            return None


def _kept(nodes: Sequence[DataflowNode], outputs: Iterable[int]) -> dict[int, tuple[Key, ...]]:
    """The nodes whose rows are kept, with the keys by which they must be found."""
    found: dict[int, dict[Key, None]] = {node: {} for node in outputs}
    for node in every(nodes):
        match node:
            case Propagated():
                fetched = [(fetch.node, fetch.key) for term in node.terms for fetch in term.fetches]
                own = [(term.node, term.own_key) for term in node.terms if term.own_key is not None]
            case FirstRows() | TimeBounded():
                found.setdefault(node.node, {})
                continue
            case OrderedWindow():
                found.setdefault(node.id, {})
                continue
            case FirstOfPartitions():
                fetched = [(node.node, node.key)]
                own = [(node.id, node.key)]
            case Recursive():
                found.setdefault(node.ranked.id, {}).update(() if node.all else {node.key: None})
                continue
            case Recomputed():
                fetched = list(node.keys)
                own = [] if node.own_key is None else [(node.id, node.own_key)]
            case _:
                continue
        for below, key in (*fetched, *own):
            found.setdefault(below, {})[key] = None
    for node in reversed([*every(nodes)]):
        if isinstance(node, Shared | Recursive) and node.id in found:
            found.setdefault(node.node, {}).update(dict.fromkeys(map(node.key_below, found.pop(node.id))))
    return {node: tuple(key for key in keys if key) for node, keys in found.items()}


def _inputs(node: Relation) -> Iterable[Relation]:
    """An operator's inputs; below LIMIT those of the order that it takes."""
    return inputs(node.input) if isinstance(node, Limit) and isinstance(node.input, Sort) else inputs(node)


def _is_ordered(relation: Relation) -> bool:
    """Whether a relation is nothing but projections of ordered rows, without subqueries."""
    match relation:
        case Project():
            return not any(has_subquery(value) for _, value in relation.outputs) and _is_ordered(relation.input)
        case Limit():
            return isinstance(relation.input, Sort) and _is_ordered(relation.input)
        case Sort():
            return not any(has_subquery(key.expression) for key in relation.keys)
        case _:
            return False


def _is_lateral(node: Relation) -> bool:
    """Whether an operator uses columns of none of its inputs: those of a row beside it."""
    given = {column for item in inputs(node) for column in item.columns}
    used = {column for item in children(node) if not is_relation(item) for column in free_columns(item)}
    return not used <= given
