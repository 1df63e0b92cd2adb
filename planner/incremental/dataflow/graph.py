"""A dataflow as data: nodes in the order in which changes pass them.

A node's rows are a leaf (``Snapshot``) of other nodes' relations. The rows that changed are another leaf, with one more
column, the weight: by how many such rows there are more. Leaves' names begin with the ``scope`` of the dataflow, so
that an engine may keep the plans of many dataflows. Columns of rows are called as
``planner.incremental.names.stored_name`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from planner.algebra.nodes import Column, ColumnRef, Relation, Scan, Snapshot
from planner.incremental.names import stored_name

#: Names of columns by which rows are found; all rows where there are none.
Key = tuple[str, ...]


class Source(Struct, frozen=True):
    """The rows of a table, of a state, or of a view whose rows another dataflow keeps: they change by themselves."""

    id: int
    definition: Scan | Snapshot

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those that are read."""
        return self.definition.columns

    @property
    def is_view(self) -> bool:
        """Whether its rows are kept by another dataflow."""
        return isinstance(self.definition, Scan) and self.definition.kind == "view"


class Constant(Struct, frozen=True):
    """Rows that never change."""

    id: int
    definition: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        """The relation's."""
        return self.definition.columns


class Shared(Struct, frozen=True):
    """The rows of another ``node`` of an equal definition, under columns of its own."""

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    node: int
    #: The other node's columns.
    shown: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        """The node that it reads."""
        return (self.node,)

    def key_below(self, key: Key) -> Key:
        """Names of its columns as the other node has them."""
        return _renamed(key, self.columns, self.shown)


class Fetch(Struct, frozen=True):
    """Rows of ``node`` whose ``key`` equals the ``columns`` of rows at hand of node ``by``, none if that is None; all
    where the key is empty."""

    node: int
    key: Key
    by: int | None
    columns: Key


class Term(Struct, frozen=True):
    """What a change of ``node`` changes: ``relation`` over the changed rows and those of other nodes, which ``fetches``
    find one after the other.

    With an ``own_key`` the relation is no sum over the node's rows. It is then evaluated over the rows with the changed
    keys as they were, and as they are; the change is the difference. Else it passes the weight ``weight`` on.
    """

    node: int
    relation: Relation
    fetches: tuple[Fetch, ...] = ()
    own_key: Key | None = None
    weight: Column | None = None


class Propagated(Struct, frozen=True):
    """Filters, projections and joins (``propagation``)."""

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    terms: tuple[Term, ...]

    @property
    def inputs(self) -> tuple[int, ...]:
        """The nodes that it reads."""
        changing = dict.fromkeys(term.node for term in self.terms)
        fetched = dict.fromkeys(fetch.node for term in self.terms for fetch in term.fetches)
        return tuple({**changing, **fetched})


class Retracted(Struct, frozen=True):
    """A grouping with a state of sums (``retraction``): a row of ``state`` columns for each group that has rows, first
    those of the ``group``, of which ``key`` has those by which rows are found, then sums.

    ``fill`` makes the states of all groups, ``partial`` those of rows of ``node`` with a ``weight`` of 1 or -1.
    ``merge`` adds up states (``states_trace``), and ``final`` makes groups of states with a ``weight``
    (``groups_trace``). It is for another grouping if it ``is_auxiliary`` (``higher_order``).
    """

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    node: int
    state: tuple[Column, ...]
    group: Key
    key: Key
    fill: Relation
    partial: Relation
    merge: Relation
    final: Relation
    weight: Column
    is_auxiliary: bool = False

    @property
    def inputs(self) -> tuple[int, ...]:
        """The node that it reads."""
        return (self.node,)


class Recomputed(Struct, frozen=True):
    """An operator whose rows with a key depend on its inputs' rows with that key alone (``recomputation``).

    ``keys``: by input, its key columns. With ``own_key``, by which its own rows are found, those of touched keys are
    replaced; else they are computed twice, as they were and as they are.
    """

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    relation: Relation
    keys: tuple[tuple[int, Key], ...]
    own_key: Key | None

    @property
    def inputs(self) -> tuple[int, ...]:
        """The nodes that it reads."""
        return tuple(node for node, _ in self.keys)


class FirstRows(Struct, frozen=True):
    """The rows of ``node`` at the places ``first`` to ``last`` of an order, the latter not among them (``first_rows``).

    At least ``last`` rows are kept, and ``spare`` where they are made anew. ``ordered`` sorts candidates
    (``candidates_trace``), which are rows with a ``weight`` and whether they ``were_kept``; ``filled`` has the first
    ``spare`` of them.
    """

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    node: int
    first: int
    last: int
    spare: int
    weight: Column
    were_kept: Column
    ordered: Relation
    filled: Relation

    @property
    def inputs(self) -> tuple[int, ...]:
        """The node that it reads."""
        return (self.node,)


class FirstOfPartitions(Struct, frozen=True):
    """The first rows of each partition of the rows of ``node``, beside their places in it (``first_of_partitions``).

    It has at least those whose place is up to ``last``, and may have more. Rows of both nodes are found by ``key``.
    ``filled`` chooses rows of all rows of partitions. ``chosen`` chooses among candidates (``candidates_trace``): those
    that are kept, which have the number ``was``, changed ones, and those that are ``gone``. Its last column is true for
    rows of partitions that are to be filled.
    """

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    node: int
    key: Key
    last: int
    number: Column
    was: Column
    gone: Column
    chosen: Relation
    filled: Relation

    @property
    def inputs(self) -> tuple[int, ...]:
        """The node that it reads."""
        return (self.node,)


class OrderKey(Struct, frozen=True):
    """A column of an order."""

    column: str
    descending: bool
    nulls_first: bool


class OrderedWindow(Struct, frozen=True):
    """The rows of ``node`` beside values of window functions over one order (``ordered_windows``).

    A value depends on its row, so many ``preceding`` and ``following`` ones, and where rows have a ``position`` on all
    in front. With a ``distance``, a change reaches the rows whose values of the order, as integers, are at most the
    first number before its own, and the second one behind. Where it ``has_peers``, a value is one of all rows that tie;
    where there are ``ties``, rows that tie are in the order of a hash of these columns, or the reverse of that in an
    order that ``is_reverse``. Values of rows behind a row depend on it by its ``state``, if they are further away than
    said, and by what is ``added_up`` in front of them, where the same sum may have other digits each time. ``fill``
    makes the rows of the node below, whose columns are ``given``. ``computed`` makes those of candidates
    (``candidates_trace``) that are ``touched``: they have a ``tie`` that orders rows that tie, the ``span`` of their
    partition in which they are, and the columns ``carried`` of the row in front of that, if there is one in ``front``.
    """

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    node: int
    fill: Relation
    given: tuple[Column, ...]
    partition: Key
    order: tuple[OrderKey, ...]
    preceding: int
    following: int
    distance: tuple[int, int] | None
    position: str | None
    has_peers: bool
    ties: Key
    is_reverse: bool
    tie: Column
    touched: Column
    span: Column
    front: Column
    state: Key
    added_up: Key
    carried: tuple[tuple[str, Column], ...]
    computed: Relation

    @property
    def inputs(self) -> tuple[int, ...]:
        """The node that it reads."""
        return (self.node,)


class TimeBound(Struct, frozen=True):
    """A column of a node, and how its values compare (gt, ge, lt, le) with a bound."""

    column: str
    function: str


class TimeBounded(Struct, frozen=True):
    """The rows of ``node`` on the right side of ``bounds`` (``time_bounds``).

    ``times`` has one row with a column for each bound; its first parameter is the time of the read.
    """

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    node: int
    bounds: tuple[TimeBound, ...]
    times: Relation

    @property
    def inputs(self) -> tuple[int, ...]:
        """The node that it reads."""
        return (self.node,)


class Ranked(Struct, frozen=True):
    """The rows of a recursion as its step reads them, with a rank behind them (``recursion``)."""

    id: int
    columns: tuple[Column, ...]
    definition: Relation


class Recursive(Struct, frozen=True):
    """The rows of a recursion: those of ``base``, and those that its step makes of rows of its own (``recursion``).

    ``step`` are the nodes through which changes of the ``ranked`` rows, and of what the step reads beside them, pass.
    The last one has the step's rows, and behind them the rank of the row that each comes from. ``fill`` makes all rows,
    with ``all`` and their ranks, ``base_fill`` those of the base. Without ``all`` equal rows are one: rows are found by
    the columns ``key`` of the ranked ones, and ``alike`` has for each of some rows (``candidates_trace``), by its
    ``place``, the ``first`` place of one that is equal. Where they ``are_exact``, rows are equal if their bits are.
    """

    id: int
    columns: tuple[Column, ...]
    definition: Relation
    all: bool
    base: int
    base_fill: Relation
    fill: Relation
    ranked: Ranked
    step: tuple[Operator, ...]
    inputs: tuple[int, ...]
    key: Key
    are_exact: bool
    alike: Relation
    place: Column
    first: Column

    @property
    def node(self) -> int:
        """The node whose rows it has, without their ranks."""
        return self.ranked.id

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns of that node that it has."""
        return self.ranked.columns[:-1]

    @property
    def rank(self) -> Column:
        """The rank of a row."""
        return self.ranked.columns[-1]

    def key_below(self, key: Key) -> Key:
        """Names of its columns as the other node has them."""
        return _renamed(key, self.columns, self.shown)


Operator = (
    Propagated
    | Retracted
    | Recomputed
    | FirstRows
    | FirstOfPartitions
    | OrderedWindow
    | TimeBounded
    | Recursive
    | Shared
)
DataflowNode = Source | Constant | Ranked | Operator


class Dataflow(Struct, frozen=True):
    """``nodes`` in order, inputs first. ``kept`` has the nodes whose rows are kept, with the keys by which they are
    found, ``looked_up`` those whose rows are found where a table has them (``looked_up``). ``final`` makes the
    relation's rows from those of ``outputs``, from tables, states and views."""

    scope: str
    nodes: tuple[DataflowNode, ...]
    kept: Mapping[int, tuple[Key, ...]]
    outputs: tuple[int, ...]
    final: Relation
    looked_up: Mapping[int, tuple[Key, ...]] = {}

    @property
    def showing(self) -> dict[int, Shared | Recursive]:
        """The nodes that have the rows of others."""
        return {node.id: node for node in every(self.nodes) if isinstance(node, Shared | Recursive)}

    @property
    def bounded(self) -> dict[int, TimeBounded]:
        """The nodes whose rows depend on the time of the read."""
        return {node.id: node for node in self.nodes if isinstance(node, TimeBounded)}


def every(nodes: Iterable[DataflowNode]) -> Iterator[DataflowNode]:
    """The nodes, and those within a recursion before it."""
    for node in nodes:
        if isinstance(node, Recursive):
            yield node.ranked
            yield from node.step
        yield node


def chooses(nodes: Mapping[int, DataflowNode] | Sequence[DataflowNode], node: int) -> bool:
    """Whether another evaluation of a node's definition may have other rows."""
    match nodes[node]:
        case Shared(node=other):
            return chooses(nodes, other)
        case Recomputed(own_key=key):
            return key is not None
        case found:
            return isinstance(found, FirstRows | FirstOfPartitions | OrderedWindow | TimeBounded | Ranked | Recursive)


def rows_trace(scope: str, node: int) -> str:
    """The trace to which a node's rows are bound."""
    return f"{scope}_{node}"


def change_trace(scope: str, node: int) -> str:
    """The trace to which a node's changed rows are bound."""
    return f"{scope}_{node}_change"


def states_trace(scope: str, node: int) -> str:
    """The trace to which the states of a grouping are bound that are added up."""
    return f"{scope}_{node}_states"


def groups_trace(scope: str, node: int) -> str:
    """The trace to which the states of a grouping are bound that are shown."""
    return f"{scope}_{node}_groups"


def candidates_trace(scope: str, node: int) -> str:
    """The trace to which the rows are bound of which the first ones are chosen, or of which some are equal."""
    return f"{scope}_{node}_candidates"


def leaf(trace: str, columns: tuple[Column, ...]) -> Snapshot:
    """The leaf of a trace whose columns are called as their numbers say."""
    return Snapshot(trace, columns, names_of(columns))


def names_of(columns: Iterable[Column]) -> Key:
    """What columns are called in rows."""
    return tuple(map(stored_name, columns))


def _renamed(key: Key, columns: tuple[Column, ...], others: tuple[Column, ...]) -> Key:
    names = dict(zip(names_of(columns), names_of(others), strict=True))
    return tuple(names[name] for name in key)


def references(columns: tuple[Column, ...]) -> tuple[tuple[Column, ColumnRef], ...]:
    """Outputs of a projection that pass columns on."""
    return tuple((column, ColumnRef(column)) for column in columns)
