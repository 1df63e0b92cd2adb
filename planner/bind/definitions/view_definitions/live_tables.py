"""A continuous view that reads a table once, rewritten so that it reads the table as it is at each read.

Owns: the rewritten text, for queries that have one. The stream is grouped by the columns that the query uses outside of
aggregates. The query stands above these groups, where tables are read as they are::

    SELECT name, sum(x) FROM s JOIN t ON k = id GROUP BY name

    SELECT name, sum(s.sum_x) FROM (SELECT k, sum(x) AS sum_x FROM s GROUP BY k) s JOIN t ON k = id GROUP BY name

An aggregate over columns of the stream alone is computed in two steps. In any other aggregate, each group counts as
often as it has rows (``rows``). A stream on the nullable side of a join is NULL there, and counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pglast import ast
from pglast.enums import BoolExprType, JoinType, SetOperation
from pglast.stream import RawStream

from catalog.objects import Stream, View
from catalog.values.errors import SqlError
from catalog.values.identifiers import quote_name
from planner.bind.binder import new_binding
from planner.bind.calls.aggregation.aggregates import (
    AGGREGATE_NAMES,
)
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import as_created, look_up
from planner.bind.lookup.type_names import display
from planner.bind.queries.select import bind_query
from planner.bind.state.context import Context
from planner.bind.state.environment import Binding
from planner.incremental.methods.split.statics import scanned_tables
from planner.incremental.plan import plan
from planner.parse.parser import parse
from planner.statements.statement import CreateView

#: Aggregates to which it means nothing how often a row is there.
_IDEMPOTENT: Final = frozenset(("min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or"))
_ADDED: Final = frozenset(("count", "sum", "avg"))
_NULLABLE: Final[dict[JoinType | None, tuple[bool, bool]]] = {
    JoinType.JOIN_INNER: (False, False),
    JoinType.JOIN_LEFT: (False, True),
    JoinType.JOIN_RIGHT: (True, False),
    JoinType.JOIN_FULL: (True, True),
}


class _NoOtherText(Exception):
    """The query has a shape of which nothing is known here."""


def live_text(context: Context, created: CreateView) -> str | None:
    """A statement that makes the view anew with tables that are read as they are; None where none is known."""
    view = created.view
    inner = as_created(context, view)
    try:
        text = _Rewriting(new_binding(inner, parse(view.definition)[0])).text([column.name for column in view.columns])
        types = _accepted(inner, created, text)
        wanted = [display(column.type) for column in created.query.relation.columns[: len(view.columns)]]
        if types != wanted:
            names = [quote_name(column.name) for column in view.columns]
            casts = (
                name if have == want else f"{name}::{want} AS {name}"
                for name, have, want in zip(names, types, wanted, strict=True)
            )
            text = f"SELECT {', '.join(casts)} FROM ({text}) live"
            if _accepted(inner, created, text) != wanted:
                return None
    except (SqlError, _NoOtherText):
        return None
    return f"{_head(view)} AS {text};"


def _head(view: View) -> str:
    name = f"{quote_name(view.schema)}.{quote_name(view.name)}"
    options = [f"{option} = '{value}'" for option, value in view.options]
    if view.materialized:
        own = f" WITH ({', '.join(options)})" if options else ""
        return f"DROP MATERIALIZED VIEW {name}; CREATE MATERIALIZED VIEW {name}{own}"
    return f"CREATE OR REPLACE VIEW {name} WITH ({', '.join((*options, 'restart = true'))})"


def _accepted(context: Context, created: CreateView, text: str) -> list[str]:
    """The types of a query's columns. Raises what CREATE VIEW would, and where it would read tables once."""
    raw = parse(text)[0]
    query = bind_query(new_binding(context, raw), raw.node)
    if scanned_tables(plan(query, created.keeping).program.statics):
        raise _NoOtherText
    return [display(column.type) for column in query.relation.columns]


class _Rewriting:
    """One query's. It is read anew, and changed in place."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self._query = binding.raw.node
        self._from = ", ".join(map(_text, self._query.fromClause or ()))
        self._relations = list(_relations(self._query.fromClause or (), False))
        self._keys: dict[str, None] = {}
        self._made: dict[str, str] = {}  # text of what is computed below, and its name
        query = self._query
        is_plain = isinstance(query, ast.SelectStmt) and query.op == SetOperation.SETOP_NONE and not query.valuesLists
        if not is_plain or query.withClause or query.windowClause or query.lockingClause:
            raise _NoOtherText
        found = [(item, look_up(binding, item.relname, item.schemaname), null) for item, null in self._relations]
        streams = [(item, relation, null) for item, relation, null in found if isinstance(relation, Stream)]
        if len(streams) != 1 or len(found) < 2:
            raise _NoOtherText
        ((self._item, stream, self._is_nullable),) = streams
        self._columns = {column.name for column in stream.columns}
        self._name = self._item.alias.aliasname if self._item.alias else self._item.relname
        others = {column.name for _, item, _ in found if item is not stream and item for column in item.columns}
        self._unnamed = self._columns - others
        self._taken = self._columns | others

    def text(self, names: Sequence[str]) -> str:
        """The query, whose outputs have these names."""
        query = self._query
        below = [] if self._is_nullable else self._below()
        for target, name in zip(query.targetList, names, strict=True):
            if type(target.val) is not ast.ColumnRef or names_of(target.val.fields)[-1] != name:
                target.name = name
        for part in ("targetList", "whereClause", "groupClause", "havingClause", "sortClause", "distinctClause"):
            setattr(query, part, _changed(getattr(query, part), self._above))
        grouped = _Grouped(self._item, self._made, below)
        query.fromClause = _changed(query.fromClause, lambda node: self._in_from(node, grouped))
        return str(RawStream()(query)).replace(grouped.mark, grouped.text(self._keys))

    # -- the parts of the query ------------------------------------------------------------------------------------

    def _below(self) -> list[str]:
        """The conditions that the stream's rows meet by themselves, taken out of WHERE."""
        where = self._query.whereClause
        parts = list(where.args) if _is_and(where) else [where] if where is not None else []
        own = [part for part in parts if self._is_own(part)]
        rest = [part for part in parts if part not in own]
        self._query.whereClause = ast.BoolExpr(BoolExprType.AND_EXPR, tuple(rest)) if rest else None
        if len(rest) == 1:
            self._query.whereClause = rest[0]
        return [_text(part) for part in own]

    def _in_from(self, node: Any, grouped: _Grouped) -> Any:
        if node is self._item:
            alias = ast.Alias(aliasname=self._name)
            return ast.RangeVar(relname=grouped.mark, inh=True, relpersistence="p", alias=alias)
        if isinstance(node, ast.JoinExpr):
            for name in names_of(node.usingClause or ()):
                if name in self._columns:
                    self._keys[name] = None
        return self._above(node)

    def _above(self, node: Any) -> Any:
        """What stands in the place of a part above the groups; the same where that is to be looked into."""
        if isinstance(node, ast.SubLink | ast.A_Star | ast.ParamRef):
            raise _NoOtherText
        if isinstance(node, ast.ColumnRef):
            if self._is_of_stream(node):
                self._keys[names_of(node.fields)[-1]] = None
            return node
        if isinstance(node, ast.FuncCall):
            return self._call(node)
        return node

    # -- aggregates ------------------------------------------------------------------------------------------------

    def _call(self, node: Any) -> Any:
        name = names_of(node.funcname)[-1]
        if node.over is not None:
            raise _NoOtherText
        if name not in AGGREGATE_NAMES or (node.agg_distinct and not node.agg_order):
            return node
        if node.agg_order or node.agg_within_group or name not in _ADDED | _IDEMPOTENT:
            raise _NoOtherText
        is_pushed = self._is_pushed(node)
        if name in _IDEMPOTENT and not is_pushed:
            return node
        kind = self._type(_text(node))  # or an expression around it would compute in another
        found = self._in_two_steps(name, node) if is_pushed else self._weighted(name, node)
        return _parsed(f"({found})::{kind}")

    def _type(self, expression: str) -> str:
        """An expression's type over the query's rows."""
        raw = parse(f"SELECT {expression} FROM {self._from}")[0]
        return display(bind_query(new_binding(self._binding.context, raw), raw.node).relation.columns[0].type)

    def _is_pushed(self, node: Any) -> bool:
        """Whether an aggregate is over the stream's own rows, also where none is a table row's partner."""
        if self._is_nullable and not (
            node.agg_filter is None and len(node.args or ()) == 1 and isinstance(node.args[0], ast.ColumnRef)
        ):
            return False
        parts = [*(node.args or ()), *([node.agg_filter] if node.agg_filter is not None else [])]
        return bool(parts) and all(map(self._is_own, parts)) and any(map(self._uses_stream, parts))

    def _in_two_steps(self, name: str, node: Any) -> str:
        if name == "avg":
            total, number = (self._computed(_text(_renamed(node, part))) for part in ("sum", "count"))
            return f"sum({total}) / nullif(sum({number}), 0)::numeric"
        made = self._computed(_text(node))
        return f"coalesce(sum({made}), 0)" if name == "count" else f"{name}({made})"

    def _computed(self, text: str) -> str:
        """The column of an aggregate that is computed with the groups."""
        if text not in self._made:
            words = "_".join("".join(char if char.isalnum() else " " for char in text.lower()).split())[:40]
            name, number = words, 2
            while name in self._taken:
                name, number = f"{words}_{number}", number + 1
            self._taken.add(name)
            self._made[text] = name
        return f"{quote_name(self._name)}.{quote_name(self._made[text])}"

    def _weighted(self, name: str, node: Any) -> str:
        """An aggregate in which each group counts as often as it has rows."""
        rows = self._computed("count(*)")
        if self._is_nullable:
            rows = f"coalesce({rows}, 1)"
        for part in ("args", "agg_filter"):
            setattr(node, part, _changed(getattr(node, part), self._above))
        value = _text(node.args[0]) if node.args else None
        only = [_text(node.agg_filter)] if node.agg_filter is not None else []
        present = " AND ".join(f"({item})" for item in (*only, *([f"({value}) IS NOT NULL"] if value else [])))
        count = f"sum({rows})" + (f" FILTER (WHERE {present})" if present else "")
        if name == "count":
            return f"coalesce({count}, 0)"
        total = f"sum(({value}) * {rows})" + (f" FILTER (WHERE {only[0]})" if only else "")
        return total if name == "sum" else f"{total} / nullif({count}, 0)::numeric"

    # -- columns ---------------------------------------------------------------------------------------------------

    def _is_of_stream(self, node: Any) -> bool:
        if any(isinstance(item, ast.A_Star) for item in node.fields):
            raise _NoOtherText
        names = names_of(node.fields)
        if len(names) == 2:
            return bool(names[0] == self._name)
        if len(names) != 1:
            raise _NoOtherText
        return names[0] in self._unnamed

    def _uses_stream(self, part: Any) -> bool:
        return any(self._is_of_stream(item) for item in _walk(part) if isinstance(item, ast.ColumnRef))

    def _is_own(self, part: Any) -> bool:
        """Whether a part is of the stream's columns alone."""
        found = list(_walk(part))
        if any(isinstance(item, ast.SubLink | ast.A_Star) for item in found):
            raise _NoOtherText
        return all(self._is_of_stream(item) for item in found if isinstance(item, ast.ColumnRef))


class _Grouped:
    """The stream, grouped; ``mark`` stands for it until the whole is written."""

    mark: Final = "the_stream_grouped"

    def __init__(self, item: Any, made: dict[str, str], below: list[str]) -> None:
        self._stream = _text(item)
        self._made = made
        self._below = below

    def text(self, keys: dict[str, None]) -> str:
        """A subquery. Without keys it has a row only where the stream has one."""
        names = list(map(quote_name, keys))
        made = [f"{text} AS {quote_name(name)}" for text, name in self._made.items()]
        where = f" WHERE {' AND '.join(f'({part})' for part in self._below)}" if self._below else ""
        by = f" GROUP BY {', '.join(names)}" if names else " HAVING count(*) > 0"
        return f"(SELECT {', '.join((*names, *made)) or '1'} FROM {self._stream}{where}{by})"


def _relations(items: Sequence[Any], nullable: bool) -> Iterator[tuple[Any, bool]]:
    """The relations of FROM, and whether each is on the side of a join that may have no partner."""
    for item in items:
        match item:
            case ast.RangeVar() if item.alias is None or not item.alias.colnames:
                yield item, nullable
            case ast.JoinExpr(jointype=kind) if item.alias is None and not item.isNatural and kind in _NULLABLE:
                left, right = _NULLABLE[kind]
                yield from _relations((item.larg,), nullable or left)
                yield from _relations((item.rarg,), nullable or right)
            case _:
                raise _NoOtherText


def _walk(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for item in node:
            yield from _walk(item)
    elif isinstance(node, ast.Node):
        yield node
        for _, value in _parts(node):
            yield from _walk(value)


def _parts(node: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(node, name)) for name in node.__slots__]


def _changed(node: Any, change: Callable[[Any], Any]) -> Any:
    """A tree in which ``change`` has replaced parts; what it returns as it is, is looked into."""
    if isinstance(node, tuple):
        return tuple(_changed(item, change) for item in node)
    if not isinstance(node, ast.Node):
        return node
    found = change(node)
    if found is node and not isinstance(node, ast.ColumnRef):
        for name, value in _parts(node):
            if isinstance(value, tuple | ast.Node):
                setattr(node, name, _changed(value, change))
    return found


def _is_and(node: Any) -> bool:
    return isinstance(node, ast.BoolExpr) and node.boolop == BoolExprType.AND_EXPR


def _text(node: Any) -> str:
    return str(RawStream()(node))


def _parsed(expression: str) -> Any:
    return parse(f"SELECT {expression}")[0].node.targetList[0].val


def _renamed(node: Any, name: str) -> Any:
    """An aggregate call with another function's name."""
    again = _parsed(_text(node))
    again.funcname = (ast.String(sval=name),)
    return again
