"""A query of a stream itself: what is done with its rows as they arrive, and what when no more come (thesis, ch. 3).

The query sees the rows that arrive while it runs; every other relation is as it was when it began, evaluated once, and
the build side of its joins with the stream (3.2.4). Three ways, the first that fits:

    rows       a pipeline over the stream, and no more than LIMIT above    each interval's rows go to the client at once
    states     every row meets a grouping first                           the program of the same continuous view
    collected  anything else                                              rows below the first breaker are kept

so that only the last needs memory for each row, as any database would for an ORDER BY or a window over them.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.types import SqlType
from planner.algebra.construction import Fresh, keep_columns
from planner.algebra.functions import DRAWN_FUNCTIONS
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import (
    Call,
    Cast,
    Filter,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    Snapshot,
    Working,
)
from planner.algebra.validate import validate
from planner.algebra.walk import RELATIONS, Node, children, descend, free_columns, walk
from planner.incremental.checks import operator_obstacle
from planner.incremental.methods.collect import CollectedRows
from planner.incremental.methods.method import Gathered
from planner.incremental.methods.split.regions import Regions
from planner.incremental.methods.split.statics import Statics
from planner.incremental.plan import normalise, plan
from planner.incremental.programs.program import State, Statement, Static
from planner.incremental.properties import Kinds
from planner.rules import optimise
from planner.statements.statement import Query


class RowLimit(Struct, frozen=True):
    """LIMIT and OFFSET as numbers; ``count`` None: all."""

    count: int | None = None
    offset: int = 0


class Changes(Struct, frozen=True):
    """Where a continuous view's changes begin: with all its rows (``whole``), or behind an LSN, None being now."""

    whole: bool
    since: int | None = None


class Arriving(Struct, frozen=True):
    """How a query reads its stream, or the ``changes`` of a continuous view.

    ``statics`` are evaluated when it begins. Then either ``rows`` over each interval's delta are the result's next
    rows, cut by ``limit``; or ``statements`` add to ``states``, which ``final`` reads when the stream has ended.
    """

    stream: int  # oid
    statics: tuple[Static, ...]
    rows: Relation | None = None
    limit: RowLimit = RowLimit()
    states: tuple[State, ...] = ()
    statements: tuple[Statement, ...] = ()
    final: Relation | None = None
    changes: Changes | None = None

    @property
    def way(self) -> str:
        """Which of the three, for EXPLAIN."""
        if self.rows is not None:
            return "rows go out as they arrive"
        collects = any(state.kind == "concatenate" and not state.key for state in self.states)
        return "rows are collected until the stream is silent" if collects else "rows go into the states of groupings"


def plan_arriving(query: Query) -> Arriving:
    """How to run a query that reads a stream; its parameters have been replaced by values. Raises 0A000."""
    scans = {item for item in walk(query.relation) if isinstance(item, Scan) and item.arrives}
    streams = {item.oid for item in scans}
    if len({(item.oid, item.since) for item in scans}) != 1:
        raise unsupported("a query of several streams", "Join them in a continuous view, and query the view.")
    called = {item.function for item in walk(query.relation) if isinstance(item, Call)} & DRAWN_FUNCTIONS
    if called:
        raise unsupported(f"{min(called)}() in a query of a stream", "Call it in a statement of its own.")
    found = None
    try:
        found = _by_rows(query.relation) or _by_states(query)
    except SqlError as error:
        if error.sqlstate != "0A000":
            raise
    planned = found or _collected(optimise(query.relation), *streams)
    _validate(planned)
    return replace(planned, changes=_changes(scans.pop()))


def _changes(scan: Scan) -> Changes | None:
    """Where the changes of a view begin; None for a stream. Raises 0A000 for what is not constant."""
    match scan.since:
        case _ if scan.kind == "stream":
            return None
        case None:
            return Changes(True)
        case Literal(value=int() | None as since) | Cast(argument=Literal(value=int() | None as since)):
            return Changes(False, since)
        case _:
            raise unsupported("a computed argument of millstream.changes()", "Give it a constant or a parameter.")


def _validate(planned: Arriving) -> None:
    statements = [statement.relation for statement in planned.statements]
    for relation in (planned.rows, planned.final, *statements, *(static.relation for static in planned.statics)):
        if relation is not None:
            validate(relation)


# -- rows --------------------------------------------------------------------------------------------------------------


def _by_rows(relation: Relation) -> Arriving | None:
    """The first way, if it is one."""
    below, cut = _sliced(optimise(relation))
    if cut is None:
        return None
    below = normalise(below, ordered=True)
    kinds = Kinds()
    scan = _source(below, kinds)
    if scan is None:
        return None
    if operator_obstacle(below, kinds) is not None:
        return None
    fresh = Fresh(below, relation)
    statics = Statics(fresh)
    (branch,) = Regions(statics, fresh, kinds).branches(below).streams
    rows = optimise(keep_columns(branch.relation, below.columns))
    return Arriving(scan.oid, statics.planned([rows]), rows, cut)


def _sliced(relation: Relation) -> tuple[Relation, RowLimit | None]:
    """What is below the topmost LIMIT, and that as numbers; None where it must be computed."""
    if not isinstance(relation, Limit):
        return relation, RowLimit()
    count, offset = _number(relation.count), _number(relation.offset)
    if count == -1 or offset == -1:
        return relation, None
    return relation.input, RowLimit(count, offset or 0)


def _number(scalar: Scalar | None) -> int | None:
    """A constant row count; None for all, -1 for what the engine is to compute or refuse."""
    match scalar:
        case None | Literal(value=None) | Cast(argument=Literal(value=None)):
            return None
        case Cast(argument=Literal(value=int()) as number, type=SqlType(name="int8")):  # a parameter's value
            return _number(number)
        case Literal(value=int(value)) if value >= 0:
            return value
        case _:
            return -1


def _source(relation: Relation, kinds: Kinds) -> Scan | None:
    """The stream at the bottom of a pipeline; None of what is none."""
    while kinds.of(relation) == "stream":
        match relation:
            case Scan():
                return relation
            case Filter() | Project():
                relation = relation.input
            case Join():
                relation = relation.left if kinds.of(relation.left) == "stream" else relation.right
            case _:
                return None
    return None


# -- states ------------------------------------------------------------------------------------------------------------


def _by_states(query: Query) -> Arriving | None:
    """The second way: a continuous view that lives as long as the statement. Raises 0A000 for what none may be."""
    planned = plan(query, once=True)
    program = planned.program
    if planned.collected or len(program.paths) != 1:
        return None
    (path,) = program.paths
    return _finished(path.inputs[0], program.statics, program.states, path.statements, program.final)


def _finished(
    stream: int,
    statics: tuple[Static, ...],
    states: tuple[State, ...],
    statements: tuple[Statement, ...],
    final: Relation,
) -> Arriving:
    """The final relation with whatever reads no state evaluated beforehand: so that the whole query sees the tables of
    its beginning, and holds no snapshot while it waits."""
    beforehand = Statics(Fresh(final))
    moving = _moving(final)

    def change(node: Node) -> Node:
        if isinstance(node, RELATIONS) and node not in moving and _is_whole(node):
            return beforehand.snapshot(node)
        return node

    final = optimise(descend(final, change))
    return Arriving(stream, (*statics, *beforehand.planned([final])), None, RowLimit(), states, statements, final)


def _moving(final: Relation) -> NodeSet:
    """The nodes that read a state, or what a recursion around them has found so far."""
    found = NodeSet()
    for node in reversed(list(walk(final))):
        if isinstance(node, Snapshot | Working) or any(child in found for child in children(node)):
            found.add(node)
    return found


def _is_whole(relation: Relation) -> bool:
    """Whether a relation reads anything, and nothing of what is around it."""
    return any(isinstance(item, Scan) for item in walk(relation)) and not free_columns(relation)


# -- collected ---------------------------------------------------------------------------------------------------------


def _collected(relation: Relation, stream: int) -> Arriving:
    """The third way: the stream's rows with what filters and projects them are a state that keeps arrival order."""
    rows, gathered = CollectedRows(Fresh(relation)), Gathered()
    final, _ = rows.everywhere(relation)
    rows.gather(gathered, [final])
    statements = tuple(statement for _, statement in gathered.statements)
    return _finished(stream, (), tuple(gathered.states), statements, final)
