"""A small database for the binder's tests: binds SQL statements against a catalog that grows with their DDL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from catalog.catalog import Catalog
from catalog.values.types import SqlType
from planner.algebra.nodes import AggregateCall, Scalar
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.bind import Bound, Context, bind
from planner.parse.parser import parse
from planner.statements.definitions import CreateSchema, CreateStream, CreateTable
from planner.statements.statement import CreateView, Query

#: Tables that PostgreSQL accepts as well.
TABLES = """
create table region (r_regionkey int primary key, r_name char(25) not null, r_comment varchar(152));
create table nation (n_nationkey int primary key, n_name char(25) not null,
    n_regionkey int not null references region, n_comment varchar(152));
create table a (i int primary key, s smallint, b bigint, n numeric(10,2), nu numeric, f real, d double precision,
    t text, v varchar(10), c char(5), bo boolean, da date, ti time, ts timestamp, tz timestamptz, iv interval, u uuid,
    j json, jb jsonb, by bytea);
create table b (i int, x int, t text, y date);
create view av as select i, t, n*2 as nn from a where bo;
"""
STREAMS = """
create foreign table s (k int, v int, w text, at timestamp) server stream;
create view cv as select k, sum(v) as total, count(*) from s group by k;
"""


#: The objects that PostgreSQL and the binder share, each statement ended by ; at a line's end.
STATEMENTS = [
    text.strip() for text in (Path(__file__).parent / "bind_statements.sql").read_text().split(";\n") if text.strip()
]


class Database:
    """A catalog and statements bound against it."""

    def __init__(self, sql: str = "") -> None:
        self.catalog = Catalog()
        self.run(sql)

    def bind(self, sql: str, types: tuple[SqlType | None, ...] = (), **settings: Any) -> Bound:
        """Binds one statement; checks that a query's relation is well formed."""
        (raw,) = parse(sql)
        found = bind(raw, Context(self.catalog, parameter_types=types, **settings))
        if isinstance(found.statement, Query):
            validate(found.statement.relation)
        return found

    def run(self, sql: str) -> Any:
        """Binds statements one after the other, with the effects of DDL; returns the last one."""
        statement: Any = None
        for raw in parse(sql):
            statement = bind(raw, Context(self.catalog)).statement
            match statement:
                case (
                    CreateTable(table=item, exists=False)
                    | CreateStream(stream=item, exists=False)
                    | CreateSchema(schema=item, exists=False)
                ):
                    self.catalog = self.catalog.add(item)
                case CreateView(view=view, replaces=replaces, exists=False):
                    self.catalog = self.catalog.change(view) if replaces else self.catalog.add(view)
        return statement

    def query(self, sql: str) -> Query:
        """Binds a SELECT."""
        statement = self.bind(sql).statement
        assert isinstance(statement, Query)
        return statement

    def scalar(self, sql: str) -> Scalar:
        """The expression of the first output of a SELECT without grouping."""
        relation: Any = self.query(sql).relation
        found: Scalar = relation.outputs[0][1]
        return found


def standard() -> Database:
    """A database with the tables and streams above."""
    return Database(TABLES + STREAMS)


def aggregates(query: Query) -> Iterator[AggregateCall]:
    """All aggregate calls of a query."""
    return (node for node in walk(query.relation) if isinstance(node, AggregateCall))
