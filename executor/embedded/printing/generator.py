"""sqlglot's generator for DuckDB, with fast methods for the most frequent nodes.

Owns: ``DuckGenerator``. sqlglot's own methods check each node for every clause of every dialect, which takes most of
the time of printing. A fast method prints a node that has only the parts that the method names, and leaves all others
to sqlglot. The text is sqlglot's, except that the order of NULLs is always written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from executor.printing.nodes import Expr


class DuckGenerator(DuckDB.Generator):  # type: ignore[misc]
    """Prints nodes without comments, on one line, with all names in quotes (``identify``)."""

    def sql(self, expression: Any, key: str | None = None, comment: bool = True) -> str:
        """The text of a node, or of its part ``key``; "" for None."""
        if key is not None and expression:
            expression = expression.args.get(key)
        kind = type(expression)
        if kind is str:
            return expression  # type: ignore[no-any-return]
        known = _WRITERS.get(kind)
        if known is not None and expression.args.keys() <= known[0]:
            return known[1](self, expression.args)
        written: str = super().sql(expression)
        return written

    def ordered_sql(self, expression: Any) -> str:
        """``x ASC NULLS LAST`` and similar."""
        direction = "DESC" if expression.args.get("desc") else "ASC"
        nulls = "FIRST" if expression.args.get("nulls_first") else "LAST"
        return f"{self.sql(expression.args['this'])} {direction} NULLS {nulls}"


Parts = Mapping[str, Any]
_Writer = Callable[[DuckGenerator, Parts], str]


def _listed(to: DuckGenerator, items: Iterable[Expr] | None) -> str:
    return ", ".join([to.sql(item) for item in items or ()])


def _identifier(to: DuckGenerator, parts: Parts) -> str:
    name: str = parts["this"]
    return '"' + name.replace('"', '""') + '"'


def _column(to: DuckGenerator, parts: Parts) -> str:
    name = to.sql(parts["this"])
    return f"{to.sql(table)}.{name}" if (table := parts.get("table")) is not None else name


def _literal(to: DuckGenerator, parts: Parts) -> str:
    value: str = parts["this"]
    return "'" + value.replace("'", "''") + "'" if parts["is_string"] else value


def _alias(to: DuckGenerator, parts: Parts) -> str:
    return f"{to.sql(parts['this'])} AS {to.sql(parts['alias'])}"


def _table_alias(to: DuckGenerator, parts: Parts) -> str:
    columns = parts.get("columns")
    return f"{to.sql(parts['this'])}({_listed(to, columns)})" if columns else to.sql(parts["this"])


def _table(to: DuckGenerator, parts: Parts) -> str:
    return ".".join([to.sql(part) for key in ("catalog", "db", "this") if (part := parts.get(key)) is not None])


def _subquery(to: DuckGenerator, parts: Parts) -> str:
    alias = parts.get("alias")
    return f"({to.sql(parts['this'])}) AS {to.sql(alias)}" if alias is not None else f"({to.sql(parts['this'])})"


def _select(to: DuckGenerator, parts: Parts) -> str:
    texts = ["SELECT ", _listed(to, parts["expressions"]), to.sql(parts.get("from_"))]
    texts += [to.sql(join) for join in parts.get("joins") or ()]
    texts += [to.sql(clause) for key in _CLAUSES if (clause := parts.get(key)) is not None]
    return "".join(texts)


def _join(to: DuckGenerator, parts: Parts) -> str:
    words = [parts[key] for key in ("side", "kind") if parts.get(key)]
    on = parts.get("on")
    return f" {' '.join([*words, 'JOIN'])} {to.sql(parts['this'])}{'' if on is None else f' ON {to.sql(on)}'}"


def _distinct(to: DuckGenerator, parts: Parts) -> str:
    items = parts.get("expressions")
    return f"DISTINCT {_listed(to, items)}" if items else "DISTINCT"


def _data_type(to: DuckGenerator, parts: Parts) -> str:
    sizes = parts.get("expressions")
    return f"{_type_name(parts['this'])}({_listed(to, sizes)})" if sizes else _type_name(parts["this"])


def _call(to: DuckGenerator, parts: Parts) -> str:
    items = [item for item in parts.get("expressions") or () if item is not None and not isinstance(item, bool)]
    return f"{to.normalize_func(to.sql(parts['this']))}({_listed(to, items)})"


def _case(to: DuckGenerator, parts: Parts) -> str:
    texts = [f"WHEN {to.sql(part, 'this')} THEN {to.sql(part, 'true')}" for part in parts["ifs"]]
    if default := to.sql(parts.get("default")):
        texts.append(f"ELSE {default}")
    return f"CASE {' '.join(texts)} END"


def _operator(kind: type[Any], operator: str) -> _Writer:
    """``a OP b OP c``; operands of the same operator are written without recursion."""

    def write(to: DuckGenerator, parts: Parts) -> str:
        texts = []
        stack = [parts["expression"], operator, parts["this"]]
        while stack:
            item = stack.pop()
            if type(item) is kind:
                stack += (item.args["expression"], operator, item.args["this"])
            else:
                texts.append(to.sql(item))
        return "".join(texts)

    return write


@cache
def _type_name(kind: Any) -> str:
    name: str = DuckGenerator(dialect=DuckDB()).datatype_sql(exp.DataType(this=kind))
    return name


_CLAUSES: Final = ("where", "group", "order", "limit", "offset")
_OPERATORS: Final[Mapping[type[Any], str]] = {
    exp.And: " AND ",
    exp.Or: " OR ",
    exp.EQ: " = ",
    exp.NEQ: " <> ",
    exp.LT: " < ",
    exp.LTE: " <= ",
    exp.GT: " > ",
    exp.GTE: " >= ",
    exp.Add: " + ",
    exp.Sub: " - ",
    exp.Mul: " * ",
    exp.Is: " IS ",
}
#: For each node with a fast method, the parts that it may have, and the method.
_WRITERS: Final[Mapping[type[Any], tuple[frozenset[str], _Writer]]] = {
    kind: (frozenset(parts), write)
    for kind, parts, write in (
        (exp.Identifier, ("this", "quoted"), _identifier),
        (exp.Column, ("this", "table"), _column),
        (exp.Literal, ("this", "is_string"), _literal),
        (exp.Alias, ("this", "alias"), _alias),
        (exp.TableAlias, ("this", "columns"), _table_alias),
        (exp.Table, ("this", "db", "catalog"), _table),
        (exp.Subquery, ("this", "alias"), _subquery),
        (exp.Select, ("expressions", "from_", "joins", *_CLAUSES), _select),
        (exp.From, ("this",), lambda to, parts: f" FROM {to.sql(parts['this'])}"),
        (exp.Where, ("this",), lambda to, parts: f" WHERE {to.sql(parts['this'])}"),
        (exp.Group, ("expressions",), lambda to, parts: f" GROUP BY {_listed(to, parts['expressions'])}"),
        (exp.Order, ("expressions",), lambda to, parts: f" ORDER BY {_listed(to, parts['expressions'])}"),
        (exp.Anonymous, ("this", "expressions"), _call),
        (exp.Cast, ("this", "to"), lambda to, parts: f"CAST({to.sql(parts['this'])} AS {to.sql(parts['to'])})"),
        (exp.DataType, ("this", "expressions"), _data_type),
        (exp.DataTypeParam, ("this",), lambda to, parts: to.sql(parts["this"])),
        (exp.Var, ("this",), lambda to, parts: parts["this"]),
        (exp.Null, (), lambda to, parts: "NULL"),
        (exp.Join, ("this", "side", "kind", "on"), _join),
        (exp.Exists, ("this",), lambda to, parts: f"EXISTS({to.sql(parts['this'])})"),
        (
            exp.In,
            ("this", "expressions"),
            lambda to, parts: f"{to.sql(parts['this'])} IN ({_listed(to, parts['expressions'])})",
        ),
        (exp.Distinct, ("expressions",), _distinct),
        (exp.Case, ("ifs", "default"), _case),
        (exp.Paren, ("this",), lambda to, parts: f"({to.sql(parts['this'])})"),
        (exp.Not, ("this",), lambda to, parts: f"NOT {to.sql(parts['this'])}"),
        (exp.Parameter, ("this",), lambda to, parts: f"${to.sql(parts['this'])}"),
        (exp.Star, (), lambda to, parts: "*"),
        *((kind, ("this", "expression"), _operator(kind, operator)) for kind, operator in _OPERATORS.items()),
    )
}
