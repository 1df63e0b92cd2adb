"""Parsing: slices and positions, and limits."""

from __future__ import annotations

import pytest
from pglast import enums

from catalog.values.errors import SqlError
from planner.parse.lengths import LIMIT, MOST
from planner.parse.parser import literal_positions, nodes, parse, text_after_as


def test_statements_know_their_text_and_offset() -> None:
    text = "select 'é' ; -- c\n insert into t values (1);;  select 2  "
    found = parse(text)
    assert [raw.text for raw in found] == ["select 'é'", "insert into t values (1)", "select 2"]
    assert [text[raw.offset :].startswith(raw.text) for raw in found] == [True] * 3


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("select 1 from from t", 'syntax error at or near "from"', 15),
        ("select 'ééé' from from t", 'syntax error at or near "from"', 19),
        ("select 1 +", "syntax error at end of input", 11),
        ("select 'abc", 'unterminated quoted string at or near "\'abc"', 8),
        ("selec 1", 'syntax error at or near "selec"', 1),
    ],
)
def test_syntax_errors_are_postgresqls(text: str, message: str, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert (caught.value.sqlstate, caught.value.message, caught.value.position) == ("42601", message, position)


@pytest.mark.parametrize(
    ("text", "sqlstate", "position"),
    [
        ("SELECT E'wrong: \\u061'", "22025", 17),
        ("SELECT U&'wrong: \\061'", "42601", 18),
        ("CREATE ROLE pg_own; CREATE ROLE none", "42939", 33),
        ("CREATE SCHEMA IF NOT EXISTS s CREATE TABLE a ()", "0A000", 31),
        ("ALTER INDEX i ALTER COLUMN 0 SET STATISTICS 10", "22023", 28),
    ],
)
def test_errors_of_the_grammar_have_their_own_states(text: str, sqlstate: str, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert (caught.value.sqlstate, caught.value.position) == (sqlstate, position)


@pytest.mark.parametrize("text", [r"SELECT E'\xff'", r"SELECT 'a', E'b\xc3'", r"SELECT E'\000'"])
def test_escapes_that_make_no_text_are_an_error_of_the_encoding(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert (caught.value.sqlstate, caught.value.position) == ("22021", None)


def test_an_empty_text_has_no_statements() -> None:
    assert parse("") == () == parse(" -- nothing\n;;")


def test_too_long_a_text_is_refused() -> None:
    with pytest.raises(SqlError) as caught:
        parse("select 1" + " " * LIMIT, LIMIT)
    assert caught.value.sqlstate == "54000"


def test_the_longest_text_is_parsed() -> None:
    (raw,) = parse("select '" + "x" * (MOST - 9) + "'")
    assert len(raw.text) == MOST
    with pytest.raises(SqlError) as caught:
        parse("select 1" + " " * MOST)
    assert caught.value.sqlstate == "54000"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["select " + "1+" * 50_000 + "1", "select " + "upper(" * 4000 + "'a'" + ")" * 4000])
def test_deep_nesting_does_not_overflow_the_stack(text: str) -> None:
    assert len(parse(text)) == 1


def test_the_parsers_own_nesting_limit_is_an_error() -> None:
    with pytest.raises(SqlError) as caught:
        parse("select " + "(" * 100_000)
    assert caught.value.sqlstate == "42601"


@pytest.mark.parametrize("text", ["select " + "+" * LIMIT + "1", "select " + "/*" * 100_000 + "*/" * 100_000 + "1"])
def test_a_text_that_the_scanner_reads_in_quadratic_time_is_refused(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert caught.value.sqlstate == "54001"


@pytest.mark.parametrize(
    "text", ["-" * 100_000 + "\nselect 1", "/" + "*" * 100_000 + "/ select 1", f"select '{'+' * 9999}'"]
)
def test_rulers_are_parsed(text: str) -> None:
    assert len(parse(text)) == 1


def test_a_literals_position_is_found() -> None:
    text = "select 'é', 1; select x in (1, 'b') from t where y = date 'ü'"
    raw = parse(text)[1]
    select = raw.node
    positions = literal_positions(raw)
    assert positions[id(select.targetList[0].val.rexpr[1])] == text.index("'b'") + 1
    assert positions[id(select.whereClause.rexpr.arg)] == text.index("'ü'") + 1


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("create view v (a) with (x = y) as select 1 as as_", "select 1 as as_"),
        ("create materialized view v as select (select 1 as b) with no data", "select (select 1 as b)"),
        ("prepare p (int) as select $1", "select $1"),
        ("create or replace view v as -- é\n select 'é' ;", "-- é\n select 'é'"),
    ],
)
def test_the_query_of_a_definition_is_kept_as_written(text: str, query: str) -> None:
    assert text_after_as(parse(text)[0]) == query


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT a.x, 1.5, true, null, $1, count(*) FILTER (WHERE y) OVER (PARTITION BY z ORDER BY w DESC)"
        " FROM a LEFT JOIN LATERAL (SELECT 'b' COLLATE \"C\") b ON a.x IN (1, 2) GROUP BY ROLLUP (x) LIMIT 3",
        "WITH RECURSIVE r AS MATERIALIZED (VALUES (1)) INSERT INTO t (a) SELECT * FROM r ON CONFLICT DO NOTHING",
        "CREATE TEMP TABLE t (a int PRIMARY KEY REFERENCES u ON DELETE CASCADE, b int GENERATED ALWAYS AS (1) STORED)",
        "CREATE FUNCTION f(VARIADIC a int[]) RETURNS SETOF int LANGUAGE sql STRICT AS 'SELECT 1'",
        "MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (1) WHEN MATCHED THEN DELETE",
        "GRANT SELECT (a) ON t TO PUBLIC WITH GRANT OPTION; BEGIN ISOLATION LEVEL SERIALIZABLE; COPY t FROM STDIN",
    ],
)
def test_the_parser_gives_attributes_the_types_that_its_nodes_declare(text: str) -> None:
    """Nothing checks or converts them, as ``planner.parse.parser`` disables that in pglast's nodes."""
    for node in (item for raw in parse(text) for item in nodes(raw.node)):
        for name, (declared, _, adapt) in node.__slots__.items():
            value = getattr(node, name, None)
            if value is None:
                continue
            if hasattr(enums, declared):
                assert isinstance(value, getattr(enums, declared)), name
            elif adapt is not None and name != "boolval":  # 0 and 1 in a constant
                assert (type(adapt(value)), adapt(value)) == (type(value), value), name
