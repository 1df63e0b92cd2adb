"""No shape of a grouping breaks the planner: a view is planned, or refused with 0A000."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from planner.incremental.plan import plan
from tests.planner.binding import Database
from tests.rig.grouped_shapes import shape
from tests.rig.sampling import sample

RELATIONS = """
create table t1 (item int, n int);
create table t2 (item int, n int);
create foreign table s1 (d int, site int, v int) server stream;
create foreign table s2 (d int, site int, v int) server stream;
"""
#: Groupings over groupings that are read several times, as grouping sets read their input.
READ_TWICE = {
    "select id, count(*) from (select s1.site as id from t1 left join s1 on item = s1.d group by s1.site) w"
    " group by rollup (id)": 2,
    "select a, count(b) from (select a, count(b) as b from (select f.a, f.b from (select site as a from s1) r"
    " full join (select item as a, n as b from t2) f on r.a = f.a) g group by cube (a, b)) h group by cube (a, b)": 1,
    "with w as (select site, count(*) as c from s1 right join t1 on item = d group by site)"
    " select x.site, y.c from w x left join w y on x.c = y.site": 2,
}
_HUNDRED = 100


@pytest.fixture(scope="module")
def database() -> Database:
    return Database(RELATIONS)


@pytest.mark.parametrize(("text", "states"), READ_TWICE.items())
def test_a_grouping_above_a_grouping_is_read_twice(database: Database, text: str, states: int) -> None:
    program = plan(database.query(text)).program
    assert len({state.name for state in program.states}) == len(program.states) == states


@pytest.mark.parametrize("hundred", sample(range(30), (0, 1)))
def test_shapes_are_planned_or_refused(database: Database, hundred: int) -> None:
    planned = 0
    for seed in range(_HUNDRED * hundred, _HUNDRED * (hundred + 1)):
        text = shape(seed)
        try:
            plan(database.query(text))
        except SqlError as error:
            assert error.sqlstate == "0A000", text
        else:
            planned += 1
    assert planned > _HUNDRED // 2
