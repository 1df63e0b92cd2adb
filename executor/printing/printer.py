"""Prints algebra as an engine's SQL, through sqlglot's expression nodes and its generator.

Owns: the walk over a statement's tree, children first, and the shape of expressions that both engines share: sort keys,
aggregates, windows with their frames, subqueries. ``selects`` turns relations into SELECTs; an engine's ``dialect`` has
what only that engine writes. Client text appears in the output only as literals and quoted names, and no SQL is ever
parsed.

Trees of any depth print: the fold is iterative, and an expression deeper than ``FREEZE`` levels is generated at
once and embedded as text, since sqlglot's generator recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sqlglot import exp

from executor.printing.nodes import CHAINS, Expr, case, identifier, operand
from executor.printing.selects import FREEZE, Block, Selects
from planner.algebra.functions import RANKING_FUNCTIONS
from planner.algebra.nodes import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Exists,
    InSubquery,
    InZone,
    Literal,
    Parameter,
    Relation,
    Scalar,
    ScalarSubquery,
    SortKey,
    WindowCall,
    With,
)
from planner.algebra.walk import children


class Printer(Selects):
    """Prints relations and expressions; a dialect overrides the methods of ``Dialect`` and extends its tables.

    One instance prints one statement at a time and is not shared between threads.
    """

    def print_relation(self, relation: Relation) -> str:
        """The SELECT whose rows are the relation's, columns named c<id> in the relation's order."""
        if isinstance(relation, With):
            items = ", ".join(self._definition(name, below) for name, below in relation.definitions)
            return f"WITH {items} {self.print_relation(relation.body)}"
        block = self._fold(relation)[0]
        return self.generate(self._select(block))

    def _definition(self, name: str, relation: Relation) -> str:
        """A WITH item under the name of a state, whose columns keep their own names."""
        return f"{self.generate(identifier(f's_{name}'))} AS MATERIALIZED ({self.print_relation(relation)})"

    def print_scalar(self, scalar: Any) -> str:
        """One expression as text."""
        return self.generate(self._fold(scalar)[0])

    def expression(self, scalar: Any) -> Expr:
        """One expression as a node, for a dialect that writes it at another place than its own."""
        result: Expr = self._fold(scalar)[0]
        return result

    # -- the fold --------------------------------------------------------------------------------------------------

    def _fold(self, root: Any) -> tuple[Any, int]:
        """Results of all nodes, children first; a result is (Block or Expr, depth)."""
        done: list[tuple[Any, int]] = []
        stack: list[tuple[Any, int]] = [(root, -1)]
        zones: list[str] = []
        while stack:
            node, count = stack.pop()
            if count < 0:
                leaf = _LEAVES.get(type(node))
                if leaf is not None:
                    done.append((leaf(self, node), 1))
                    continue
                if isinstance(node, InZone):
                    zones.append(self.in_zone(node.zone))
                below = children(node)
                leaves = [_LEAVES.get(type(child)) for child in below]
                if None in leaves:
                    stack.append((node, len(below)))
                    stack += [(child, -1) for child in below[::-1]]
                    continue
                results = [(write(self, child), 1) for write, child in zip(leaves, below, strict=True) if write]
            else:
                split = len(done) - count
                results = done[split:]
                del done[split:]
            done.append(self._visit(node, results))
            if isinstance(node, InZone):
                self.in_zone(zones.pop())
        return done[0]

    def _visit(self, node: Any, below: list[tuple[Any, int]]) -> tuple[Any, int]:
        """One node over its children's results."""
        deepest = max([depth for _, depth in below], default=0)
        if deepest >= FREEZE:
            below = [self._frozen(value, depth) for value, depth in below]
            deepest = max([depth for _, depth in below])
        values = [value for value, _ in below]
        write = _SCALARS.get(type(node))
        if write is None:
            block = self.relation(node, iter(values))
            block.depth = max(block.depth, deepest)
            return block, block.depth
        result = write(self, node, values)
        kind = type(result)
        if kind in CHAINS:
            return result, max([depth + (type(value) is not kind) for value, depth in below], default=1)
        return result, deepest + 1

    def _frozen(self, value: Any, depth: int) -> tuple[Any, int]:
        """The expression, or its text if it is so deep that sqlglot's generator would recurse too far."""
        if depth < FREEZE or isinstance(value, Block | exp.Ordered):
            return value, depth
        return exp.Var(this=f"({self.generate(value)})"), 1

    def _scalar(self, node: Scalar, below: list[Any]) -> Expr:
        """A scalar over the printed forms of its children."""
        leaf = _LEAVES.get(type(node))
        return _SCALARS[type(node)](self, node, below) if leaf is None else leaf(self, node)

    def _sort_key(self, key: SortKey, value: Expr) -> Expr:
        return exp.Ordered(this=value, desc=key.descending, nulls_first=key.nulls_first)

    def _aggregate(self, node: AggregateCall, values: list[Any]) -> Expr:
        rest = iter(values)
        arguments = [next(rest) for _ in node.arguments]
        where = next(rest) if node.filter is not None else None
        return self.aggregate(node, arguments, where, [next(rest) for _ in node.order_by])

    def _window_call(self, node: WindowCall, values: list[Any]) -> Expr:
        rest = iter(values)
        arguments = [next(rest) for _ in node.arguments]
        partition = [next(rest) for _ in node.partition]
        order = [next(rest) for _ in node.order_by]
        offsets = [next(rest) for _ in node.offsets]
        where = next(rest) if node.filter is not None else None
        over = exp.Window(partition_by=partition, order=exp.Order(expressions=order) if order else None)
        if node.function not in RANKING_FUNCTIONS:
            over.set("spec", _frame(node, offsets))
        return self.window(node, arguments, where, over)

    def _case(self, values: list[Any]) -> Expr:
        *branches, otherwise = values
        return case(list(zip(branches[::2], branches[1::2], strict=True)), otherwise)

    def _in(self, argument: Expr, block: Block) -> Expr:
        return exp.In(this=operand(argument), query=exp.Subquery(this=self._select(block)))


#: Printing methods of scalars without children.
_LEAVES: Final[Mapping[type[Any], Callable[[Any, Any], Expr]]] = {
    Literal: lambda to, node: to.literal(node),
    ColumnRef: lambda to, node: exp.Column(this=to.column(node.column)),
    Parameter: lambda to, node: to.parameter(node),
}
#: Printing methods of all other scalars, of calls and of sort keys, over their children's printed forms.
_SCALARS: Final[Mapping[type[Any], Callable[[Any, Any, list[Any]], Expr]]] = {
    Call: lambda to, node, below: to.call(node, below),
    Cast: lambda to, node, below: to.cast(below[0], node),
    Case: lambda to, node, below: to._case(below),
    ScalarSubquery: lambda to, node, below: to.subquery_scalar(node, to._select(below[0])),
    Exists: lambda to, node, below: exp.Exists(this=to._select(below[0])),
    InSubquery: lambda to, node, below: to._in(*below),
    SortKey: lambda to, node, below: to._sort_key(node, below[0]),
    AggregateCall: lambda to, node, below: to._aggregate(node, below),
    WindowCall: lambda to, node, below: to._window_call(node, below),
}


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
    """sqlglot's names for the value and the side of a frame's bound."""
    match bound:
        case "current_row":
            return "CURRENT ROW", None
        case "unbounded_preceding" | "unbounded_following":
            return "UNBOUNDED", bound.removeprefix("unbounded_").upper()
        case _:
            return operand(next(offsets)), bound.upper()
