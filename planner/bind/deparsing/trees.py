"""Analysed expressions and queries, with the details that their texts show.

Owns: ``Node``, a closed family with the names of PostgreSQL's primnodes.h, and ``Query`` with the items of its FROM.
Each node has the oid of its type, and ``typmod`` if it can have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field, structs

BOOL = 16


class Const(Struct, frozen=True):
    """A constant; ``text`` is the output of its type's output function, None for NULL."""

    text: str | None
    oid: int
    typmod: int = -1


class Var(Struct, frozen=True):
    """A column of an item of FROM, by the column's place."""

    source: Source
    place: int
    oid: int
    typmod: int = -1


class Merged(Struct, frozen=True):
    """A column merged by JOIN ... USING that differs from both sides' columns, with its only name."""

    name: str
    oid: int
    typmod: int = -1


class Operation(Struct, frozen=True):
    """An operator with one or two operands, or IS DISTINCT FROM in place of an operator."""

    name: str
    arguments: tuple[Node, ...]
    oid: int


class Call(Struct, frozen=True):
    """A function call; ``syntax``: in SQL's own syntax; ``variadic``: the last argument is the array of a variadic
    call."""

    name: str
    arguments: tuple[Node, ...]
    oid: int
    syntax: bool = False
    variadic: bool = False


class Cast(Struct, frozen=True):
    """A conversion; ``implicit`` if analysis added it, ``relabel`` if no SQL function computes it."""

    argument: Node
    oid: int
    typmod: int = -1
    implicit: bool = False
    relabel: bool = False


class Logic(Struct, frozen=True):
    """AND, OR and NOT."""

    word: Literal["AND", "OR", "NOT"]
    arguments: tuple[Node, ...]
    oid: int = BOOL


class Test(Struct, frozen=True):
    """IS NULL, IS TRUE and similar."""

    argument: Node
    words: str
    oid: int = BOOL


class Quantified(Struct, frozen=True):
    """A comparison with ANY or ALL of an array."""

    name: str
    word: Literal["ANY", "ALL"]
    left: Node
    right: Node
    oid: int = BOOL


class Listed(Struct, frozen=True):
    """COALESCE, GREATEST, LEAST, NULLIF, GROUPING and ROW: a word and its arguments."""

    word: str
    arguments: tuple[Node, ...]
    oid: int


class RowCompare(Struct, frozen=True):
    """Row comparison with <, <=, > or >=."""

    name: str
    left: tuple[Node, ...]
    right: tuple[Node, ...]
    oid: int = BOOL


class Array(Struct, frozen=True):
    """ARRAY[...]."""

    elements: tuple[Node, ...]
    oid: int


class Case(Struct, frozen=True):
    """CASE; with an ``argument``, the conditions are the values that it is compared with."""

    argument: Node | None
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node
    oid: int


class SessionValue(Struct, frozen=True):
    """CURRENT_DATE and similar."""

    word: str
    oid: int


class Collate(Struct, frozen=True):
    """COLLATE with a collation's name."""

    argument: Node
    name: str
    oid: int


class Subscript(Struct, frozen=True):
    """An array's element or slice. A slice has two indices per dimension, either of which may be missing."""

    argument: Node
    indices: tuple[tuple[Node | None, ...], ...]
    oid: int


class SortItem(Struct, frozen=True):
    """One ORDER BY item; ``place`` is the number of the query's column, from 1, or 0 for another expression."""

    node: Node
    descending: bool = False
    nulls_first: bool = False
    place: int = 0


class Frame(Struct, frozen=True):
    """A window; ``words`` are those of its frame, with None where the next of ``offsets`` stands."""

    name: str | None
    refers: str | None
    partition: tuple[Node, ...]
    order: tuple[SortItem, ...]
    words: tuple[str | None, ...] = ()
    offsets: tuple[Node, ...] = ()


class Aggregate(Struct, frozen=True):
    """An aggregate, or with ``over`` a window function; with ``within`` (WITHIN GROUP), ``arguments`` are the direct
    ones."""

    name: str
    arguments: tuple[Node, ...]
    oid: int
    star: bool = False
    distinct: bool = False
    order: tuple[SortItem, ...] = ()
    filter: Node | None = None
    within: bool = False
    variadic: bool = False
    over: Frame | None = None


class SubLink(Struct, frozen=True):
    """A subquery in an expression; ``words`` stand between ``tests`` and the subquery (none: its value, or an
    array)."""

    kind: Literal["value", "array", "exists", "tests"]
    query: Query
    oid: int
    tests: tuple[Node, ...] = ()
    words: str = ""


Node = (
    Const | Var | Merged | Operation | Call | Cast | Logic | Test | Quantified | Listed | RowCompare | Array | Case
    | SessionValue | Collate | Subscript | Aggregate | SubLink
)  # fmt: skip


# --- queries ---------------------------------------------------------------------------------------------------------


class ColumnOf(Struct, frozen=True):
    """A column of an item of FROM or of a query, as the text names it."""

    name: str
    oid: int
    typmod: int = -1


class Source(Struct, eq=False):
    """An item of FROM that has columns; equal only to itself.

    ``name`` is its name unless another item has it. ``columns`` are the columns known to the text; ``real`` are their
    names without the aliases ``given``, followed by the names of columns that a relation got later. ``relation`` is the
    name of a relation or WITH query, and ``prefix`` the schema before it, for search paths that do not find it.
    ``using`` are the names that columns must have for JOIN ... USING, by place, and ``avoided`` names that other
    columns must not have. The columns of an aliased join stand for ``parts``.
    """

    kind: Literal["relation", "subquery", "values", "function", "cte", "join"]
    name: str
    columns: tuple[ColumnOf, ...]
    real: tuple[str, ...]
    has_alias: bool = False
    given: tuple[str, ...] = ()
    relation: str = ""
    query: Query | None = None
    call: Node | None = None
    rows: tuple[tuple[Node, ...], ...] = ()
    lateral: bool = False
    ordinality: bool = False
    schema: str = ""
    prefix: str = ""
    using: dict[int, str] = field(default_factory=dict)
    avoided: set[str] = field(default_factory=set)
    parts: tuple[Node, ...] = ()


class JoinItem(Struct, frozen=True):
    """A JOIN in FROM; ``word`` is INNER, LEFT, RIGHT or FULL, ``alias`` is the source for a name given to the join."""

    word: str
    left: FromItem
    right: FromItem
    using: tuple[str, ...] = ()
    condition: Node | None = None
    using_alias: str = ""
    alias: Source | None = None


FromItem = Source | JoinItem


class Target(Struct, frozen=True):
    """One result column of a query."""

    node: Node
    name: str


class GroupingSet(Struct, frozen=True):
    """An item of GROUP BY: expressions (``word`` ''), or ROLLUP, CUBE or GROUPING SETS of items."""

    word: str
    items: tuple[GroupingSet | Node, ...]


class SetTree(Struct, frozen=True):
    """UNION, INTERSECT or EXCEPT of queries."""

    word: str
    all: bool
    left: SetTree | Query
    right: SetTree | Query


class WithItem(Struct, frozen=True):
    """A WITH query; ``words`` are MATERIALIZED or NOT MATERIALIZED, or empty."""

    name: str
    columns: tuple[str, ...]
    words: str
    query: Query


class Query(Struct, frozen=True, kw_only=True):
    """A query: a set operation (``sets``), VALUES alone (one source of kind values), or a SELECT.

    ``merged`` are the names of JOIN ... USING columns that have no other name, so that no other column may have them.
    """

    targets: tuple[Target, ...]
    sources: tuple[Source, ...] = ()
    items: tuple[FromItem, ...] = ()
    merged: frozenset[str] = frozenset()
    recursive: bool = False
    ctes: tuple[WithItem, ...] = ()
    sets: SetTree | None = None
    distinct: bool = False
    distinct_on: tuple[Node, ...] = ()
    where: Node | None = None
    grouped: tuple[GroupingSet | Node, ...] = ()
    group_distinct: bool = False
    having: Node | None = None
    windows: tuple[Frame, ...] = ()
    order: tuple[SortItem, ...] = ()
    offset: Node | None = None
    limit: Node | None = None
    ties: bool = False


def variables(node: object) -> Iterator[Var]:
    """The columns that an expression uses, including those in its subqueries."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, Var):
            yield item
        elif isinstance(item, tuple):
            pending += item
        elif isinstance(item, Struct) and not isinstance(item, Source):
            pending += structs.astuple(item)
