"""The form in which a continuous view is planned: groupings that its operators imply, and streams on probe sides.

Owns the equations that bring a plan into the form that the rules of the thesis (4.2.2, 4.2.3) ask for, where the plan
keeps its meaning. ``planner.incremental.methods.collect`` takes what is left.

    union of streams               =  Aggregate(union all of streams, all columns)
    static join stream             =  stream join static
    stream right join static       =  stream join static  union all  static without partner
    R semi or anti join stream     =  R semi or anti join Aggregate(stream, the columns compared)
    Aggregate(R, no keys, nothing) =  one row
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT8, array
from planner.algebra.construction import Fresh, conjunction, keep_columns, same_group
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    ColumnRef,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    SetOperation,
    Unnest,
    Values,
)
from planner.algebra.nodes import Literal as Constant
from planner.algebra.walk import (
    inputs,
    is_dependent,
    transform,
    used_columns,
)
from planner.incremental.properties import Kinds
from planner.incremental.rewrites.orders import drop_sorts

#: The same join with its inputs exchanged.
_MIRRORED: Final[dict[JoinKind, JoinKind]] = {"inner": "inner", "left": "right", "right": "left", "full": "full"}


def prepare(relation: Relation, ordered: bool = False) -> Relation:
    """The plan without orders that have no effect, with groupings that its operators imply, and streams on probe
    sides."""
    fresh = Fresh(relation)
    kinds = Kinds()
    prepared: Relation = transform(drop_sorts(relation, ordered), lambda node: _prepare(node, kinds, fresh))
    return prepared


def _prepare(node: Any, kinds: Kinds, fresh: Fresh) -> Any:
    match node:
        case Aggregate(keys=(), aggregates=()):
            return Values((), ((),))
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
    same = (same_group(ColumnRef(one), ColumnRef(other)) for one, other in pairs)
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
