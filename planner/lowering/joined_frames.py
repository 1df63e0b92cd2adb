"""Windows whose rows an engine cannot name, as joins of the rows with those of their frames.

    f(x) OVER (PARTITION BY p ORDER BY o ROWS 3 PRECEDING EXCLUDE CURRENT ROW)
        =  f(S.x) of  L left join S on L.p IS NOT DISTINCT FROM S.p and S.n between L.n - 3 and L.n and S.n <> L.n
    lag(x, d) OVER (PARTITION BY p ORDER BY o)
        =  S.x of     L left join S on L.p IS NOT DISTINCT FROM S.p and S.n = L.n - d

L and S are both the input with each row's number n in its partition, its rank among its peers, and their number. Frames
with EXCLUDE and frames of months go this way, and lag and lead by a computed distance. As the input is computed twice,
all its columns break ties, so rows that still tie are equal. Volatile calls are not rewritten. The join makes as many
pairs as all frames have rows together, where an engine's own frame needs one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.types import BOOL, INT8, TEXT, TIMESTAMP, SqlType, array
from planner.algebra.construction import TRUE, Fresh, conjunction, keep_columns, same_group, substitute, volatility
from planner.algebra.functions import AGGREGATES
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    SortKey,
    Window,
    WindowCall,
)
from planner.lowering.outer_values import has_equal_values
from planner.rules.row_order.number_rows import is_constant

_INTEGERS: Final = ("int2", "int4")
_TIMES: Final = {"date": TIMESTAMP, "timestamp": TIMESTAMP}
#: Aggregates whose result depends on the order of the frame's rows.
_ORDERED: Final = frozenset(("string_agg", "array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"))
_PLACED: Final = ("first_value", "last_value", "nth_value")
_MOVED: Final = {"lag": "sub", "lead": "add"}


def joined_frames(node: Any, fresh: Fresh) -> Any:
    """A window without the calls for which the engine has no frame; these are computed by joins above it, one after the
    other."""
    if not isinstance(node, Window):
        return node
    taken = [(column, call) for column, call in node.calls if _is_moved(call) or _is_framed(call)]
    if not taken or volatility(node) == "volatile":
        return node
    stay = tuple(pair for pair in node.calls if pair not in taken)
    found: Relation = Window(node.input, stay) if stay else node.input
    for column, call in taken:
        found = (_moved if _is_moved(call) else _framed)(found, column, call, fresh)
    return keep_columns(found, node.columns)


def _is_moved(call: WindowCall) -> bool:
    """Whether a call is lag or lead by a computed distance."""
    return call.function in _MOVED and len(call.arguments) > 1 and not is_constant(call.arguments[1])


def _is_framed(call: WindowCall) -> bool:
    """Whether a call's frame needs a join: with an exclusion, or of months."""
    if call.function not in AGGREGATES and call.function not in _PLACED:
        return False
    if call.exclude == "no_others" and not any(_has_months(offset) for offset in call.offsets):
        return False
    if call.mode != "range" or not call.offsets:
        return True
    return call.order_by[0].expression.type.name in ("timestamptz", *_TIMES, *_INTEGERS)


def _has_months(offset: Scalar) -> bool:
    return isinstance(offset, Literal) and isinstance(offset.value, tuple) and offset.value[0] != 0


# -- both sides --------------------------------------------------------------------------------------------------------


class _Pairs(Struct, frozen=True):
    """The input's rows (``left``) beside all rows of their partition (``right``), each side with its numbers."""

    left: Relation
    right: Relation
    #: The row's own columns, by their names on the right side.
    renamed: dict[Column, Scalar]
    #: A column of the right side that is always TRUE.
    present: Column
    number: Column
    rank: Column
    group: Column
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]

    def other(self, value: Scalar) -> Scalar:
        """An expression over one row, rewritten over the other row."""
        return substitute(value, self.renamed)

    def numbers(self, column: Column) -> tuple[Scalar, Scalar]:
        """The numbers of the other row and of the row itself."""
        return self.other(ColumnRef(column)), ColumnRef(column)

    def joined(self, predicates: Sequence[Scalar]) -> Join:
        """The rows left-joined with the rows of their partition for which the predicates are true."""
        same = (same_group(item, self.other(item)) for item in self.partition)
        return Join("left", self.left, self.right, conjunction((*same, *predicates)))


def _pairs(relation: Relation, call: WindowCall, fresh: Fresh) -> _Pairs:
    """Both sides. Expressions that partition and order the rows are computed below the window, once per side."""
    keys = [*call.partition, *(key.expression for key in call.order_by)]
    columns = [fresh.column("key", key.type) for key in keys]
    passed = tuple((column, ColumnRef(column)) for column in relation.columns)
    keyed = Project(relation, (*passed, *zip(columns, keys, strict=True)))
    partition = tuple(map(ColumnRef, columns[: len(call.partition)]))
    order = tuple(
        replace(key, expression=ColumnRef(column))
        for key, column in zip(call.order_by, columns[len(partition) :], strict=True)
    )
    number, rank, group = (fresh.column(name, INT8, False) for name in ("number", "rank", "group"))
    ties = tuple(SortKey(_tie(column)) for column in relation.columns)
    left = Window(
        keyed,
        (
            (number, WindowCall("row_number", (), INT8, partition, (*order, *ties))),
            (rank, WindowCall("rank", (), INT8, partition, order)),
            (group, WindowCall("dense_rank", (), INT8, partition, order)),
        ),
    )
    copied, mapping = fresh.rename(left)
    present = fresh.column("present", BOOL)
    right = Project(copied, (*((column, ColumnRef(column)) for column in copied.columns), (present, TRUE)))
    renamed: dict[Column, Scalar] = {column: ColumnRef(mapping[column]) for column in left.columns}
    return _Pairs(left, right, renamed, present, number, rank, group, partition, order)


def _tie(column: Column) -> Scalar:
    """A column's value in a form that has an order and differs for values that differ."""
    value = ColumnRef(column)
    return Cast(value, TEXT) if column.type.name == "json" or has_equal_values(column.type) else value


# -- one call ----------------------------------------------------------------------------------------------------------


def _moved(relation: Relation, column: Column, call: WindowCall, fresh: Fresh) -> Relation:
    """lag and lead: the row at the distance, else the default; NULL if the distance is NULL."""
    pairs = _pairs(relation, call, fresh)
    value, distance, *default = call.arguments
    other, own = pairs.numbers(pairs.number)
    place = Call(_MOVED[call.function], (own, Cast(distance, INT8) if distance.type != INT8 else distance), INT8)
    joined = pairs.joined([Call("eq", (other, place), BOOL)])
    nothing = Literal(None, call.type)
    found = Case(
        (
            (Call("is_null", (distance,), BOOL), nothing),
            (Call("is_not_null", (ColumnRef(pairs.present),), BOOL), pairs.other(value)),
        ),
        default[0] if default else nothing,
        call.type,
    )
    passed = tuple((item, ColumnRef(item)) for item in relation.columns)
    return Project(joined, (*passed, (column, found)))


def _framed(relation: Relation, column: Column, call: WindowCall, fresh: Fresh) -> Relation:
    """An aggregate over the frame's rows, computed as an aggregate over a group."""
    pairs = _pairs(relation, call, fresh)
    bounds = zip(("start", "end"), (call.start, call.end), strict=True)
    offsets = iter(call.offsets)
    predicates = [part for side, bound in bounds for part in _within(pairs, call, side, bound, offsets)]
    joined = pairs.joined([*predicates, *_not_excluded(pairs, call)])
    keys = tuple((item, ColumnRef(item)) for item in (*relation.columns, pairs.number))
    aggregate, value = _over_group(pairs, call)
    found = fresh.column("framed", aggregate.type)
    grouped = Aggregate(joined, keys, ((found, aggregate),))
    passed = tuple((item, ColumnRef(item)) for item in relation.columns)
    return Project(grouped, (*passed, (column, value(ColumnRef(found)))))


def _over_group(pairs: _Pairs, call: WindowCall) -> tuple[AggregateCall, Any]:
    """The aggregate over a group, and the call's value over it."""
    condition: Scalar = ColumnRef(pairs.present)
    if call.filter is not None:
        condition = Call("and", (condition, pairs.other(call.filter)), BOOL)
    arguments = tuple(map(pairs.other, call.arguments))
    number = pairs.other(ColumnRef(pairs.number))
    if call.function not in _PLACED:
        order = (SortKey(number),) if call.function in _ORDERED else ()
        return AggregateCall(call.function, arguments, call.type, filter=condition, order_by=order), lambda found: found
    order = (SortKey(number, call.function == "last_value", call.function == "last_value"),)
    kind = array(call.type)
    place = arguments[1] if call.function == "nth_value" else Literal(1, INT8)
    values = AggregateCall("array_agg", arguments[:1], kind, filter=condition, order_by=order)
    return values, lambda found: Call("subscript", (found, place), call.type)


# -- the frame ---------------------------------------------------------------------------------------------------------


def _within(pairs: _Pairs, call: WindowCall, side: str, bound: str, offsets: Iterator[Scalar]) -> Iterator[Scalar]:
    """The condition that the other row is not before the frame's start, or not after its end."""
    if bound.startswith("unbounded"):
        return
    beyond = "ge" if side == "start" else "le"
    by = {"rows": pairs.number, "groups": pairs.group, "range": pairs.rank}[call.mode]
    other, own = pairs.numbers(by)
    if bound == "current_row":
        yield Call(beyond, (other, own), BOOL)
        return
    offset = next(offsets)
    if call.mode != "range":
        place = Call("sub" if bound == "preceding" else "add", (own, offset), INT8)
        yield Call(beyond, (other, place), BOOL)
        return
    yield _in_range(pairs, pairs.order[0], bound, beyond, offset)


def _in_range(pairs: _Pairs, key: SortKey, bound: str, beyond: str, offset: Scalar) -> Scalar:
    """RANGE with an offset; the sort order decides how far a NULL is from other values."""
    kind = _range_type(key.expression.type)
    own = key.expression if key.expression.type == kind else Cast(key.expression, kind)
    if kind == INT8:
        offset = Cast(offset, INT8)
    is_down = (bound == "preceding") != key.descending
    edge = Call("sub" if is_down else "add", (own, offset), kind)
    other = pairs.other(own)
    test = {"ge": "le", "le": "ge"}[beyond] if key.descending else beyond
    is_null = Call("or", tuple(Call("is_null", (item,), BOOL) for item in (own, other)), BOOL)
    by_rank = Call(beyond, pairs.numbers(pairs.rank), BOOL)
    return Case(((is_null, by_rank),), Call(test, (other, edge), BOOL), BOOL)


def _range_type(kind: SqlType) -> SqlType:
    """The type in which an offset is added to a key."""
    return INT8 if kind.name in _INTEGERS else _TIMES.get(kind.name, kind)


def _not_excluded(pairs: _Pairs, call: WindowCall) -> Iterator[Scalar]:
    is_other = Call("ne", pairs.numbers(pairs.number), BOOL)
    is_no_peer = Call("ne", pairs.numbers(pairs.rank), BOOL)
    match call.exclude:
        case "current_row":
            yield is_other
        case "group":
            yield is_no_peer
        case "ties":
            yield Call("or", (is_no_peer, Call("not", (is_other,), BOOL)), BOOL)
        case _:
            pass
