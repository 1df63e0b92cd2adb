"""Scalar expressions of the algebra: what one row's values become.

Owns: the closed family ``Scalar`` and aggregate calls. Every node carries its SQL type, resolved by the binder by
PostgreSQL's rules; nothing here decides a type. A ``Column`` has an identity of its own (as in Neumann's unnesting),
so a rule may move a relation without renaming what refers to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Literal as OneOf

from msgspec import Struct
from msgspec.structs import astuple, force_setattr

from catalog.values.times.precision import expressed
from catalog.values.types import BOOL, SqlType

if TYPE_CHECKING:
    from planner.algebra.relations import Relation, SortKey

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
