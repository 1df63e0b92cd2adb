"""The trees between SQL text and both engines: relations (``Relation``), and scalar expressions (``Scalar``).

Relations have scalars, and subqueries are scalars that have a relation, so both closed families stand here. Nodes are
frozen. Each knows its output columns or its SQL type, which the binder resolves by PostgreSQL's rules; nothing here
decides a type. Semantics of relations are bags, as SQL's. Nothing here knows SQL text or engines.

A ``Column`` has an identity of its own (as in Neumann's unnesting), so a rule may move a relation without renaming what
refers to it. Building a node checks nothing: ``planner.algebra.validate`` asserts that a whole tree is well formed.
"""

from __future__ import annotations

from typing import Literal as OneOf

from msgspec import Struct
from msgspec.structs import astuple, force_setattr

from catalog.values.times.precision import expressed
from catalog.values.types import BOOL, SqlType

#: Python values of literals, by SQL type: bool, int, float, Decimal, str (text, uuid, json), bytes,
#: datetime.date, .time, .datetime (aware for timestamptz); an interval is (months, days, microseconds);
#: an array is a tuple of its elements' values.
Value = object


class Column(Struct, frozen=True):
    """A column that some relation produces; equal only to itself, by ``id``. Its type is ``expressed``."""

    id: int
    name: str
    type: SqlType
    nullable: bool = True

    def __post_init__(self) -> None:
        if (kind := expressed(self.type)) is not self.type:
            force_setattr(self, "type", kind)

    def __hash__(self) -> int:
        return self.id


class Literal(Struct, frozen=True):
    """A constant; ``value`` None is NULL."""

    value: Value
    type: SqlType


class ColumnRef(Struct, frozen=True):
    """The value of a column of the input, or of an enclosing query's row inside a subquery."""

    column: Column

    @property
    def type(self) -> SqlType:
        """The column's type."""
        return self.column.type


class Parameter(Struct, frozen=True):
    """$n of the extended protocol, n = ``index`` + 1."""

    index: int
    type: SqlType


class Branch(Struct, frozen=True, dict=True):
    """A node with nodes below it.

    The walker keeps what the tree contains and uses (``planner.algebra.walk.contents``, ``used_columns``) beside the
    fields; copies and equality do without it.
    """


class Nested(Branch, frozen=True):
    """A node that holds scalars and is hashed by Python, which refuses a tree that is too deep (RecursionError), as its
    ``==`` does: the hash of a plain struct recurses in C without looking, and would end the process.
    """

    def __hash__(self) -> int:
        return hash(astuple(self))


class Call(Nested, frozen=True):
    """A function or operator of the allow-list ``planner.algebra.functions``, by its canonical name."""

    function: str
    arguments: tuple[Scalar, ...]
    type: SqlType


class Cast(Nested, frozen=True):
    """A conversion; ``explicit`` truncates varchar(n) where an assignment would raise 22001."""

    argument: Scalar
    type: SqlType
    explicit: bool = False


class Case(Nested, frozen=True):
    """The result of the first true condition, else ``otherwise``. CASE x WHEN y is bound as CASE WHEN x = y."""

    branches: tuple[tuple[Scalar, Scalar], ...]
    otherwise: Scalar
    type: SqlType


class ScalarSubquery(Branch, frozen=True):
    """The one column of the at most one row of a relation; NULL where it has none, 21000 where it has more."""

    relation: Relation

    @property
    def type(self) -> SqlType:
        """The type of the subquery's only column."""
        return self.relation.columns[0].type


class Exists(Branch, frozen=True):
    """Whether the relation has a row."""

    relation: Relation

    @property
    def type(self) -> SqlType:
        """boolean."""
        return BOOL


class InSubquery(Branch, frozen=True):
    """``argument`` = ANY (relation), three-valued. NOT IN is ``not`` around it."""

    argument: Scalar
    relation: Relation

    @property
    def type(self) -> SqlType:
        """boolean."""
        return BOOL


Scalar = Literal | ColumnRef | Parameter | Call | Cast | Case | ScalarSubquery | Exists | InSubquery


class AggregateCall(Branch, frozen=True):
    """An aggregate over a group: one of ``planner.algebra.functions.AGGREGATES``; no argument means count(*)."""

    function: str
    arguments: tuple[Scalar, ...]
    type: SqlType
    distinct: bool = False
    filter: Scalar | None = None
    order_by: tuple[SortKey, ...] = ()


FrameMode = OneOf["rows", "range", "groups"]
FrameBound = OneOf["unbounded_preceding", "preceding", "current_row", "following", "unbounded_following"]
FrameExclusion = OneOf["no_others", "current_row", "group", "ties"]


class WindowCall(Branch, frozen=True):
    """An aggregate, or one of ``planner.algebra.functions.WINDOW_FUNCTIONS``, over the rows around a row.

    ``offsets`` are the start's and then the end's, of those bounds that have one (preceding, following).
    """

    function: str
    arguments: tuple[Scalar, ...]
    type: SqlType
    partition: tuple[Scalar, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    mode: FrameMode = "range"
    start: FrameBound = "unbounded_preceding"
    end: FrameBound = "current_row"
    exclude: FrameExclusion = "no_others"
    offsets: tuple[Scalar, ...] = ()
    filter: Scalar | None = None


# -- relations --------------------------------------------------------------------------------------------------------

JoinKind = OneOf["inner", "left", "right", "full", "semi", "anti"]
SetKind = OneOf["union", "intersect", "except"]
#: What a change has beside a view's row: an LSN, and how many such rows more the view has at it.
CHANGE_SOURCES = ("__at", "__diff")
#: What numbers a table's rows while a transaction lasts: a hidden source of its scans.
ROW_ID = "__rowid"
#: The source of a leaf's column that says in which of the leaf's parts, files or so, a row is.
PART = "__part"


class SortKey(Branch, frozen=True):
    """One ORDER BY item; PostgreSQL's default is nulls last ascending, nulls first descending."""

    expression: Scalar
    descending: bool = False
    nulls_first: bool = False


class Scan(Branch, frozen=True):
    """All rows of a table, stream, table over files, continuous view's result or system view, those that are kept of a
    stream (``history``), or those that a query gives that was separated from its server (``query``, whose id is
    ``name``).

    ``oid`` names the catalog object; ``columns[i]`` carries its column ``sources[i]``. ``changes`` are those of a
    continuous view, as they come: CHANGE_SOURCES and its columns by their places, from the LSN ``since`` on (NULL: from
    now on; None: all rows that there are first).
    """

    oid: int
    name: str
    kind: OneOf["table", "stream", "files", "view", "system", "changes", "history", "query"]
    columns: tuple[Column, ...]
    sources: tuple[str, ...]
    since: Scalar | None = None

    @property
    def arrives(self) -> bool:
        """Whether its rows are those that come while the query runs."""
        return self.kind in ("stream", "changes")


class Values(Branch, frozen=True):
    """Literal rows; a query without FROM is a Project over one row of no columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Scalar, ...], ...]


class Snapshot(Struct, frozen=True):
    """All rows of a program's state ``trace`` at the statement's LSN, merged by key."""

    trace: str
    columns: tuple[Column, ...]
    sources: tuple[str, ...]


class Delta(Struct, frozen=True):
    """The rows of stream ``oid`` in the statement's LSN interval.

    The hidden columns ``__lsn`` and ``__ordinal`` (bigint) are sources like any other: together they are arrival order.
    """

    oid: int
    name: str
    columns: tuple[Column, ...]
    sources: tuple[str, ...]


class Filter(Branch, frozen=True):
    """The input's rows for which ``predicate`` is true."""

    input: Relation
    predicate: Scalar

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's."""
        return self.input.columns


class Project(Branch, frozen=True):
    """One row per input row, with the expressions ``outputs`` as its columns; nothing passes by itself."""

    input: Relation
    outputs: tuple[tuple[Column, Scalar], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of ``outputs``."""
        return tuple(column for column, _ in self.outputs)


class Join(Branch, frozen=True):
    """Pairs of rows for which ``predicate`` (None: all pairs) is true; outer kinds keep rows without a partner,
    semi and anti give the left rows that have one or none.

    The right side of an inner or left join may use the left's columns (LATERAL): it is then evaluated for each row.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    predicate: Scalar | None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Left's and right's; left's only for semi and anti. (Nullability after outer joins is the binder's matter.)"""
        if self.kind in ("semi", "anti"):
            return self.left.columns
        return self.left.columns + self.right.columns


class Aggregate(Branch, frozen=True):
    """One row per distinct tuple of ``keys`` (NULLs are equal) with the aggregates' results; without keys just one."""

    input: Relation
    keys: tuple[tuple[Column, Scalar], ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Keys, then aggregates."""
        return tuple(column for column, _ in self.keys) + tuple(column for column, _ in self.aggregates)


class Window(Branch, frozen=True):
    """The input's rows with the results of window functions, each over the rows of its window, beside them."""

    input: Relation
    calls: tuple[tuple[Column, WindowCall], ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's, then the results."""
        return self.input.columns + tuple(column for column, _ in self.calls)


class Unnest(Branch, frozen=True):
    """Each of the input's rows once for every place of the longest of its arrays ``items``, with their elements there
    (NULL beyond an array's end) and the place's number as ``ordinality``; not at all where they are empty or NULL.
    """

    input: Relation
    items: tuple[tuple[Column, Scalar], ...]
    ordinality: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's, then the elements', then the number."""
        number = () if self.ordinality is None else (self.ordinality,)
        return self.input.columns + tuple(column for column, _ in self.items) + number


class Sort(Branch, frozen=True):
    """The input's rows in order of ``keys``."""

    input: Relation
    keys: tuple[SortKey, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's."""
        return self.input.columns


class Limit(Branch, frozen=True):
    """The first ``count`` rows (None: all) after ``offset`` (None: 0) of the input."""

    input: Relation
    count: Scalar | None
    offset: Scalar | None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's."""
        return self.input.columns


class SetOperation(Branch, frozen=True):
    """UNION, INTERSECT or EXCEPT, by bags when ``all``; ``columns`` are new and typed as both inputs' are."""

    kind: SetKind
    all: bool
    left: Relation
    right: Relation
    columns: tuple[Column, ...]


class Fixpoint(Branch, frozen=True):
    """WITH RECURSIVE: the rows of ``base``, then those of ``step`` over the rows that came last, until none comes.

    ``step`` reads them by the ``Working`` of the same ``name``. Without ``all`` a row that was there before counts as
    none. ``columns`` are new and typed as both inputs' are.
    """

    name: str
    all: bool
    base: Relation
    step: Relation
    columns: tuple[Column, ...]


class Working(Struct, frozen=True):
    """The rows that came last in the ``Fixpoint`` around it: all of its columns, in its order."""

    name: str
    columns: tuple[Column, ...]
    sources: tuple[Column, ...]


class InZone(Branch, frozen=True):
    """The rows of ``input``, which mean the time zone ``zone`` where they are of the TimeZone setting: a view's own in
    a query of another setting. No order of rows goes through it."""

    input: Relation
    zone: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The input's."""
        return self.input.columns


class With(Branch, frozen=True):
    """The rows of ``body``, in which a ``Snapshot`` of a definition's name is that definition's rows, computed once.

    Definitions may read earlier ones. Stands at the root of an ad hoc query only.
    """

    definitions: tuple[tuple[str, Relation], ...]
    body: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        """The body's."""
        return self.body.columns


Relation = (
    Scan
    | Values
    | Snapshot
    | Delta
    | Filter
    | Project
    | Join
    | Aggregate
    | Window
    | Unnest
    | Sort
    | Limit
    | SetOperation
    | Fixpoint
    | Working
    | InZone
    | With
)
