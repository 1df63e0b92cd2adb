"""Groupings below their joins with tables: what a view's program becomes, and what it cannot become."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from planner.algebra.nodes import Scan
from planner.algebra.walk import walk
from planner.explain.programs import explain_program
from planner.incremental.plan import plan, tables_of
from tests.planner import golden
from tests.planner.binding import Database

RELATIONS = """
create table t (id int, name text, p numeric(10,2), z int, flag boolean);
create table u (k int, w int);
create foreign table s (k int, i int, n numeric(10,2), f double precision, w text, at timestamp) server stream;
"""
GOLDEN = {
    "joined": "select name, count(*), sum(n), avg(i), min(w) from s join t on s.k = id group by name",
    "without_keys": "select count(*), max(z), sum(p) from s cross join t",
    "expressions": "select date_trunc('hour', at) as h, w || name as both_names, sum(i + z), sum(10 / i)"
    " from s join t on s.k + 1 = id where i > 2 or flag group by 1, 2",
    "filtered": "select name, sum(n) filter (where flag and i > 1), count(p) filter (where i > 1)"
    " from s left join t on s.k = id group by name",
    "of_copies": "select name, count(*), sum(f), string_agg(w, ',' order by w), count(distinct w), bit_xor(z)"
    " from s join t on s.k = id group by name",
    "existence": "select w, count(*) from s where exists (select from t where id = s.k) and k not in"
    " (select u.k from u where u.k is not null) group by w",
    "arms": "select name, sum(n), count(i) from t left join s on s.k = id group by name",
    "counted_arms": "select name, count(distinct w), sum(f) from t left join s on s.k = id group by name",
    "shown_otherwise": "select name, max(f::text) from s join t on f < p group by name",
}
#: Views whose tables stay as of their creation, with what the reason names.
FROZEN = {
    "select name, array_agg(w) from s join t on s.k = id group by name": "array_agg() without ORDER BY",
    "select name, string_agg(w, ',') from t left join s on s.k = id group by name": "string_agg() without ORDER BY",
}


@pytest.fixture(scope="module")
def database() -> Database:
    return Database(RELATIONS)


@pytest.mark.parametrize("name", GOLDEN)
def test_programs(database: Database, name: str, rewrite: bool) -> None:
    planned = plan(database.query(GOLDEN[name]))
    golden.check(f"live_tables/{name}", [GOLDEN[name], "", *explain_program(planned.program)], rewrite)
    assert (tables_of(planned.program), planned.notices) == ("live", ())


@pytest.mark.parametrize("text", GOLDEN.values())
def test_tables_are_frozen_if_asked(database: Database, text: str) -> None:
    planned = plan(database.query(text), tables="frozen")
    assert tables_of(planned.program) == "frozen"
    assert planned.notices
    assert planned.obstacles == ()
    assert not any(isinstance(item, Scan) for item in walk(planned.program.final))


@pytest.mark.parametrize(("text", "reason"), FROZEN.items())
def test_what_depends_on_the_order_of_arrival_stays(database: Database, text: str, reason: str) -> None:
    planned = plan(database.query(text))
    assert tables_of(planned.program) == "frozen"
    assert [item.construct.startswith(reason) for item in planned.obstacles] == [True]
    with pytest.raises(SqlError) as raised:
        plan(database.query(text), tables="live")
    assert (raised.value.sqlstate, reason in raised.value.message) == ("0A000", True)


def test_tables_above_groupings_are_neither(database: Database) -> None:
    grouped = "select name, c from t join (select k, count(*) as c from s group by k) g on k = id"
    assert tables_of(plan(database.query(grouped)).program) is None


def test_views_of_one_stream_beside_several_tables_have_one_state(database: Database) -> None:
    texts = ("select name, sum(n) from s join t on s.k = id group by name", "select k, sum(n) from s group by k")
    one, other = (plan(database.query(text)).program for text in texts)
    assert [item.name for item in one.states] == [item.name for item in other.states]
