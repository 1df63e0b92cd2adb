"""The law for the shapes of a continuous view's plan: the places of streams, tables and groupings in it.

``fixed`` is a table that views join below a grouping, and so never changes here; ``moving`` is read above groupings
only: its rows are inserted, changed and deleted while the streams grow. Batches are random, and the server is stopped
and killed in between.
"""

from __future__ import annotations

import random

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

SHAPES = {
    "groups compared with other groups": "select a.k, a.c, (select count(*) from (select k, count(*) as c from x"
    " group by k) b where b.c < a.c) from (select k, count(*) as c from x group by k) a",
    "groups by what a subquery two levels in says": "select a.k, (select min(f.name) from fixed f where f.id > a.k"
    " and not exists (select from fixed g where g.id > a.c and g.id < f.id))"
    " from (select k, count(*) as c from x group by k) a",
    "table kept": "select f.id, count(x.v), sum(x.v) from fixed f left join x on f.id = x.k group by f.id",
    "table kept by name": "select f.name, count(x.v), count(*) from fixed f left join x on f.id = x.k group by f.name",
    "table kept on a condition": "select f.name, max(x.v) from fixed f left join x on f.id = x.k and x.v > 3"
    " and f.name <> 'b' group by f.name",
    "table kept without a key": "select count(*), count(x.k), min(f.name) from x right join fixed f on x.k < f.id",
    "table kept always": "select f.id, count(*) from fixed f left join x on true group by f.id",
    "table kept never met": "select f.id, count(x.k) from fixed f left join x on false group by f.id",
    "both kept": "select f.id, x.k, count(*), sum(v) from x full join fixed f on x.k = f.id group by f.id, x.k",
    "both kept in one": "select count(*), count(x.k), count(f.id), sum(v) from x full join fixed f on x.k = f.id",
    "table kept, distinct values": "select f.name, count(distinct x.v), array_agg(distinct x.v) from fixed f"
    " left join x on f.id = x.k group by f.name",
    "table kept, collected values": "select f.id, string_agg(x.t, ',' order by x.t, x.v), percentile_disc(0.5) within"
    " group (order by x.v) from fixed f left join x on f.id = x.k group by f.id",
    "table kept, then another": "select g.name, count(x.v) from fixed f left join x on f.id = x.k"
    " join fixed g on g.id = f.id + 1 group by g.name",
    "table kept twice": "select g.id, count(f.id), count(x.v) from fixed g left join (x right join fixed f"
    " on x.k = f.id and x.v > 2) on g.id = x.v group by g.id",
    "table kept, having none": "select f.id from fixed f left join x on f.id = x.k group by f.id having count(x.k) = 0",
    "table kept, then counted": "select c, count(*) from (select f.id, count(x.v) as c from fixed f"
    " left join x on f.id = x.k group by f.id) g group by c",
    "table kept beside a scalar": "select f.id, count(x.v) from fixed f left join x on f.id = x.k"
    " and x.v > (select min(id) from fixed) group by f.id",
    "rows and groups": "select k, count(*), sum(v) from (select k, v from x union all"
    " select k, max(v) from x group by k) a group by k",
    "rows and groups of another": "select k, count(*), count(distinct v) from (select k, v from x union all"
    " select k, max(v) from z group by k union all select id, id from fixed) a group by k",
    "rows and groups beside a table": "select name, count(*) from (select k from x union all"
    " select k from z group by k) a join fixed on k = id group by name",
    "rows and groups in order": "select array_agg(v order by v) from (select v from x union all"
    " select count(*)::int from z group by k) a",
    "rows listed in a subquery's order": "select array_agg(v), string_agg(t, ',') from"
    " (select v, t from x order by k desc, v, t) a",
    "rows of groups listed in order": "select k, array_agg(v) from (select k, v from x order by k, -v, t) a group by k",
    "dates in documents": "select k, count(*), min(v) from x where jsonb_path_exists(to_jsonb('2024-02-'"
    ' || 10 + abs(v) % 9), \'$ ? (@.datetime() < "15.02.2024".datetime("dd.mm.yyyy"))\') group by k',
    "groups listed in order": "select array_agg(k) from (select k from x group by k order by sum(v) desc, k) a",
    "intersect a table": "select k from x intersect select id from moving",
    "intersect a stream": "select k, v from x intersect select k, v from z",
    "except a table": "select k from x except select id from moving",
    "table except": "select id from moving except select k from x",
    "except a stream": "select k, t from x except select k, t from z where v > 2",
    "sets of sets": "(select k from x except select id from moving) union (select k from z intersect select v from x)",
    "intersect all of a table": "select k from x intersect all select id % 4 from moving",
    "intersect all of a stream": "select k, v from x intersect all select k, v from z",
    "except all of a table": "select k, t from x except all select id, name from moving",
    "table except all": "select id % 3 from moving except all select k from x",
    "except all of a stream": "select k, t from x where k < 6 except all select k, t from z where v > 2",
    "bags of bags": "select k, count(*), rank() over (order by count(*)) from ((select k from x except all"
    " select id from moving) intersect all (select k from x union all select v from z)) a group by k",
    "lateral aggregate": "select g.k, c, m, n from (select k, count(*) as c from x group by k) g, lateral"
    " (select max(v) as m, count(*) as n from z where z.k = g.k) l",
    "lateral aggregate kept": "select g.k, coalesce(n, -1) from (select k from x group by k) g left join lateral"
    " (select count(*) + 1 as n from z where z.k = g.k and z.v > 1) l on true",
    "lateral groups kept": "select g.k, l.v, n from (select k from x group by k) g left join lateral"
    " (select z.v, count(*) as n from z where z.k = g.k group by z.v) l on l.v > 2",
    "lateral rows above": "select g.k, l.id, l.name from (select k, count(*) as c from x group by k) g, lateral"
    " (select id, name from moving m where m.id > g.k order by id limit 2) l",
    "lateral rows kept above": "select g.k, l.id from (select k, count(*) as c from x group by k) g left join lateral"
    " (select max(id) as id from moving m where m.id < g.c) l on true",
    "lateral groups compared": "with g as (select k, count(*) as c from x group by k) select k, c, n from g, lateral"
    " (select count(*) as n from g h where h.c > g.c) l",
    "lateral expressions": "select d, count(*), sum(e) from x, lateral (select v * 2 as d, k + v as e) l"
    " where e > 1 group by d",
    "lateral table below": "select name, twice, count(*) from x, lateral (select name, id + x.v as twice from fixed f"
    " where f.id = x.k) l group by name, twice",
    "lateral table kept below": "select l.name, count(*), count(l.id) from x left join lateral (select id, name"
    " from fixed f where f.id = x.k) l on l.name <> 'b' group by l.name",
    "lateral aggregate below": "select s, count(*) from x, lateral (select sum(id) as s, count(*) as c from fixed f"
    " where f.id = x.k) l where c < 2 group by s",
    "distinct on above": "select distinct on (k) k, t, n from (select k, t, count(*) as n from x group by k, t) g"
    " order by k, n desc, t",
    "first rows": "select distinct on (k) * from x order by k, v desc, t desc",
    "first rows without NULLs in front": "select distinct on (t) t, v, k from x order by t, v desc nulls last, k",
    "first rows, NULLs in front": "select distinct on (v) v, t, k from x order by v, t nulls first, k nulls first",
    "first rows of expressions": "select distinct on (k % 3, t is null) k, v, t from x where v <> 2"
    " order by k % 3, t is null, v, k, t",
    "first rows beside a table": "select distinct on (f.name) f.name, x.k, x.v, x.t from x join fixed f on f.id = x.k"
    " order by f.name, x.v desc, x.t desc, x.k desc",
    "first rows, then grouped": "select v, count(*), max(t) from (select distinct on (k) k, v, t from x"
    " order by k, v, t) g group by v",
    "first rows by their number": "select k, v, n + 1 as next from (select k, v, t, row_number() over (partition by k"
    " order by v desc, t desc) as n from x) g where n <= 1 and v > 2",
    "top rows": "select * from x order by v desc nulls last, k, t limit 4",
    "top rows, but for some": "select t, v * 2 from x where k < 6 order by v, k desc, t limit 3 offset 2",
    "top rows of each key": "select k, v, t, n from (select k, v, t, row_number() over (partition by k"
    " order by v desc, t desc) as n from x) g where n < 4",
    "top rows of each key, then grouped": "select k, sum(v), array_agg(t order by v, t) from (select k, v, t,"
    " row_number() over (partition by k order by v, t) as n from x) g where n <= 2 and v > 1 group by k",
    "top rows beside a table": "select f.name, x.v, x.t from x join fixed f on f.id = x.k"
    " order by x.v desc, x.t desc, f.name desc limit 5",
    "first rows of two streams": "select a.k, a.v, b.t from (select distinct on (k) k, v from x order by k, v) a"
    " full join (select distinct on (k) k, t from z order by k, t) b on a.k = b.k",
    "elements": "select e, count(*), sum(v) from x, unnest(array[k, v, null]) e group by e",
    "elements with numbers": "select n, max(e) from x, unnest(array[k, v]) with ordinality a(e, n) group by n",
    "elements of joined rows": "select name, e, count(*) from x join fixed on k = id, unnest(array[v, id]) e"
    " where e > 1 group by name, e",
    "series": "select k, g, count(*) from x, generate_series(1, v) g group by k, g",
    "series in the list": "select g, count(*) from (select generate_series(k, v) as g from x) a group by g",
    "words": "select w, count(*) from x, regexp_split_to_table(t, ' ') w group by w",
    "elements above": "select k, unnest(array_agg(v order by v)) from x group by k",
    "series above": "select k, generate_series(1, count(*)) from x where k < 3 group by k",
    "recursion above": "with recursive r as (select k, max(v) as n from x group by k union select k, n - 1 from r"
    " where n > 0) select k, count(*) from r group by k",
    "recursion over a table above": "with recursive r as (select id from moving where id in (select k from x)"
    " union select m.id from moving m, r where m.id = r.id + 1) select id from r",
    "moving above": "select name, count(*), sum(c) from (select k, count(*) as c from x group by k) g"
    " right join moving on k = id group by name",
    "moving not there": "select k, c from (select k, count(*) as c from x group by k) g where not exists"
    " (select 1 from moving where id = k)",
    "moving compared": "select k from x group by k having sum(v) > (select avg(id) from moving)",
    "moving in exists": "select id, name from moving where exists (select 1 from x where k = id and v > 2)",
    "moving not in": "select id from moving where id not in (select k from x where k is not null)",
    "window above": "select k, c, rank() over (order by c desc), lag(c) over (order by k) from"
    " (select k, count(*) as c from x group by k) g",
    "cube": "select k, t, count(*), grouping(k, t) from x group by cube (k, t)",
    "two streams": "select a.k, a.c, b.m from (select k, count(*) as c from x group by k) a full join"
    " (select k, max(v) as m from z group by k) b on a.k = b.k",
    "top above": "select k, sum(v) as s from x group by k order by s desc nulls last, k limit 3",
}
COLUMNS = "k integer, v integer, t text"
NAMES = ("a", "b", None)


def _number(source: random.Random) -> int | None:
    return None if source.random() < 0.15 else source.randint(0, 7)


def _row(source: random.Random) -> tuple[int | None, int | None, str | None]:
    return _number(source), _number(source), source.choice(("x", "y z", "", "x y", None))


def _move(mirror: Mirror, source: random.Random) -> None:
    """Changes the table above the groupings on both servers."""
    number, name = source.randint(0, 9), source.choice(("'a'", "'b'", "NULL"))
    change = source.choice(
        (
            f"DELETE FROM moving WHERE id = {number}",
            f"INSERT INTO moving VALUES ({number}, {name}) ON CONFLICT (id) DO NOTHING",
            f"UPDATE moving SET name = {name} WHERE id < {number}",
            "DELETE FROM moving",
        )
    )
    for connection in (mirror.client, mirror.judge):
        connection.execute(change.encode())


def play(mirror: Mirror, source: random.Random, steps: int) -> None:
    """Inserts random rows into both streams, with changes of ``moving`` and stops in between, each followed by some
    reads."""
    for stream in ("x", "z"):
        mirror.stream(stream, COLUMNS)
    for table in ("fixed", "moving"):
        mirror.table(table, "id integer PRIMARY KEY, name text")
        mirror.insert(table, [(id_, source.choice(NAMES)) for id_ in range(1, 6)], one_statement=True)
    for number, query in enumerate(SHAPES.values()):
        width = len(mirror.judge.execute(query.encode()).description or ())
        mirror.view(f"shape{number}", query, options=f"({', '.join(f'c{place}' for place in range(width))})")
    names = list(mirror.views)
    mirror.check()
    for step in range(steps):
        rows = [_row(source) for _ in range(source.choice((0, 1, 1, 5, 40)))]
        mirror.insert(source.choice(("x", "z")), rows, one_statement=source.random() < 0.8)
        if source.random() < 0.5:
            _move(mirror, source)
        if step in (steps // 3, steps // 2):
            mirror.restart(crash=step == steps // 2)
        mirror.check(*source.sample(names, 5))
    mirror.check()


def _settings(engine: str) -> dict[str, object]:
    return {"maintenance_engine": engine, "spark_enabled": engine != "embedded", "maintenance_rows": 20}


def test_shapes_equal_their_queries(postgres: Postgres, whole: bool) -> None:
    with Millstream(settings=_settings("embedded")) as server, mirrored(server, postgres) as mirror:
        play(mirror, random.Random(1), 18 if whole else 6)


@pytest.mark.spark
@pytest.mark.whole
@pytest.mark.parametrize("engine", ["spark", "auto"])
def test_shapes_on_every_engine(engine: str, postgres: Postgres) -> None:
    with Millstream(settings=_settings(engine)) as server, mirrored(server, postgres) as mirror:
        source = random.Random(engine)
        play(mirror, source, 40)
        for stream in ("x", "z"):  # not read, so that background maintenance has them
            mirror.insert(stream, [_row(source) for _ in range(100)], one_statement=True)
        wait_until(lambda: mirror.jobs("spark") > 0, 120, "job of spark in millstream.jobs")
        mirror.check()
