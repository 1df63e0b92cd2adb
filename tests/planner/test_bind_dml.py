"""INSERT, UPDATE, DELETE: complete rows, defaults, checks, RETURNING."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from catalog.values.errors import SqlError
from catalog.values.types import INT4, NUMERIC, TEXT, SqlType, numeric
from planner.algebra.nodes import Call, Cast, ColumnRef, Filter, Join, Literal, Parameter, Project, Scan
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.parse.literals import parameterise
from planner.statements.statement import Delete, Insert, Update
from tests.planner.binding import STATEMENTS, Database, standard

SCHEMA = """
create table p (k int primary key, n numeric(10,2) default 1.5, w varchar(5), at timestamptz default now(),
    check (n > 0), constraint short check (length(w) < k));
"""


@pytest.fixture(scope="module")
def database() -> Database:
    found = standard()
    found.run(SCHEMA)
    return found


def insert(database: Database, text: str) -> Insert:
    statement = database.bind(text).statement
    assert isinstance(statement, Insert)
    validate(statement.source)
    assert statement.source.columns == statement.row
    assert [column.type for column in statement.row] == [column.type for column in statement.target.columns]
    return statement


def test_plain_values_need_no_engine(database: Database) -> None:
    found = insert(database, "insert into s (w, k) values ('a', 1), (null, default)")
    stamp = SqlType("timestamp")
    assert found.literals == (
        (Literal(1, INT4), Literal(None, INT4), Literal("a", TEXT), Literal(None, stamp)),
        (Literal(None, INT4), Literal(None, INT4), Literal(None, TEXT), Literal(None, stamp)),
    )


def test_parameters_are_fitted_to_their_columns(database: Database) -> None:
    bound = database.bind("insert into p (k, n, w, at) values ($1, $2, $3, '2020-01-01')")
    assert bound.parameters == (INT4, NUMERIC, SqlType("varchar"))
    row: Any = bound.statement.literals[0]  # type: ignore[union-attr, index]
    assert row[:3] == (
        Parameter(0, INT4),
        Cast(Parameter(1, NUMERIC), numeric(10, 2)),
        Cast(Parameter(2, SqlType("varchar")), SqlType("varchar", (5,))),
    )


def test_a_shared_plan_is_like_the_text_itself(database: Database) -> None:
    key, literals = parameterise("insert into s (k, v, w) values (1, -2, 'x')")
    bound: Any = database.bind(key, declared(literals))
    assert bound.parameters == (INT4, INT4, TEXT)
    assert bound.statement.literals[0][:3] == (Parameter(0, INT4), Parameter(1, INT4), Parameter(2, TEXT))


@pytest.mark.parametrize("text", [text for text in STATEMENTS if parameterise(text)[1]])
def test_a_shared_plan_describes_the_same_columns(database: Database, text: str) -> None:
    key, literals = parameterise(text)
    try:
        plain: Any = database.bind(text).statement
    except SqlError as error:
        # An invalid text in a literal is found when it is converted; every other error also occurs in the shared plan.
        if error.sqlstate in ("22P02", "22007"):
            return
        with pytest.raises(SqlError, match=error.sqlstate):
            database.bind(key, declared(literals))
        return
    shared: Any = database.bind(key, declared(literals)).statement
    assert getattr(shared, "outputs", None) == getattr(plain, "outputs", None)


def declared(literals: tuple[Literal, ...]) -> tuple[SqlType | None, ...]:
    return tuple(None if literal.type.name == "unknown" else literal.type for literal in literals)


def test_defaults_fill_rows(database: Database) -> None:
    found = insert(database, "insert into p (k) values (1)")
    assert found.literals is None  # now() depends on the session
    source: Any = found.source
    assert source.rows[0][1] == Literal(Decimal("1.50"), numeric(10, 2))
    assert isinstance(source.rows[0][3], Call)
    defaults: Any = insert(database, "insert into s default values").source
    assert [item.value for item in defaults.rows[0]] == [None] * 4


def test_checks_are_over_the_new_row(database: Database) -> None:
    found = insert(database, "insert into p (k, w) values (1, 'a')")
    assert [name for name, _ in found.checks] == ["p_n_check", "short"]
    used = {node.column for _, check in found.checks for node in walk(check) if isinstance(node, ColumnRef)}
    assert used == {found.row[0], found.row[1], found.row[2]}


def test_insert_select_assigns(database: Database) -> None:
    found = insert(database, "insert into p (n, k, at) select i, '5', '2020-01-01' from a")
    source: Any = found.source
    assert source.outputs[0][1] == Literal(5, INT4)
    assert source.outputs[1][1].type == numeric(10, 2)
    assert source.outputs[2][1] == Literal(None, SqlType("varchar", (5,)))
    insert(database, "insert into p (n, k) select distinct i, s from a order by 1 limit 3")
    insert(database, "with q as (select i from a) insert into p (k) select i from q returning k + 1 as next")


def test_insert_returning_is_over_the_row(database: Database) -> None:
    found = insert(database, "insert into p as q (k) values (1) returning *, q.n * 2 as twice, 'x'")
    assert found.returning is not None
    assert [item.name for item in found.returning.outputs] == ["k", "n", "w", "at", "twice", "?column?"]
    assert [item.attribute for item in found.returning.outputs] == [1, 2, 3, 4, 0, 0]
    used = {n.column for _, e in found.returning.expressions for n in walk(e) if isinstance(n, ColumnRef)}
    assert used <= set(found.row)


def test_updates_yield_old_and_new_rows(database: Database) -> None:
    found = database.bind("update p set n = n * 2, w = default where k = 7 returning n").statement
    assert isinstance(found, Update)
    validate(found.relation)
    assert found.relation.columns == (found.row_id, *found.old, *found.new)
    relation: Any = found.relation
    assert isinstance(relation.input, Filter)
    scan = relation.input.input
    assert scan.sources[-1] == "__rowid"
    assigned = dict(relation.outputs)
    assert assigned[found.new[1]].type == numeric(10, 2)
    assert assigned[found.new[2]] == Literal(None, SqlType("varchar", (5,)))
    assert assigned[found.new[0]] == ColumnRef(scan.columns[0])
    assert [name for name, _ in found.checks] == ["p_n_check", "short"]


def test_update_from_joins(database: Database) -> None:
    found = database.bind("update p q set w = b.t from b where b.i = q.k").statement
    assert isinstance(found, Update)
    validate(found.relation)
    assert [node.kind for node in walk(found.relation) if isinstance(node, Join)] == ["inner"]


def test_several_columns_are_assigned_from_a_row(database: Database) -> None:
    found: Any = database.bind("update p set (n, w) = (5, 'x')").statement
    assigned = dict(found.relation.outputs)
    assert assigned[found.new[1]] == Literal(Decimal("5.00"), numeric(10, 2))


def test_delete_using_is_a_semi_join(database: Database) -> None:
    found = database.bind("delete from p using b where p.k = b.i and b.x > 1 returning p.k").statement
    assert isinstance(found, Delete)
    validate(found.relation)
    assert isinstance(found.relation, Project)
    assert found.relation.columns == (found.row_id, *found.old)
    assert [node.kind for node in walk(found.relation) if isinstance(node, Join)] == ["semi"]


def test_deletes_scan_the_target(database: Database) -> None:
    found = database.bind("delete from p where k in (select i from b)").statement
    assert isinstance(found, Delete)
    assert [node.name for node in walk(found.relation) if isinstance(node, Scan)] == ["p", "b"]


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("update s set k = 1", "0A000", 'cannot update foreign table "s"'),
        ("delete from s", "0A000", 'cannot delete from foreign table "s"'),
        ("insert into cv values (1)", "55000", 'cannot insert into view "cv"'),
        ("insert into s values ('x')", "22P02", 'invalid input syntax for type integer: "x"'),
        ("insert into s (zz) values (1)", "42703", 'column "zz" of relation "s" does not exist'),
        ("insert into p (k, n) values (1, 123456789.5)", "22003", "numeric field overflow"),
        ("insert into p (k, w) values (1, 'toolong')", "22001", "value too long for type character varying(5)"),
    ],
)
def test_what_cannot_be_written_is_an_error(database: Database, text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(text)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("insert into s (k) values (1) on conflict do nothing", "ON CONFLICT on a stream is not supported"),
        ("merge into s using b on true when matched then delete", 'cannot execute MERGE on relation "s"'),
        ("merge into p using b on true when matched then delete returning *", "MERGE ... RETURNING is not supported"),
        (
            "merge into p using b on true when not matched by source then delete",
            "WHEN NOT MATCHED BY SOURCE is not supported",
        ),
        ("update b set x = 1 where current of c", "WHERE CURRENT OF of a table without a primary key is not"),
        ("delete from b where current of c", "WHERE CURRENT OF of a table without a primary key is not"),
        ('insert into p (k) values (1) on conflict (w collate "C") do nothing', "COLLATE"),
        ("update p set (n, w) = (select random(), 'x')", "a volatile function in SET"),
        ("with x as (insert into s (k) values (1)) select 1", "INSERT into a stream in WITH is not supported"),
        ("with x as (delete from p returning k) insert into s (k) select k from x", "into a stream is not supported"),
        (
            "with x as (delete from p) insert into p (k) values (1) on conflict do nothing",
            "ON CONFLICT or MERGE beside another change of the same table is not supported",
        ),
        ("create table z as with x as (delete from p returning k) select * from x", "must be at the top level"),
        ("create foreign table z (like p) server stream", "LIKE is not supported for creating foreign tables"),
    ],
)
def test_what_is_refused_names_itself(database: Database, text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(text)
    assert caught.value.sqlstate == "0A000"
    assert message in caught.value.message
