"""How relations become SELECTs: the shape of the text that both engines share.

Owns: ``Block``, a SELECT under construction, and ``Selects``, which extends it by one relation at a time. Each relation
extends the SELECT while SQL's order of clauses allows it, else becomes a subquery in FROM:

    Filter(Scan)            SELECT * FROM (SELECT "a" AS "c1" FROM "t5") AS "q1" WHERE ...
    Project(Sort(Filter))   one SELECT with ORDER BY; an order below a subquery is repeated above it

Every Column prints as ``"c<id>"``, which is unique. So references need no qualifier, and a subquery refers to a column
of an enclosing row by this name alone. Expressions are printed already (``executor/printing/printer.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field
from sqlglot import exp

from executor.printing.dialect import Dialect
from executor.printing.nodes import Expr, chain, column_name, function, identifier, reference
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Fixpoint,
    InZone,
    Join,
    Limit,
    Literal,
    Project,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    SortKey,
    Unnest,
    Values,
    Window,
    Working,
)
from planner.algebra.walk import is_dependent

#: Levels of an expression that the generator may recurse over.
FREEZE: Final = 30


class Block(Struct):
    """A SELECT under construction. ``output`` None passes on all columns of FROM."""

    columns: tuple[Column, ...]
    source: Expr  # the first FROM item, or None
    joins: list[Expr] = field(default_factory=list)
    where: list[Expr] = field(default_factory=list)
    output: list[Expr] | None = None
    group: int = 0  # GROUP BY 1..group
    order: tuple[SortKey, ...] = ()
    limit: Expr = None
    offset: Expr = None
    depth: int = 1
    #: Arms of a UNION, if the block is nothing else.
    arms: tuple[str, bool, list[Block]] | None = None

    @property
    def limited(self) -> bool:
        """Whether the block has a LIMIT or OFFSET."""
        return self.limit is not None or self.offset is not None

    @property
    def open(self) -> bool:
        """Whether joins and filters may still be added."""
        return self.output is None and not self.limited and not self.order


class Selects(Dialect):
    """Turns relations into Blocks, one node at a time, and Blocks into SELECTs."""

    def __init__(self) -> None:
        self._generator = self.generator()
        self._aliases = 0

    def generate(self, node: Expr) -> str:
        """sqlglot's text of a node."""
        result: str = self._generator.generate(node, copy=False)
        return result

    def relation(self, node: Any, rest: Iterator[Any]) -> Block:
        """The Block of one relation; ``rest`` has the results for its inputs and expressions."""
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
            case InZone():
                return self._finished(next(rest))
            case _:
                raise AssertionError(type(node))

    def _leaf(self, node: Scan | Snapshot | Delta) -> Block:
        pairs = zip(node.columns, node.sources, strict=True)
        outputs = [f"{self.source(node, name)} AS {self.column(column)}" for column, name in pairs]
        text = f"SELECT {', '.join(outputs) or self._nothing()} FROM {self.leaf(node)}"
        return Block(node.columns, self._derived(exp.Var(this=text)))

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
        """The block, wrapped in a subquery if it has a select list already."""
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
        """A block that uses columns of the FROM items before it."""
        alias = exp.TableAlias(this=identifier(self._alias()))
        return exp.Lateral(this=exp.Subquery(this=self._select(block)), alias=alias)

    def _item(self, block: Block) -> Expr:
        """A block as the right side of a join."""
        bare = block.open and not block.where and not block.joins and block.source is not None and block.arms is None
        return block.source if bare else self._derived(self._select(block))

    def _group(self, node: Aggregate, block: Block, rest: Iterator[Any]) -> Block:
        block = self._below_output(block)
        columns = node.columns
        block.order = ()
        block.output = [self._named(value, column) for column, value in zip(columns, rest, strict=True)]
        if not columns:  # one row without columns
            block.output = [exp.Alias(this=function("count", exp.Star()), alias=self.name("__none"))]
        block.columns = columns
        block.group = len(node.keys)
        return self._wrap(block)

    def _window(self, node: Window, block: Block, rest: Iterator[Any]) -> Block:
        block = self._below_output(block if all(call.order_by for _, call in node.calls) else self._in_order(block))
        results = [self._named(value, column) for (column, _), value in zip(node.calls, rest, strict=True)]
        block.output = [reference(column) for column in node.input.columns] + results
        block.columns = node.columns
        block.order = ()
        return block

    def _unnest(self, node: Unnest, block: Block, items: list[Expr]) -> Block:
        table = self.series(node, self._alias())
        if table is not None:
            return Block(node.columns, table)
        block = self._below_output(self._in_order(block))
        outputs = [reference(column) for column in node.input.columns]
        outputs += [
            self._named(self.unnest(value), column) for (column, _), value in zip(node.items, items, strict=True)
        ]
        if node.ordinality is not None:
            outputs.append(self._named(self.unnest(self.places([item.copy() for item in items])), node.ordinality))
        block.output, block.columns, block.order = outputs, node.columns, ()
        return self._wrap(block)

    def _sort(self, node: Sort, block: Block) -> Block:
        if (
            block.limited
            or block.arms is not None
            or (block.output is not None and not self._orders_by_columns(node.keys))
        ):
            block = self._wrap(block)
        block.order = node.keys
        return block

    def _orders_by_columns(self, keys: tuple[SortKey, ...]) -> bool:
        """Whether sort keys are written as columns alone: an expression in ORDER BY sees no select list."""
        return all(isinstance(key.expression, ColumnRef) for key in keys)

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
        """A FROM item with WITH RECURSIVE inside, so that its name is known only there."""
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
        return exp.Alias(this=value, alias=self.column(column))

    def _alias(self) -> str:
        self._aliases += 1
        return f"q{self._aliases}"

    def _derived(self, select: Expr) -> Expr:
        """A SELECT as a FROM item."""
        return exp.Subquery(this=select, alias=self.name(self._alias()))

    def _nothing(self) -> str:
        """The select list of a SELECT without columns."""
        return f"1 AS {self.name('__none')}"

    def _clauses(self, outputs: list[Expr], source: Expr | None) -> Expr:
        """SELECT outputs FROM source. An empty list selects a constant, since SQL has no rows without columns."""
        outputs = outputs or [exp.Var(this=self._nothing())]
        return exp.Select(expressions=outputs, **({"from_": exp.From(this=source)} if source is not None else {}))

    def _wrap(self, block: Block) -> Block:
        """The block as a subquery in a new block's FROM. Its order is repeated in the new block if possible."""
        order = block.order if all(self._visible(key, block.columns) for key in block.order) else ()
        if order and not block.limited:
            block.order = ()
        select, depth = self._flattened(self._select(block), block.depth + 3)
        return Block(block.columns, self._derived(select), order=order, depth=depth)

    def _flattened(self, select: Expr, depth: int) -> tuple[Expr, int]:
        """A SELECT and its depth, as text where it is deep."""
        return (exp.Var(this=self.generate(select)), 1) if depth > FREEZE else (select, depth)

    def _kept(self, block: Block) -> Block:
        """The block as a FROM item that the engine materializes before its first row is read."""
        name = identifier(self._alias())
        table = exp.CTE(this=self._select(block), alias=exp.TableAlias(this=name), materialized=True)
        select = self._clauses([reference(column) for column in block.columns], exp.Table(this=name.copy()))
        select.set("with_", exp.With(expressions=[table]))
        select, depth = self._flattened(select, block.depth + 3)
        return Block(block.columns, self._derived(select), depth=depth)

    def _in_order(self, block: Block) -> Block:
        """The block as a FROM item that keeps its order, for an order that no ORDER BY above can repeat."""
        return self._finished(block) if block.order else block

    def _finished(self, block: Block) -> Block:
        """The block as a FROM item, as its final text."""
        return Block(block.columns, self._derived(self._select(block)), depth=block.depth + 3)

    def _visible(self, key: SortKey, columns: tuple[Column, ...]) -> bool:
        return isinstance(key.expression, ColumnRef) and key.expression.column in columns

    def _select(self, block: Block) -> Expr:
        """The finished SELECT of a block."""
        if block.arms is not None:
            return self._union(block.columns, block.arms)
        outputs = block.output
        if outputs is None:
            outputs = [exp.Var(this=", ".join(map(self.column, block.columns)))] if block.columns else []
        select = self._clauses(outputs, block.source)
        if block.joins:
            select.set("joins", block.joins)
        if block.where:
            select.set("where", exp.Where(this=chain(exp.And, block.where)))
        if block.group:
            select.set("group", exp.Group(expressions=[exp.Literal.number(i + 1) for i in range(block.group)]))
        if block.order:
            select.set("order", exp.Order(expressions=[self.expression(key) for key in block.order]))
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
