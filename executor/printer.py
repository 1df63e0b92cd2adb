"""Prints algebra as an engine's SQL, through sqlglot's expression nodes and its generator.

Owns: the shape of the text that both engines share (how relations become SELECTs) and the dispatch of scalars and
aggregates to the methods and tables that a dialect overrides (``executor/embedded/dialect.py``,
``executor/spark/dialect.py``). What a dialect's tables do not name is refused (0A000): an allow-list. No client text
comes through here but as literals and quoted names, and no SQL is ever parsed.

Every Column prints as ``"c<id>"``, which is unique, so references need no qualification and a subquery's reference
to an enclosing row simply is that name. Each relation extends the SELECT under construction (a ``Block``) while
SQL's order of clauses allows it, else becomes a subquery in FROM:

    Filter(Scan)            SELECT * FROM (SELECT "a" AS "c1" FROM "t5") AS "q1" WHERE ...
    Project(Sort(Filter))   one SELECT with ORDER BY; an order below a subquery is repeated above it

Trees of any depth print: the fold is iterative, and an expression deeper than ``_FREEZE`` levels is generated at
once and embedded as text, since sqlglot's generator recurses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator

from catalog.errors import unsupported
from catalog.types import SqlType
from executor.nodes import (
    CHAINS,
    Build,
    Expr,
    binary,
    case,
    chain,
    column_name,
    function,
    identifier,
    leaf_name,
    number,
    operand,
    reference,
    text,
)
from planner.algebra import (
    Aggregate,
    Delta,
    Filter,
    Fixpoint,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    SortKey,
    Unnest,
    Values,
    Window,
    With,
    Working,
)
from planner.expression import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Exists,
    Literal,
    Parameter,
    ScalarSubquery,
    WindowCall,
)
from planner.functions import RANKING_FUNCTIONS
from planner.walk import RELATIONS, children, is_dependent

__all__ = [
    "Block",
    "Build",
    "Expr",
    "Printer",
    "binary",
    "case",
    "chain",
    "column_name",
    "function",
    "identifier",
    "leaf_name",
    "number",
    "operand",
    "reference",
    "text",
]

#: Levels of an expression that the generator may recurse over.
_FREEZE: Final = 30
#: Aggregates whose result depends on the order of their input; an ordered subquery's order becomes their own.
_LISTS: Final = ("string_agg", "array_agg")


@dataclass(slots=True)
class Block:
    """A SELECT under construction. ``output`` None passes all columns of FROM on."""

    columns: tuple[Column, ...]
    source: Expr  # the first FROM item; None: none
    joins: list[Expr] = field(default_factory=list)
    where: list[Expr] = field(default_factory=list)
    output: list[Expr] | None = None
    group: int = 0  # GROUP BY 1..group
    order: tuple[SortKey, ...] = ()
    limit: Expr = None
    offset: Expr = None
    depth: int = 1
    #: Arms of a UNION, when the block is nothing else.
    arms: tuple[str, bool, list[Block]] | None = None

    @property
    def limited(self) -> bool:
        """Whether rows were cut already."""
        return self.limit is not None or self.offset is not None

    @property
    def open(self) -> bool:
        """Whether FROM may still be joined and filtered."""
        return self.output is None and not self.limited and not self.order


class Printer:
    """Prints relations; a dialect overrides the methods below ``# -- dialect`` and extends the tables.

    One instance prints one statement at a time and is not shared between threads.
    """

    #: Scalar functions of ``planner.functions`` by canonical name.
    functions: ClassVar[Mapping[str, Build]] = {}

    def __init__(self) -> None:
        self._generator = self.generator()
        self._aliases = 0

    def print_relation(self, relation: Relation) -> str:
        """The SELECT whose rows are the relation's, columns named c<id> in the relation's order."""
        if isinstance(relation, With):
            items = ", ".join(self._definition(name, below) for name, below in relation.definitions)
            return f"WITH {items} {self.print_relation(relation.body)}"
        block = self._fold(relation)[0]
        return self.generate(self._select(block))

    def _definition(self, name: str, relation: Relation) -> str:
        """A WITH item, found under the name of a state, with its columns under their own."""
        return f"{self.generate(identifier(f's_{name}'))} AS MATERIALIZED ({self.print_relation(relation)})"

    def print_scalar(self, scalar: Any) -> str:
        """One expression as text."""
        return self.generate(self._fold(scalar)[0])

    def expression(self, scalar: Any) -> Expr:
        """One expression as a node, for a dialect that writes it elsewhere than where it stands."""
        result: Expr = self._fold(scalar)[0]
        return result

    def generate(self, node: Expr) -> str:
        """sqlglot's text of a node."""
        result: str = self._generator.generate(node, copy=False)
        return result

    # -- dialect ---------------------------------------------------------------------------------------------------

    def generator(self) -> Generator:
        """The dialect's generator, quoting every name."""
        return Dialect().generator(identify=True)

    def type(self, sql_type: SqlType) -> Expr:
        """The engine's type (an exp.DataType) for an SQL type."""
        raise unsupported(f"type {sql_type}")

    def literal(self, literal: Literal) -> Expr:
        """A constant of exactly its type."""
        raise unsupported(f"literal of type {literal.type}")

    def parameter(self, parameter: Parameter) -> Expr:
        """$n, typed."""
        raise unsupported("parameter")

    def cast(self, argument: Expr, node: Cast) -> Expr:
        """A conversion with PostgreSQL's rounding, truncation and errors."""
        return exp.Cast(this=argument, to=self.type(node.type))

    def call(self, node: Call, arguments: list[Expr]) -> Expr:
        """A function or operator of the allow-list."""
        build = self.functions.get(node.function)
        if build is None:
            raise unsupported(f"function {node.function}")
        return build(self, arguments, node)

    def aggregate(self, node: AggregateCall, arguments: list[Expr], where: Expr | None, order: list[Expr]) -> Expr:
        """An aggregate call; ``where`` is its FILTER, ``order`` its ORDER BY (``exp.Ordered``)."""
        raise unsupported(f"aggregate {node.function}")

    def window(self, node: WindowCall, arguments: list[Expr], where: Expr | None, over: Expr) -> Expr:
        """A window call; ``over`` (exp.Window) has everything but what it is over."""
        raise unsupported(f"window function {node.function}")

    def leaf(self, leaf: Scan | Snapshot | Delta) -> Expr:
        """The FROM item (with or without alias) of a leaf."""
        return exp.Table(this=identifier(leaf_name(leaf)))

    def source(self, leaf: Scan | Snapshot | Delta, name: str) -> Expr:
        """A leaf's column by its declared name."""
        return exp.Column(this=identifier(name), table=identifier(leaf_name(leaf)))

    def join(self, node: Join, right: Expr, on: Expr | None) -> Expr:
        """A join clause (exp.Join)."""
        if on is None:
            on = exp.true() if node.kind != "inner" else None
        if node.kind == "inner":
            return exp.Join(this=right, kind="CROSS" if on is None else "INNER", on=on)
        if node.kind in ("semi", "anti"):
            return exp.Join(this=right, kind=node.kind.upper(), on=on)
        return exp.Join(this=right, side=node.kind.upper(), on=on)

    def values(self, node: Values, rows: list[list[Expr]], alias: str) -> Expr:
        """A FROM item with literal rows and the columns c<id>."""
        names = [identifier(column_name(column)) for column in node.columns]
        tuples = [exp.Tuple(expressions=row) for row in rows]
        return exp.Values(expressions=tuples, alias=exp.TableAlias(this=identifier(alias), columns=names))

    def unnest(self, items: Expr) -> Expr:
        """The elements of an array as rows, in the select list; several advance in step."""
        raise unsupported("a set-returning function")

    def places(self, items: list[Expr]) -> Expr:
        """The array of the numbers from 1 to the length of the longest array."""
        raise unsupported("WITH ORDINALITY")

    def series(self, node: Unnest, alias: str) -> Expr | None:
        """A FROM item that yields the rows without an array in between, where the engine has one."""
        return None

    def subquery_scalar(self, node: ScalarSubquery, select: Expr) -> Expr:
        """A scalar subquery; the engine must raise on a second row."""
        return exp.Subquery(this=select)

    # -- the fold --------------------------------------------------------------------------------------------------

    def _fold(self, root: Any) -> tuple[Any, int]:
        """Results of all nodes, children first; a result is (Block or Expr, depth)."""
        done: list[tuple[Any, int]] = []
        stack: list[tuple[Any, int]] = [(root, -1)]
        while stack:
            node, count = stack.pop()
            if count < 0:
                below = list(children(node))
                stack.append((node, len(below)))
                stack.extend((child, -1) for child in reversed(below))
                continue
            split = len(done) - count
            results = done[split:]
            del done[split:]
            done.append(self._visit(node, results))
        return done[0]

    def _visit(self, node: Any, below: list[tuple[Any, int]]) -> tuple[Any, int]:
        """One node over its children's results."""
        below = [self._frozen(value, depth) for value, depth in below]
        rest = iter([value for value, _ in below])
        if isinstance(node, RELATIONS):
            block = self._relation(node, rest)
            block.depth = max([block.depth, *(depth for _, depth in below)])
            return block, block.depth
        if isinstance(node, SortKey):
            result = self._sort_key(node, rest)
        elif isinstance(node, AggregateCall):
            result = self._aggregate(node, rest)
        elif isinstance(node, WindowCall):
            result = self._window_call(node, rest)
        else:
            result = self._scalar(node, rest)
        chained = type(result) if type(result) in CHAINS else None
        return result, max((depth + (type(value) is not chained) for value, depth in below), default=1)

    def _frozen(self, value: Any, depth: int) -> tuple[Any, int]:
        """The value, or its text once it is so deep that the generator's recursion would matter."""
        if depth < _FREEZE or isinstance(value, Block | exp.Ordered):
            return value, depth
        return exp.Var(this=f"({self.generate(value)})"), 1

    def _scalar(self, node: Any, rest: Iterator[Any]) -> Expr:
        match node:
            case Literal():
                return self.literal(node)
            case ColumnRef():
                return reference(node.column)
            case Parameter():
                return self.parameter(node)
            case Call():
                return self.call(node, list(rest))
            case Cast():
                return self.cast(next(rest), node)
            case Case():
                branches = [(next(rest), next(rest)) for _ in node.branches]
                return case(branches, next(rest))
            case ScalarSubquery():
                return self.subquery_scalar(node, self._select(next(rest)))
            case Exists():
                return exp.Exists(this=self._select(next(rest)))
            case _:
                argument, block = next(rest), next(rest)
                return exp.In(this=operand(argument), query=exp.Subquery(this=self._select(block)))

    def _sort_key(self, key: SortKey, rest: Iterator[Any]) -> Expr:
        return exp.Ordered(this=next(rest), desc=key.descending, nulls_first=key.nulls_first)

    def _aggregate(self, node: AggregateCall, rest: Iterator[Any]) -> Expr:
        arguments = [next(rest) for _ in node.arguments]
        where = next(rest) if node.filter is not None else None
        return self.aggregate(node, arguments, where, [next(rest) for _ in node.order_by])

    def _window_call(self, node: WindowCall, rest: Iterator[Any]) -> Expr:
        arguments = [next(rest) for _ in node.arguments]
        partition = [next(rest) for _ in node.partition]
        order = [next(rest) for _ in node.order_by]
        offsets = [next(rest) for _ in node.offsets]
        where = next(rest) if node.filter is not None else None
        over = exp.Window(partition_by=partition, order=exp.Order(expressions=order) if order else None)
        if node.function not in RANKING_FUNCTIONS:
            over.set("spec", _frame(node, offsets))
        return self.window(node, arguments, where, over)

    # -- relations -------------------------------------------------------------------------------------------------

    def _relation(self, node: Any, rest: Iterator[Any]) -> Block:
        match node:
            case Scan() | Snapshot() | Delta():
                return self._leaf(node)
            case Values():
                return self._values(node, rest)
            case Filter():
                return self._filter(next(rest), next(rest))
            case Project():
                block = self._below_output(next(rest))
                block.output = [
                    self._named(value, column) for (column, _), value in zip(node.outputs, rest, strict=True)
                ]
                block.columns = node.columns
                return block
            case Join():
                return self._join(node, next(rest), next(rest), next(rest, None))
            case Aggregate():
                return self._group(node, next(rest), rest)
            case Window():
                return self._window(node, next(rest), rest)
            case Unnest():
                return self._unnest(node, next(rest), list(rest))
            case Sort():
                return self._sort(node, next(rest))
            case Limit():
                return self._limit(node, next(rest), rest)
            case Fixpoint():
                return self._fixpoint(node, next(rest), next(rest))
            case Working():
                return self._working(node)
            case SetOperation():
                return self._set_operation(node, next(rest), next(rest))
            case _:
                raise AssertionError(type(node))

    def _leaf(self, node: Scan | Snapshot | Delta) -> Block:
        outputs = [
            self._named(self.source(node, name), column)
            for column, name in zip(node.columns, node.sources, strict=True)
        ]
        select = self._clauses(outputs, self.leaf(node))
        return Block(node.columns, self._derived(select))

    def _values(self, node: Values, rest: Iterator[Any]) -> Block:
        rows = [[next(rest) for _ in row] for row in node.rows]
        if not node.columns and len(rows) == 1:
            return Block((), None)
        if not rows:
            nulls = [self._named(self.literal(Literal(None, column.type)), column) for column in node.columns]
            return Block(node.columns, self._derived(self._clauses(nulls, None)), where=[exp.false()])
        return Block(node.columns, self.values(node, rows, self._alias()))

    def _filter(self, block: Block, predicate: Expr) -> Block:
        if not (block.output is None and not block.limited and block.arms is None):
            block = self._wrap(block)
        block.where.append(predicate)
        return block

    def _below_output(self, block: Block) -> Block:
        """The block, wrapped unless it may still get its select list."""
        return block if block.output is None and not block.limited and block.arms is None else self._wrap(block)

    def _join(self, node: Join, left: Block, right: Block, on: Expr | None) -> Block:
        if not (left.open and not left.where and left.source is not None and left.arms is None):
            left = self._wrap(left)
        item = self._lateral(right) if is_dependent(node.right, node.left) else self._item(right)
        left.joins.append(self.join(node, item, on))
        left.columns = node.columns
        left.order = ()
        left.depth = max(left.depth, right.depth)
        return left

    def _lateral(self, block: Block) -> Expr:
        """A block that uses the columns of the items before it."""
        alias = exp.TableAlias(this=identifier(self._alias()))
        return exp.Lateral(this=exp.Subquery(this=self._select(block)), alias=alias)

    def _item(self, block: Block) -> Expr:
        """A block as the right side of a join."""
        bare = block.open and not block.where and not block.joins and block.source is not None and block.arms is None
        return block.source if bare else self._derived(self._select(block))

    def _group(self, node: Aggregate, block: Block, rest: Iterator[Any]) -> Block:
        block = self._below_output(block)
        columns, values = node.columns, list(rest)
        for place, (_, call) in enumerate(node.aggregates, len(node.keys)):
            if block.order and call.function in _LISTS and not call.order_by and not call.distinct:
                values[place] = self._fold(replace(call, order_by=block.order))[0]
        block.order = ()
        block.output = [self._named(value, column) for column, value in zip(columns, values, strict=True)]
        if not columns:  # one row of no columns
            block.output = [exp.Alias(this=function("count", exp.Star()), alias=identifier("__none"))]
        block.columns = columns
        block.group = len(node.keys)
        return self._wrap(block)

    def _window(self, node: Window, block: Block, rest: Iterator[Any]) -> Block:
        block = self._below_output(block)
        results = [self._named(value, column) for (column, _), value in zip(node.calls, rest, strict=True)]
        block.output = [reference(column) for column in node.input.columns] + results
        block.columns = node.columns
        block.order = ()
        return block

    def _unnest(self, node: Unnest, block: Block, items: list[Expr]) -> Block:
        table = self.series(node, self._alias())
        if table is not None:
            return Block(node.columns, table)
        block = self._below_output(block)
        outputs = [reference(column) for column in node.input.columns]
        outputs += [
            self._named(self.unnest(value), column) for (column, _), value in zip(node.items, items, strict=True)
        ]
        if node.ordinality is not None:
            outputs.append(self._named(self.unnest(self.places([item.copy() for item in items])), node.ordinality))
        block.output, block.columns, block.order = outputs, node.columns, ()
        return self._wrap(block)

    def _sort(self, node: Sort, block: Block) -> Block:
        if block.limited or block.arms is not None or (block.output is not None and not _plain(node.keys)):
            block = self._wrap(block)
        block.order = node.keys
        return block

    def _limit(self, node: Limit, block: Block, rest: Iterator[Any]) -> Block:
        if block.limited or block.arms is not None:
            block = self._wrap(block)
        block.limit = next(rest) if node.count is not None else None
        block.offset = next(rest) if node.offset is not None else None
        return block

    def _set_operation(self, node: SetOperation, left: Block, right: Block) -> Block:
        kind = "union" if node.kind == "union" else ""
        arms: list[Block] = []
        for block in (left, right):
            same = (
                kind
                and block.arms is not None
                and block.arms[:2] == (kind, node.all)
                and not block.order
                and not block.limited
            )
            arms.extend(block.arms[2] if same and block.arms is not None else [block])
        if kind:
            return Block(node.columns, None, arms=(kind, node.all, arms), depth=max(left.depth, right.depth))
        make = exp.Intersect if node.kind == "intersect" else exp.Except
        union = make(
            this=self._arm(left, node.columns), expression=self._arm(right, node.columns), distinct=not node.all
        )
        return Block(node.columns, self._derived(union), depth=max(left.depth, right.depth) + 1)

    def _fixpoint(self, node: Fixpoint, base: Block, step: Block) -> Block:
        """A FROM item of its own, in which alone its name is known."""
        union = exp.Union(
            this=self._arm(base, node.columns), expression=self._arm(step, node.columns), distinct=not node.all
        )
        names = [identifier(column_name(column)) for column in node.columns]
        table = exp.CTE(this=union, alias=exp.TableAlias(this=identifier(node.name), columns=names))
        select = self._clauses([reference(column) for column in node.columns], exp.Table(this=identifier(node.name)))
        select.set("with_", exp.With(recursive=True, expressions=[table]))
        return Block(node.columns, self._derived(select), depth=max(base.depth, step.depth) + 1)

    def _working(self, node: Working) -> Block:
        outputs = [
            self._named(reference(source), column) for source, column in zip(node.sources, node.columns, strict=True)
        ]
        return Block(node.columns, self._derived(self._clauses(outputs, exp.Table(this=identifier(node.name)))))

    def _arm(self, block: Block, columns: tuple[Column, ...]) -> Expr:
        """An input of a set operation, with the operation's column names."""
        names = [self._named(reference(old), new) for old, new in zip(block.columns, columns, strict=True)]
        return self._clauses(names, self._derived(self._select(block)))

    # -- SELECTs ---------------------------------------------------------------------------------------------------

    def _named(self, value: Expr, column: Column) -> Expr:
        return exp.Alias(this=value, alias=identifier(column_name(column)))

    def _alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    def _derived(self, select: Expr) -> Expr:
        """A SELECT as a FROM item."""
        return exp.Subquery(this=select, alias=exp.TableAlias(this=identifier(self._alias())))

    def _clauses(self, outputs: list[Expr], source: Expr | None) -> Expr:
        """SELECT outputs FROM source. An empty list selects a constant, since SQL knows no row without columns."""
        outputs = outputs or [exp.Alias(this=exp.Literal.number(1), alias=identifier("__none"))]
        return exp.Select(expressions=outputs, **({"from_": exp.From(this=source)} if source is not None else {}))

    def _wrap(self, block: Block) -> Block:
        """The block as a subquery in a new block's FROM; its order is repeated above where it still can be."""
        order = block.order if all(self._visible(key, block.columns) for key in block.order) else ()
        if order and not block.limited:
            block.order = ()
        select = self._select(block)
        depth = block.depth + 3
        if depth > _FREEZE:
            select, depth = exp.Var(this=self.generate(select)), 1
        return Block(block.columns, self._derived(select), order=order, depth=depth)

    def _visible(self, key: SortKey, columns: tuple[Column, ...]) -> bool:
        return isinstance(key.expression, ColumnRef) and key.expression.column in columns

    def _select(self, block: Block) -> Expr:
        """The finished SELECT of a block."""
        if block.arms is not None:
            return self._union(block.columns, block.arms)
        outputs = block.output
        if outputs is None:
            outputs = [reference(column) for column in block.columns]
        select = self._clauses(outputs, block.source)
        if block.joins:
            select.set("joins", block.joins)
        if block.where:
            select.set("where", exp.Where(this=chain(exp.And, block.where)))
        if block.group:
            select.set("group", exp.Group(expressions=[exp.Literal.number(i + 1) for i in range(block.group)]))
        if block.order:
            select.set("order", exp.Order(expressions=[self._fold(key)[0] for key in block.order]))
        if block.limit is not None:
            select.set("limit", exp.Limit(expression=block.limit))
        if block.offset is not None:
            select.set("offset", exp.Offset(expression=block.offset))
        return select

    def _union(self, columns: tuple[Column, ...], arms: tuple[str, bool, list[Block]]) -> Expr:
        """A balanced tree of UNIONs."""
        _, every, blocks = arms
        level = [self._arm(block, columns) for block in blocks]
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [exp.Union(this=p[0], expression=p[1], distinct=not every) if len(p) == 2 else p[0] for p in pairs]
        return level[0]


def _plain(keys: tuple[SortKey, ...]) -> bool:
    return all(isinstance(key.expression, ColumnRef) for key in keys)


def _frame(node: WindowCall, offsets: list[Expr]) -> Expr:
    """ROWS, RANGE or GROUPS BETWEEN ... AND ... EXCLUDE ..."""
    rest = iter(offsets)
    (start, start_side), (end, end_side) = (_bound(bound, rest) for bound in (node.start, node.end))
    return exp.WindowSpec(
        kind=node.mode.upper(),
        start=start,
        start_side=start_side,
        end=end,
        end_side=end_side,
        exclude=None if node.exclude == "no_others" else exp.var(node.exclude.replace("_", " ").upper()),
    )


def _bound(bound: str, offsets: Iterator[Expr]) -> tuple[Any, str | None]:
    """What sqlglot calls the value and the side of a frame's bound."""
    match bound:
        case "current_row":
            return "CURRENT ROW", None
        case "unbounded_preceding" | "unbounded_following":
            return "UNBOUNDED", bound.removeprefix("unbounded_").upper()
        case _:
            return operand(next(offsets)), bound.upper()
