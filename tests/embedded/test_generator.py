"""The fast methods of the generator write the same text as sqlglot's."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from executor.embedded.printing import generator
from executor.embedded.printing.generator import DuckGenerator
from executor.printing.nodes import case, chain, function, identifier, number, text


def _a() -> Any:
    return exp.Column(this=identifier('a"b'))


def _table() -> Any:
    return exp.Table(this=identifier("t"), db=identifier("main"), catalog=identifier("store"))


def _select() -> Any:
    return exp.Select(expressions=[exp.Alias(this=_a(), alias=identifier("c1"))], from_=exp.From(this=_table()))


def _whole_select() -> Any:
    """A SELECT with every clause that the printer writes."""
    join = exp.Join(this=_derived(), side="LEFT", on=exp.EQ(this=_a(), expression=number(1)))
    return exp.Select(
        expressions=[_a(), function("count", exp.Star())],
        from_=exp.From(this=_derived()),
        joins=[join],
        where=exp.Where(this=chain(exp.And, [exp.EQ(this=_a(), expression=number(-1)) for _ in range(3)])),
        group=exp.Group(expressions=[exp.Literal.number(1), exp.Literal.number(2)]),
        limit=exp.Limit(expression=number(3)),
        offset=exp.Offset(expression=number(4)),
    )


def _derived() -> Any:
    return exp.Subquery(this=_select(), alias=exp.TableAlias(this=identifier("q"), columns=[identifier("c")]))


NODES = (
    _a(),
    exp.Column(this=identifier("a"), table=identifier("t")),
    exp.Column(this=exp.Star(), table=identifier("t")),
    exp.Identifier(this="plain", quoted=False),
    text("it's"),
    text(""),
    number(12),
    number(-12),
    exp.Alias(this=_a(), alias=identifier("c")),
    _table(),
    exp.Table(this=identifier("t")),
    exp.TableAlias(this=identifier("q")),
    _derived(),
    exp.Subquery(this=_select()),
    exp.Subquery(this=exp.Union(this=_select(), expression=_select(), distinct=False)),
    _whole_select(),
    exp.Select(expressions=[number(1)]),
    exp.Select(expressions=[_a()], distinct=exp.Distinct(), from_=exp.From(this=_table())),  # written by sqlglot
    exp.Order(expressions=[_a()]),
    function("ms_name", _a(), text("x")),
    function("now"),
    exp.Cast(
        this=_a(), to=exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=[exp.DataTypeParam(this=number(9))])
    ),
    exp.TryCast(this=_a(), to=exp.DataType(this=exp.DataType.Type.INT)),
    case([(_a(), number(1)), (exp.true(), exp.null())], number(2)),
    exp.Case(ifs=[exp.If(this=_a(), true=number(1))]),
    exp.Not(this=exp.Paren(this=_a())),
    exp.Parameter(this=exp.Literal.number(3)),
    exp.Var(this="ANY TEXT"),
    exp.Exists(this=_select()),
    exp.In(this=_a(), expressions=[number(1), text("x")]),
    exp.In(this=_a(), query=exp.Subquery(this=_select())),  # written by sqlglot
    function("count", exp.Distinct(expressions=[_a()])),
    *(
        exp.Select(expressions=[_a()], from_=exp.From(this=_table()), joins=[exp.Join(this=_derived(), **parts)])
        for parts in (
            {"kind": "CROSS", "on": None},
            {"kind": "INNER", "on": exp.EQ(this=_a(), expression=_a())},
            {"side": "FULL", "on": exp.true()},
            {"kind": "ANTI", "on": exp.true()},
        )
    ),
    chain(exp.Or, [exp.Paren(this=chain(exp.And, [_a(), _a()])), _a(), exp.Or(this=_a(), expression=_a())]),
    exp.Or(this=exp.And(this=_a(), expression=_a()), expression=exp.And(this=_a(), expression=_a())),
    *(kind(this=kind(this=_a(), expression=number(1)), expression=number(2)) for kind in generator._OPERATORS),
)


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_the_text_is_sqlglots(node: Any) -> None:
    settings = {"dialect": DuckDB(), "identify": True}
    written = DuckGenerator(**settings).generate(node.copy(), copy=False)
    assert written == DuckDB.Generator(**settings).generate(node.copy(), copy=False)


def test_every_writer_is_tried() -> None:
    met = {type(part) for node in NODES for part in node.walk()}
    assert met >= set(generator._WRITERS)


def test_a_long_chain_needs_no_deep_stack() -> None:
    written = DuckGenerator(dialect=DuckDB(), identify=True).sql(chain(exp.And, [_a() for _ in range(20_000)]))
    assert written.count(" AND ") == 19_999
