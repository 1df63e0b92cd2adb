"""Static, stream and upper: where a stream is in a plan, and which plans a continuous view may have.

Owns the rules of the thesis, sections 4.2.2 and 4.2.3, checked on decorrelated algebra, and the classification of
section 4.2.4: a **static** relation reads no stream, a **stream** relation reads one that no grouping has taken in yet,
an **upper** relation reads streams only through groupings.

    Join                 upper          the rules: every stream meets a grouping first; below it, a stream meets
      Aggregate          upper          only static relations, as the probe side of a join that keeps the stream's
        Join             stream         rows; a stream meets another only above both groupings
          Scan s         stream
          Scan t         static
      Scan u             static

``prepare`` brings a plan into this form where that keeps its meaning; ``check`` rejects what is left.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL, INT8, array
from planner.algebra.construction import Fresh, conjunction, keep_columns
from planner.algebra.functions import FUNCTIONS
from planner.algebra.relations import (
    Aggregate,
    Delta,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Limit,
    Project,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    Unnest,
    Window,
)
from planner.algebra.scalars import AggregateCall, Call, ColumnRef
from planner.algebra.scalars import Literal as Constant
from planner.algebra.walk import (
    RELATIONS,
    Node,
    children,
    descend,
    free_columns,
    inputs,
    is_dependent,
    transform,
    used_columns,
    walk,
)
from planner.view_rules import RULES, Places

Kind = Literal["static", "upper", "stream"]
_KINDS: Final[tuple[Kind, ...]] = ("static", "upper", "stream")  # an operator is of its inputs' last
#: The same join with its inputs exchanged.
_MIRRORED: Final[dict[JoinKind, JoinKind]] = {"inner": "inner", "left": "right", "right": "left", "full": "full"}
_NOWHERE: Final = Places()
_GROUP_FIRST: Final = "Group each stream by a key in a subquery or WITH, and use the grouped results."


class Kinds:
    """The kind of each relation of a plan, found once per node."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Node, Kind]] = {}

    def of(self, relation: Node) -> Kind:
        """Static, stream or upper; relations nested in expressions count as inputs."""
        if id(relation) not in self._known:
            for node in reversed(list(walk(relation))):
                if id(node) not in self._known:
                    self._known[id(node)] = (node, self._kind(node))
        return self._known[id(relation)][1]

    def _kind(self, node: Node) -> Kind:
        below = [self._known[id(child)][1] for child in children(node)]
        worst = _KINDS[max(map(_KINDS.index, below), default=0)]
        match node:
            case Scan(kind="stream" | "changes") | Delta():
                return "stream"
            case Snapshot():  # a state: a grouping that has been taken apart already
                return "upper"
            case Aggregate() if worst == "stream":
                return "upper"
            case _:
                return worst


def is_grouping(node: Node, kinds: Kinds) -> bool:
    """Whether a node is the first grouping above a stream."""
    return isinstance(node, Aggregate) and kinds.of(node.input) == "stream"


# -- prepare -----------------------------------------------------------------------------------------------------------


def prepare(relation: Relation, ordered: bool = False) -> Relation:
    """The plan without orders that nobody sees, with groupings that its operators imply, and streams on probe sides."""
    fresh = Fresh(relation)
    kinds = Kinds()
    prepared: Relation = transform(drop_sorts(relation, ordered), lambda node: _prepare(node, kinds, fresh))
    return prepared


def drop_sorts(relation: Relation, ordered: bool = False) -> Relation:
    """ORDER BY without LIMIT means nothing in a view (thesis 4.2.3); directly below a limit it stays, and where the
    result is ``ordered`` so does that of the whole."""
    stays: set[int] = {id(below_projections(relation))} if ordered else set()

    def change(node: Any) -> Any:
        while isinstance(node, Sort) and id(node) not in stays:
            node = node.input
        if isinstance(node, Limit):
            stays.add(id(below_projections(node.input)))
        return node

    result: Relation = descend(relation, change)
    return result


def below_projections(relation: Relation) -> Relation:
    """What projections, if any, are over."""
    while isinstance(relation, Project):
        relation = relation.input
    return relation


def _prepare(node: Any, kinds: Kinds, fresh: Fresh) -> Any:
    match node:
        case SetOperation(kind="union", all=False) if kinds.of(node) == "stream":
            below = replace(node, all=True, columns=tuple(map(fresh.copy, node.columns)))
            keys = zip(node.columns, map(ColumnRef, below.columns), strict=True)
            return Aggregate(below, tuple(keys), ())
        case SetOperation(kind="intersect" | "except", all=True) if kinds.of(node) == "stream":
            return _by_numbers(node, fresh)
        case SetOperation(kind="intersect" | "except", all=False) if kinds.of(node) == "stream":
            left, right = (_distinct(side, fresh) if kinds.of(side) == "stream" else side for side in inputs(node))
            return replace(node, left=left, right=right)
        case Join(kind="semi" | "anti") if kinds.of(node.right) == "stream" and kinds.of(node.left) != "stream":
            return replace(node, right=_grouped_for_existence(node, fresh))
        case Join(kind="inner" | "left" | "right" | "full") if (
            kinds.of(node.left) == "static"
            and kinds.of(node.right) != "static"
            and not is_dependent(*inputs(node)[::-1])
        ):
            mirrored = Join(_MIRRORED[node.kind], node.right, node.left, node.predicate)
            return keep_columns(_matched_and_unmatched(mirrored, kinds, fresh), node.columns)
        case Join(kind="right" | "full"):
            return _matched_and_unmatched(node, kinds, fresh)
        case _:
            return node


def _matched_and_unmatched(node: Join, kinds: Kinds, fresh: Fresh) -> Relation:
    """A join that keeps a table's rows beside a stream not yet grouped: a grouping tells those without a partner.

    S right join T  =  S join T  union all  (NULLs, T anti join distinct S)             full: the first is a left join
    """
    if node.kind not in ("right", "full") or (kinds.of(node.left), kinds.of(node.right)) != ("stream", "static"):
        return node
    matched, _ = fresh.rename(Join("inner" if node.kind == "right" else "left", node.left, node.right, node.predicate))
    anti, mapping = fresh.rename(Join("anti", node.right, node.left, node.predicate))
    assert isinstance(anti, Join)
    kept = set(node.right.columns)
    outputs = tuple(
        (fresh.copy(column), ColumnRef(mapping[column]) if column in kept else Constant(None, column.type))
        for column in node.columns
    )
    unmatched = Project(replace(anti, right=_grouped_for_existence(anti, fresh)), outputs)
    columns = tuple(fresh.column(column.name, column.type) for column in node.columns)
    both = SetOperation("union", True, matched, unmatched, columns)
    return Project(both, tuple(zip(node.columns, map(ColumnRef, columns), strict=True)))


def _by_numbers(node: SetOperation, fresh: Fresh) -> Relation:
    """INTERSECT ALL and EXCEPT ALL: how often each row is there is an aggregate.

    L intersect all R  =  Unnest(count L join count R on the same row, a place for each of least(n, m))
    L except all R     =  Unnest(count L left join count R on the same row, a place for each of n - coalesce(m, 0))
    """
    left, right = (_counted(side, fresh) for side in inputs(node))
    pairs = zip(left.columns[:-1], right.columns[:-1], strict=True)
    same = (Call("is_not_distinct", (ColumnRef(one), ColumnRef(other)), BOOL) for one, other in pairs)
    both = Join("inner" if node.kind == "intersect" else "left", left, right, conjunction(same))
    here, there = ColumnRef(left.columns[-1]), ColumnRef(right.columns[-1])
    if node.kind == "intersect":
        times = Call("least", (here, there), INT8)
    else:
        times = Call("sub", (here, Call("coalesce", (there, Constant(0, INT8)), INT8)), INT8)
    copies = Call("series", (Constant(1, INT8), times, Constant(1, INT8)), array(INT8))
    repeated = Unnest(both, ((fresh.column("copy", INT8, False), copies),))
    outputs = zip(node.columns, map(ColumnRef, left.columns[:-1]), strict=True)
    return Project(repeated, tuple(outputs))


def _counted(relation: Relation, fresh: Fresh) -> Aggregate:
    """The relation's distinct rows with how often each is there."""
    rows = fresh.column("rows", INT8, False)
    keys = tuple((fresh.copy(column), ColumnRef(column)) for column in relation.columns)
    return Aggregate(relation, keys, ((rows, AggregateCall("count", (), INT8)),))


def _distinct(relation: Relation, fresh: Fresh) -> Relation:
    """The relation's distinct rows."""
    return Aggregate(relation, tuple((fresh.copy(column), ColumnRef(column)) for column in relation.columns), ())


def _grouped_for_existence(node: Join, fresh: Fresh) -> Relation:
    """The right side of EXISTS or IN, where duplicates mean nothing, grouped by the columns that the predicate uses."""
    used = set() if node.predicate is None else used_columns(node.predicate)
    columns = [column for column in node.right.columns if column in used]
    if columns:
        below = keep_columns(node.right, tuple(columns))
        mapping = {column: fresh.copy(column) for column in columns}
        inner = Project(below, tuple((mapping[column], ColumnRef(column)) for column in columns))
        return Aggregate(inner, tuple((column, ColumnRef(mapping[column])) for column in columns), ())
    rows = fresh.column("rows", INT8, False)
    counted = Aggregate(node.right, (), ((rows, AggregateCall("count", (), INT8)),))
    return Filter(counted, Call("gt", (ColumnRef(rows), Constant(0, INT8)), BOOL))


# -- check -------------------------------------------------------------------------------------------------------------


def check(relation: Relation, places: Places = _NOWHERE) -> None:
    """Raises 0A000 with the rule that a prepared plan breaks, where its text does, and what to write instead."""
    check_operators(relation, places)
    kinds = Kinds()
    if kinds.of(relation) == "stream":
        raise unsupported(
            f"a continuous view that returns the rows of a stream ({_names(relation)}) without grouping them",
            "Group by a key (GROUP BY or DISTINCT; by all columns to keep every distinct row), "
            "or query the stream itself.",
            places.of(_ungrouped(relation, kinds)),
            RULES["grouping"],
        )


def check_operators(relation: Relation, places: Places = _NOWHERE) -> None:
    """The same without the rule that all rows of streams are grouped at last."""
    kinds = Kinds()
    stack: list[tuple[Node, bool]] = [(relation, False)]
    while stack:
        node, below_grouping = stack.pop()
        match node:
            case Join():
                _check_join(node, kinds, places)
            case Limit() if kinds.of(node) == "stream" or (kinds.of(node) == "upper" and below_grouping):
                raise unsupported(
                    "LIMIT below a grouping of a continuous view",
                    "Give it an ORDER BY (of a stream's own rows with LIMIT 1000 at most), or use it in the query that "
                    "reads the view.",
                    places.limit or places.of(_streams(node)),
                    RULES["order"],
                )
            case Fixpoint() if kinds.of(node) == "stream":
                construct = f"WITH RECURSIVE over the rows of a stream ({_names(node)})"
                raise unsupported(construct, _GROUP_FIRST, places.of(_ungrouped(node, kinds)), RULES["order"])
            case Window() if kinds.of(node) == "stream":
                first = "Of row_number() keep the first thousand rows, or fewer (row_number <= 10)."
                construct = f"a window function over the rows of a stream ({_names(node)})"
                raise unsupported(construct, f"{first} {_GROUP_FIRST}", places.of([node]), RULES["order"])
            case Aggregate() if is_grouping(node, kinds):
                _check_grouping(node, kinds, places)
            case _:
                pass
        inside = below_grouping or isinstance(node, Aggregate)
        stack.extend((child, inside) for child in children(node))


def _streams(node: Node) -> list[Scan]:
    return [item for item in walk(node) if isinstance(item, Scan) and item.arrives]


def _names(node: Node) -> str:
    return ", ".join(f'"{name}"' for name in sorted({stream.name for stream in _streams(node)}))


def _ungrouped(node: Node, kinds: Kinds) -> list[Relation]:
    """The streams below a relation that no grouping has taken in."""
    found: list[Relation] = []
    stack: list[Node] = [node]
    while stack:
        item = stack.pop()
        if kinds.of(item) == "stream":
            found += [item] if isinstance(item, Scan) else []
            stack += children(item)
    return found


def _check_join(node: Join, kinds: Kinds, places: Places) -> None:
    left, right = kinds.of(node.left), kinds.of(node.right)
    if is_dependent(node.right, node.left):
        _check_lateral(node, kinds, places)
    if "stream" not in (left, right):
        return
    if "static" not in (left, right):
        construct = f"a join of streams ({_names(node)}) before all of them are grouped"
        raise unsupported(construct, _GROUP_FIRST, places.of(_ungrouped(node, kinds)), RULES["streams"])
    if node.predicate is not None and kinds.of(node.predicate) != "static":
        raise _subquery_over_stream(node, kinds, places)


def _check_lateral(node: Join, kinds: Kinds, places: Places) -> None:
    """What is evaluated for each row stands above the groupings, and so do all columns that it uses."""
    groupings = (item for item in walk(node.right) if isinstance(item, Aggregate) and is_grouping(item, kinds))
    if "stream" in (kinds.of(node.left), kinds.of(node.right)) or any(free_columns(item) for item in groupings):
        raise unsupported(
            f"LATERAL over the rows of a stream ({_names(node)}), but for what equalities or rows alone decide",
            "Write it as a join with a grouped subquery in FROM.",
            places.of(_ungrouped(node.right, kinds) or _ungrouped(node, kinds) or _streams(node.right)),
            RULES["lateral"],
        )


def _subquery_over_stream(node: Node, kinds: Kinds, places: Places) -> SqlError:
    construct = f"a subquery over a stream ({_names(node)}) compared with rows not yet grouped"
    return unsupported(construct, _GROUP_FIRST, places.of(_ungrouped(node, kinds)), RULES["streams"])


def _check_grouping(node: Aggregate, kinds: Kinds, places: Places) -> None:
    """Below a grouping each row is seen once, so all must be immutable and no expression may read another stream."""
    for item in walk(node):
        if isinstance(item, Call) and item.function in FUNCTIONS and FUNCTIONS[item.function].volatility != "immutable":
            raise unsupported(
                f"{item.function}() below a grouping of a continuous view",
                "Put the value into a column of the stream, or use the function in the query that reads the view.",
                rule=RULES["immutable"],
            )
        if isinstance(item, RELATIONS):
            nested = [child for child in children(item) if not isinstance(child, RELATIONS)]
            if kinds.of(item) == "stream" or item is node:
                for child in nested:
                    if kinds.of(child) != "static":
                        raise _subquery_over_stream(item, kinds, places)
