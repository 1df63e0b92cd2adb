"""Queries: shapes of relations, TPC-H and the thesis' figures, scopes, streams and views."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.values.errors import SqlError
from catalog.values.types import INT4, INT8, QUOTIENT, TEXT, SqlType, numeric
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Column,
    ColumnRef,
    Exists,
    Filter,
    InSubquery,
    Join,
    Limit,
    Literal,
    Project,
    ScalarSubquery,
    Scan,
    SetOperation,
    Sort,
    Values,
)
from planner.algebra.validate import validate
from planner.algebra.walk import free_columns, walk
from planner.statements.statement import CreateView
from tests.planner.binding import Database, aggregates, standard
from tests.rig.thesis import EXAMPLES
from tests.rig.tpch import QUERIES, TABLES


@pytest.fixture(scope="module")
def database() -> Database:
    return standard()


@pytest.fixture(scope="module")
def tpch() -> Database:
    names = [name for name in TABLES if name != "lineitem"]
    ddl = [f"create table {name} ({TABLES[name]})" for name in names]
    return Database(";".join([*ddl, f"create foreign table lineitem ({TABLES['lineitem']}) server stream"]))


def names_and_types(view: CreateView) -> list[tuple[str, SqlType]]:
    return [(column.name, column.type) for column in view.view.columns]


@pytest.mark.parametrize("name", ["q1", "q3", "q6", "q15", "q20"])
def test_tpch_views_over_a_stream_are_continuous(tpch: Database, name: str) -> None:
    created = tpch.bind(f"create view v as {QUERIES[name]}").statement
    assert isinstance(created, CreateView)
    assert created.view.continuous
    assert created.view.definition == QUERIES[name].strip()
    validate(created.query.relation)
    assert any(isinstance(node, Scan) and node.kind == "stream" for node in walk(created.query.relation))


def test_query_1_has_exact_decimals(tpch: Database) -> None:
    created: Any = tpch.bind(f"create view v as {QUERIES['q1']}").statement
    assert names_and_types(created) == [
        ("l_returnflag", SqlType("bpchar", (1,))),
        ("l_linestatus", SqlType("bpchar", (1,))),
        ("sum_qty", numeric(38, 2)),
        ("sum_base_price", numeric(38, 2)),
        ("sum_disc_price", numeric(38, 4)),
        ("sum_charge", numeric(38, 6)),
        ("avg_qty", SqlType("numeric", QUOTIENT)),
        ("avg_price", SqlType("numeric", QUOTIENT)),
        ("avg_disc", SqlType("numeric", QUOTIENT)),
        ("count_order", INT8),
    ]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_thesis_figures_bind(name: str) -> None:
    example = EXAMPLES[name]
    database = Database()
    for table, (columns, _) in example.tables.items():
        database.run(f"create table {table} ({columns})")
    for stream, columns in example.streams.items():
        database.run(f"create foreign table {stream} ({columns}) server stream")
    created = database.run(f"create view v as {example.query}")
    assert created.view.continuous
    validate(created.query.relation)
    read = {node.name for node in walk(created.query.relation) if isinstance(node, Scan)}
    assert read == {*example.tables, *example.streams}
    assert set(created.view.depends_on) == {item.oid for item in database.catalog.objects.values() if item.name != "v"}


def test_figure_4_2_reads_count_as_a_column() -> None:
    example = EXAMPLES["figure_4_2"]
    database = Database("create table station (id int primary key, plant text, location text, supplier text)")
    for stream, columns in example.streams.items():
        database.run(f"create foreign table {stream} ({columns}) server stream")
    relation = database.run(f"create view v as {example.query}").query.relation
    subtractions = [node for node in walk(relation) if isinstance(node, Call) and node.function == "sub"]
    assert [tuple(type(item) for item in node.arguments) for node in subtractions] == [(ColumnRef, ColumnRef)]
    assert subtractions[0].type == INT8


def test_clauses_nest_in_their_order(database: Database) -> None:
    query = database.query(
        "select t, count(*) from a where i > 1 group by t having count(*) > 2 order by max(n) limit 3 offset 1"
    )
    shape, relation = [], query.relation
    while not isinstance(relation, Scan):
        shape.append(type(relation))
        relation = relation.input  # type: ignore[union-attr]
    assert shape == [Project, Limit, Sort, Project, Filter, Aggregate, Filter]
    assert [column.name for column in query.relation.columns] == ["t", "count"]


def test_equal_aggregates_are_computed_once(database: Database) -> None:
    query = database.query("select sum(i), sum(i) + 1, max(i) from a having sum(i) > 0 order by sum(i)")
    assert sorted(call.function for call in aggregates(query)) == ["max", "sum"]


def test_distinct_is_a_grouping(database: Database) -> None:
    relation = database.query("select distinct t, i from a").relation
    assert isinstance(relation, Aggregate)
    assert [column.name for column, _ in relation.keys] == ["t", "i"]
    assert relation.aggregates == ()


def test_a_grouped_primary_key_determines_the_row(database: Database) -> None:
    relation: Any = database.query("select a.t, b.t, count(*) from a join b using (i) group by a.i, b.t").relation
    assert [column.name for column, _ in relation.input.keys] == ["i", "t", "t"]


def test_commas_are_joins_without_predicate(database: Database) -> None:
    relation: Any = database.query("select a.i, b.* from a, b, region where a.i = b.i").relation
    joins = [node for node in walk(relation) if isinstance(node, Join)]
    assert [(node.kind, node.predicate) for node in joins] == [("inner", None)] * 2
    assert isinstance(relation.input, Filter)


@pytest.mark.parametrize(
    ("join", "nullable"),
    [
        ("join", (False, False)),
        ("left join", (False, True)),
        ("right join", (True, False)),
        ("full join", (True, True)),
    ],
)
def test_outer_joins_make_columns_nullable(database: Database, join: str, nullable: tuple[bool, bool]) -> None:
    text = f"select * from region x {join} (select r_regionkey as k from region) y on x.r_regionkey = y.k"
    relation = database.query(text).relation
    by_name = {column.name: column for column in relation.columns}
    assert (by_name["r_regionkey"].nullable, by_name["k"].nullable) == nullable


def test_using_merges_columns(database: Database) -> None:
    assert [item.name for item in database.query("select * from a join b using (i, t)").outputs][:2] == ["i", "t"]
    full: Any = database.query("select i from a full join b using (i)").relation
    (_, merged), *_ = full.outputs
    assert isinstance(merged, Call)
    assert merged.function == "coalesce"


def outer_columns(relation: Any, kind: type) -> list[set[Column]]:
    return [free_columns(node.relation) for node in walk(relation) if isinstance(node, kind)]


def test_correlated_subqueries_refer_to_outer_columns(database: Database) -> None:
    query = database.query(
        """select i from a where n > (select avg(x) from b where b.t = a.t)
           and exists (select 1 from b where b.i = a.i)
           and i in (select x from b where exists (select 1 from region where r_regionkey = a.i and r_name = b.t))"""
    )
    validate(query.relation)
    assert [{column.name for column in item} for item in outer_columns(query.relation, ScalarSubquery)] == [{"t"}]
    assert [{column.name for column in item} for item in outer_columns(query.relation, InSubquery)] == [{"i"}]
    assert [{column.name for column in item} for item in outer_columns(query.relation, Exists)] == [{"i"}, {"i", "t"}]


def test_each_reference_to_a_with_query_is_a_copy(database: Database) -> None:
    query = database.query(
        "with q as not materialized (select i, sum(n) as m from a group by i) select * from q x, q y where x.i = y.i"
    )
    validate(query.relation)
    assert sum(isinstance(node, Aggregate) for node in walk(query.relation)) == 2


def test_a_volatile_with_query_is_read_once_at_most(database: Database) -> None:
    assert database.query("with q as (select random() as r) select r from q").volatile
    with pytest.raises(SqlError) as caught:
        database.query("with q as (select random() as r) select * from q x, q y")
    assert caught.value.sqlstate == "0A000"


def test_a_subquery_written_once_and_used_twice_is_two_relations(database: Database) -> None:
    validate(database.query("select i from a where (select max(x) from b) between 1 and 5").relation)
    validate(database.query("select case (select max(x) from b) when 1 then 2 when 3 then 4 end from a").relation)


def test_set_operations_agree_on_types(database: Database) -> None:
    relation = database.query("select t, 'a' from a union all select null, t from a").relation
    assert isinstance(relation, SetOperation)
    assert [column.type for column in relation.left.columns] == [column.type for column in relation.columns]
    kinds = [column.type for column in relation.columns]
    mixed = database.query("select i, 'a' from a union all select n, null from a")
    assert [output.typmod for output in mixed.outputs] == [-1, -1]
    assert [kind.name for kind in kinds] == ["text", "text"]


def test_long_chains_of_set_operations_bind(database: Database) -> None:
    validate(database.query("select 1" + " union all select 2" * 1000).relation)


def test_values_are_a_relation(database: Database) -> None:
    relation = database.query("values (1.0, 'a'), (2.5, null)").relation
    assert isinstance(relation, Values)
    assert [(column.name, column.type) for column in relation.columns] == [
        ("column1", numeric(2, 1)),
        ("column2", TEXT),
    ]


# --- views and streams -----------------------------------------------------------------------------------------------


def test_a_continuous_view_is_scanned_and_an_ordinary_one_expanded(database: Database) -> None:
    kinds = {
        (node.name, node.kind)
        for node in walk(database.query("select * from cv, av").relation)
        if isinstance(node, Scan)
    }
    assert kinds == {("cv", "view"), ("a", "table")}


def test_a_view_over_a_continuous_view_is_an_ordinary_one(database: Database) -> None:
    created = database.bind("create view w as select k, total * 2 as double from cv").statement
    assert isinstance(created, CreateView)
    assert not created.view.continuous


@pytest.mark.parametrize(
    "query",
    [
        "insert into b (i) select k from /**/s",
        "create table c as select k from /**/s",
        "update b set i = 1 from /**/s",
        "with q as (insert into b (i) select 1) select count(*) from /**/s",
        "explain insert into b (i) select k from /**/s",
    ],
)
def test_a_statement_that_changes_tables_reads_no_stream(database: Database, query: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(query)
    assert caught.value.sqlstate == "0A000"
    assert caught.value.position == query.index("/**/s") + 5
    assert "CREATE VIEW" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "query",
    [
        "select * from s",
        "with q as (select k from s) select count(*) from q",
        "select i from a where i in (select k from s)",
        "explain select count(*) from s",
        "copy s to stdout",
        "select * from s join s as t using (k)",
    ],
)
def test_a_query_may_read_a_stream(database: Database, query: str) -> None:
    database.bind(query)


def test_an_insert_may_not_read_its_own_stream(database: Database) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind("insert into s (k) select k from s")
    assert "reads the stream itself" in caught.value.message


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("select k, count(*) from s where at > statement_timestamp() group by k", "statement_timestamp"),
        ("select k, sum(v * random()) from s group by k", "random"),
        ("select k, count(*) from s group by k having k < random()", "random"),
        ("select k, current_user, count(*) from s group by k", "current_user"),
        ("select k, count(*) from s group by k order by clock_timestamp() limit 1", "clock_timestamp"),
    ],
)
def test_changing_functions_in_continuous_views_are_refused(database: Database, query: str, name: str) -> None:
    text = f"create view v as {query}"
    with pytest.raises(SqlError) as caught:
        database.bind(text)
    assert (caught.value.sqlstate, caught.value.position) == ("0A000", text.index(name) + 1)
    assert f"{name}()" in caught.value.message


@pytest.mark.parametrize(
    ("query", "is_timed"),
    [
        ("select k, count(*) from s where at > now() group by k", True),
        ("select current_date, count(*) from s group by 1", True),
        ("select k, now() as at from (select k from s group by k) q", True),
        ("select k, count(*) from s group by k", False),
    ],
)
def test_continuous_views_may_depend_on_the_time_of_a_read(database: Database, query: str, is_timed: bool) -> None:
    statement = database.bind(f"create view v as {query}").statement
    assert isinstance(statement, CreateView)
    assert statement.view.timed is is_timed


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_long_chains_bind_and_deep_nesting_is_an_error(database: Database) -> None:
    assert database.scalar("select 1" + " + 1" * 3000).type == INT4
    for text in ("select " + "upper(" * 2000 + "'a'" + ")" * 2000, "select 1" + " + 1" * 20000):
        with pytest.raises(SqlError) as caught:
            database.query(text)
        assert caught.value.sqlstate == "54001"


def test_with_queries_that_are_read_twice_are_bound_once(database: Database) -> None:
    queries = ["q0 as (select 1 as x)"]
    queries += [f"q{n} as (select l.x from q{n - 1} l, q{n - 1} r)" for n in range(1, 30)]
    bound = database.query(f"with {', '.join(queries)} select * from q29")
    assert sum(1 for _ in walk(bound.relation)) < 500


@pytest.mark.slow
def test_views_that_multiply_are_bounded() -> None:
    database = standard()
    database.run("create view q0 as select 1 as x")
    for n in range(1, 12):
        database.run(f"create view q{n} as select l.x from q{n - 1} l, q{n - 1} r")
    with pytest.raises(SqlError, match="54001"):
        database.query("select l.x from q11 l, q11 r")


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("select to_ascii(t) from a", "to_ascii"),
    ],
)
def test_what_is_not_there_names_itself(database: Database, query: str, construct: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(query)
    assert caught.value.sqlstate == "0A000"
    assert "not supported" in caught.value.message
    assert caught.value.position == query.index(construct) + 1


_ADDRESSES = "(values ('9.0.0.1'::inet, '0/9'::pg_lsn)) v (a, l)"


@pytest.mark.parametrize(
    "query",
    [
        f"select a from {_ADDRESSES} order by array[a]",
        f"select a from {_ADDRESSES} order by row(a)",
        f"select percentile_disc(0.5) within group (order by l) from {_ADDRESSES}",
        f"select greatest(a, '10.0.0.1') from {_ADDRESSES}",
        f"select array[a] < array['10.0.0.1'::inet] from {_ADDRESSES}",
        f"select row(1, array[a]) < row(1, array['10.0.0.1'::inet]) from {_ADDRESSES}",
    ],
)
def test_the_order_of_addresses_within_others_is_refused(database: Database, query: str) -> None:
    with pytest.raises(SqlError, match="is not supported") as caught:
        database.query(query)
    assert caught.value.sqlstate == "0A000"


def test_literals_are_typed_values(database: Database) -> None:
    import datetime

    assert database.scalar("select date '1998-12-01'") == Literal(datetime.date(1998, 12, 1), SqlType("date"))
    assert database.scalar("select interval '90' day") == Literal((0, 90, 0), SqlType("interval"))


@pytest.mark.parametrize(
    "query",
    ["select time '10:00:00.129'::time(2)", "select time(2) '10:00:00.129'", "select '10:00:00.1299'::time(2)"],
)
def test_what_a_cast_has_rounded_is_of_no_digits(database: Database, query: str) -> None:
    import datetime

    assert database.scalar(query) == Literal(datetime.time(10, 0, 0, 130_000), SqlType("time"))


def test_a_variadic_text_is_refused(database: Database) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind("select upper(variadic t) from a")
    assert caught.value.sqlstate == "0A000"


@pytest.mark.parametrize(
    "query",
    [
        "select i from a where (random(), n) < any (select d, n from a)",
        "select random() < any (select d from a) from a",
    ],
)
def test_what_has_no_order_of_ours_is_refused(database: Database, query: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(query)
    assert caught.value.sqlstate == "0A000"


def test_what_would_be_answered_wrongly_is_refused(database: Database) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind("SELECT array[1.0] UNION ALL SELECT '{1.55}'")
    assert caught.value.sqlstate == "0A000"


def test_the_base_of_a_traced_recursion_is_bound_once(database: Database) -> None:
    """If each base were bound twice in the next, there would be more relations than a statement may read."""
    query = "SELECT 1 AS n"
    for level in range(14):
        step = f"SELECT n FROM r{level} WHERE false"
        clause = "SEARCH DEPTH FIRST BY n SET o"
        base = f"SELECT n FROM ({query}) q"
        query = f"WITH RECURSIVE r{level} (n) AS ({base} UNION ALL {step}) {clause} SELECT n FROM r{level}"
    database.bind(query)
