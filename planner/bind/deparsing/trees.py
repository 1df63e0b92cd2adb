"""Analysed expressions and queries, as far as their texts show them.

Owns: ``Node``, a closed family with the names of PostgreSQL's primnodes.h, and ``Query`` with the items of its FROM.
Each node has the oid of its type, and ``typmod`` if it can have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field, structs

BOOL = 16


class Const(Struct, frozen=True):
    """A constant; ``text`` is what its type's output function gives, None of NULL."""

    text: str | None
    oid: int
    typmod: int = -1


class Var(Struct, frozen=True):
    """A column of an item of FROM, by its place."""

    source: Source
    place: int
    oid: int
    typmod: int = -1


class Merged(Struct, frozen=True):
    """A column of JOIN ... USING that is neither side's as it is, by the only name that it has."""

    name: str
    oid: int
    typmod: int = -1


class Operation(Struct, frozen=True):
    """An operator with one operand or two, or IS DISTINCT FROM, which stands where an operator would."""

    name: str
    arguments: tuple[Node, ...]
    oid: int


class Call(Struct, frozen=True):
    """A function; ``syntax``: in the words that SQL has for it; ``variadic``: the last argument is such an array."""

    name: str
    arguments: tuple[Node, ...]
    oid: int
    syntax: bool = False
    variadic: bool = False


class Cast(Struct, frozen=True):
    """A conversion; ``implicit`` where nobody wrote it, ``relabel`` where no function of SQL's computes it."""

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
    """IS NULL, IS TRUE and the like."""

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
    """Rows by <, <=, > or >=."""

    name: str
    left: tuple[Node, ...]
    right: tuple[Node, ...]
    oid: int = BOOL


class Array(Struct, frozen=True):
    """ARRAY[...]."""

    elements: tuple[Node, ...]
    oid: int


class Case(Struct, frozen=True):
    """CASE; with an ``argument``, conditions are what it is compared with."""

    argument: Node | None
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node
    oid: int


class SessionValue(Struct, frozen=True):
    """CURRENT_DATE and its kin."""

    word: str
    oid: int


class Collate(Struct, frozen=True):
    """COLLATE with a collation's name."""

    argument: Node
    name: str
    oid: int


class Subscript(Struct, frozen=True):
    """An array's element, or a part of it: indices, of a part two each, of which either may be missing."""

    argument: Node
    indices: tuple[tuple[Node | None, ...], ...]
    oid: int


class SortItem(Struct, frozen=True):
    """One ORDER BY item; ``place`` counts the query's columns from 1, 0 where it is none of them."""

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
    """An aggregate, or with ``over`` a window function; ``within``: WITHIN GROUP, the arguments being direct."""

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
    """A subquery in an expression; ``words`` stand between ``tests`` and it (none: its value alone, or an array)."""

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
    """A column that an item of FROM or a query has, as the text calls it."""

    name: str
    oid: int
    typmod: int = -1


class Source(Struct, eq=False):
    """An item of FROM that has columns; equal only to itself.

    ``name`` is what it is called where nothing is in the way. ``columns`` are those that the text knows; ``real`` are
    their names but for the aliases ``given``, and behind them those that a relation was given later. A relation's or a
    WITH query's own name is ``relation``, ``prefix`` what stands before it for those whose path does not find it.
    ``using`` are the names that columns must have for JOIN ... USING, by place, and ``avoided`` those that others must
    not have. Columns of an aliased join stand for ``parts``.
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
    """A JOIN in FROM; ``word`` is INNER, LEFT, RIGHT or FULL, ``alias`` what is called by a name of the join's own."""

    word: str
    left: FromItem
    right: FromItem
    using: tuple[str, ...] = ()
    condition: Node | None = None
    using_alias: str = ""
    alias: Source | None = None


FromItem = Source | JoinItem


class Target(Struct, frozen=True):
    """One column of a query."""

    node: Node
    name: str


class GroupingSet(Struct, frozen=True):
    """An item of GROUP BY: expressions (``word`` ''), or ROLLUP, CUBE or GROUPING SETS of such."""

    word: str
    items: tuple[GroupingSet | Node, ...]


class SetTree(Struct, frozen=True):
    """UNION, INTERSECT or EXCEPT of queries."""

    word: str
    all: bool
    left: SetTree | Query
    right: SetTree | Query


class WithItem(Struct, frozen=True):
    """A WITH query; ``words`` are MATERIALIZED or NOT MATERIALIZED."""

    name: str
    columns: tuple[str, ...]
    words: str
    query: Query


class Query(Struct, frozen=True, kw_only=True):
    """A query: of a set operation (``sets``), of VALUES alone (one source of kind values), or a SELECT.

    ``merged`` are the columns of JOIN ... USING that have no other name, so that no other column may have it.
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
    """The columns that an expression uses, those of its subqueries, too."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, Var):
            yield item
        elif isinstance(item, tuple):
            pending += item
        elif isinstance(item, Struct) and not isinstance(item, Source):
            pending += structs.astuple(item)
