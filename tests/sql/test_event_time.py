"""tumble, hop and session, over a table and as continuous views, compared with equivalent queries in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.rig.compare import assert_same_rows
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

COLUMNS = "ts timestamp, tz timestamptz, d date, k integer, v integer, late timestamp not null"
TIMES = [
    "2024-01-01 00:00:10", "2024-01-01 00:00:50", "2024-01-01 00:03:50", "2024-01-01 00:04:10", "1999-12-31 23:59:59",
    "2024-01-01 00:03:50", "2000-02-29 12:00:00.000001", "2024-01-01 00:05:10", "2024-01-01 00:05:09.999999",
]  # fmt: skip
ROWS = [
    *((time, f"{time}+02", time[:10], index % 2, index, time) for index, time in enumerate(TIMES)),
    (None, None, None, 1, 100, TIMES[0]),
    (None, None, None, None, 101, TIMES[1]),
]

BIN = "date_bin('{}', {}, '2001-01-01 00:00{}')"
HOP = "(SELECT *, {} - n * interval '{}' AS w FROM r, generate_series(0, {}) n WHERE {} IS NOT NULL OR n = 0) AS q"


def hop(time: str, slide: str, last: int, zone: str = "") -> str:
    """Each row with the starts w of its windows."""
    return HOP.format(BIN.format(slide, time, zone), slide, last, time)


#: A text for Millstream, and an equivalent for PostgreSQL; r is the relation.
QUERIES = [
    (
        "SELECT tumble(ts, '1 minute') AS w, k, sum(v) FROM r GROUP BY 1, 2",
        f"SELECT {BIN.format('1 minute', 'ts', '')} AS w, k, sum(v) FROM r GROUP BY 1, 2",
    ),
    (
        "SELECT tumble(tz, interval '1 day 12 hours') AS w, count(*) FROM r GROUP BY w",
        f"SELECT {BIN.format('36 hours', 'tz', '+00')} AS w, count(*) FROM r GROUP BY w",
    ),
    (
        "SELECT tumble(d, '7 days') + interval '7 days' AS ends, max(v) FROM r GROUP BY tumble(d, '7 days')",
        f"SELECT {BIN.format('7 days', 'd::timestamp', '')} + interval '7 days', max(v) FROM r GROUP BY 1",
    ),
    (
        "SELECT tumble(ts, '10 minutes', timestamp '2024-01-01 00:03:00') AS w, count(*) FROM r GROUP BY w",
        "SELECT date_bin('10 minutes', ts, timestamp '2024-01-01 00:03:00') AS w, count(*) FROM r GROUP BY w",
    ),
    (
        "SELECT tumble(ts, '1 hour') AS w, k, count(*) FROM r GROUP BY ROLLUP (w, k)",
        f"SELECT {BIN.format('1 hour', 'ts', '')} AS w, k, count(*) FROM r GROUP BY ROLLUP (w, k)",
    ),
    (
        "SELECT hop(ts, '1 minute', '3 minutes') AS w, k, count(*), sum(v) FROM r GROUP BY w, k HAVING count(*) > 1",
        f"SELECT w, k, count(*), sum(v) FROM {hop('ts', '1 minute', 2)} GROUP BY w, k HAVING count(*) > 1",
    ),
    (
        "SELECT hop(ts, '1 minute', '2 minutes') AS w, k, rank() OVER (PARTITION BY hop(ts, '1 minute', '2 minutes') "
        "ORDER BY sum(v)) FROM r GROUP BY w, k HAVING hop(ts, '1 minute', '2 minutes') > '2001-01-01'",
        "SELECT w, k, rank() OVER (PARTITION BY w ORDER BY sum(v)) "
        f"FROM {hop('ts', '1 minute', 1)} GROUP BY w, k HAVING w > '2001-01-01'",
    ),
    (
        "SELECT hop(tz, '2 minutes', '3 minutes') + interval '3 minutes' AS ends, count(*) FROM r "
        "GROUP BY hop(tz, '2 minutes', '3 minutes')",
        f"SELECT w + interval '3 minutes', count(*) FROM {hop('tz', '2 minutes', 1, '+00')} "
        "WHERE tz < w + interval '3 minutes' OR tz IS NULL GROUP BY w",
    ),
    (
        "SELECT hop(late, '1 minute', '2 minutes') AS w, avg(v), count(DISTINCT k) FROM r GROUP BY 1",
        f"SELECT w, avg(v), count(DISTINCT k) FROM {hop('late', '1 minute', 1)} GROUP BY 1",
    ),
    (
        "SELECT hop(ts, '1 minute', '20 seconds', '2024-01-01 00:00:30') AS w, count(*) FROM r WHERE v < 50 GROUP BY 1",
        "SELECT w, count(*) FROM (SELECT *, date_bin('1 minute', ts, '2024-01-01 00:00:30') AS w FROM r) AS q "
        "WHERE v < 50 AND ts < w + interval '20 seconds' GROUP BY w",
    ),
]
IN_SESSIONS = (
    "(SELECT *, CASE WHEN ts IS NOT NULL THEN max(CASE WHEN ts <= before + interval '1 minute' THEN NULL ELSE ts END) "
    "OVER (PARTITION BY k ORDER BY ts) END AS w FROM (SELECT *, lag(ts) OVER (PARTITION BY k ORDER BY ts) AS before "
    "FROM {}) a) b"
)
KEEPING = (
    "string_agg(v::text, ',' ORDER BY v DESC) FILTER (WHERE v <> 2) AS words, array_agg(v ORDER BY v), "
    "count(DISTINCT v % 3) AS d, sum(v), count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY v), "
    "string_agg(DISTINCT d::text, '-') AS days, bool_and(v > 1), json_agg(v ORDER BY v)::text AS j "
    "FROM {} GROUP BY w, k"
)
SESSIONS = [
    ("SELECT session(ts, '1 minute') AS w, k, " + KEEPING, "SELECT w, k, " + KEEPING.replace("{}", IN_SESSIONS)),
    (
        "SELECT session(ts, '1 minute') AS w, k, count(*), sum(v), avg(v), stddev(v), "
        "count(ts) FILTER (WHERE v > 2) AS m FROM {} GROUP BY w, k HAVING max(v) > 1",
        "SELECT CASE WHEN ts IS NOT NULL THEN start END AS w, k, count(*), sum(v), avg(v), stddev(v), "
        "count(ts) FILTER (WHERE v > 2) AS m FROM ("
        "SELECT *, max(CASE WHEN ts <= before + interval '1 minute' THEN NULL ELSE ts END) OVER (PARTITION BY k "
        "ORDER BY ts) AS start FROM (SELECT *, lag(ts) OVER (PARTITION BY k ORDER BY ts) AS before FROM {}) a) b "
        "GROUP BY 1, k HAVING max(v) > 1",
    ),
    (
        "SELECT session(tz, '4 minutes') AS w, max(tz) - min(tz) AS length, count(*) FROM {} GROUP BY 1",
        "SELECT min(tz), max(tz) - min(tz), count(*) FROM (SELECT tz, count(new) OVER (ORDER BY tz) AS n FROM ("
        "SELECT tz, CASE WHEN tz > lag(tz) OVER (ORDER BY tz) + interval '4 minutes' OR tz IS NULL THEN 1 END AS new "
        "FROM {}) a) b GROUP BY n",
    ),
]


@pytest.fixture(scope="module")
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    with Millstream(settings={"spark_enabled": False}) as server, mirrored(server, postgres) as found:
        found.table("r", COLUMNS)
        found.insert("r", ROWS, one_statement=True)
        yield found


@pytest.mark.parametrize(("ours", "theirs"), [*QUERIES, *((a.format("r"), b.format("r")) for a, b in SESSIONS)])
def test_over_a_table(mirror: Mirror, ours: str, theirs: str) -> None:
    found, wanted = (side.execute(text.encode()) for side, text in ((mirror.client, ours), (mirror.judge, theirs)))
    assert_same_rows(found.fetchall(), wanted.fetchall())


def test_over_a_stream(mirror: Mirror) -> None:
    mirror.views.clear()
    mirror.stream("s", COLUMNS)
    for number, (ours, theirs) in enumerate(QUERIES):
        mirror.view(f"v{number}", ours.replace("FROM r", "FROM s"), theirs.replace("FROM r", "FROM s"))
    for number, (ours, theirs) in enumerate(SESSIONS):
        mirror.view(f"w{number}", ours.format("s"), theirs.format("s"))
        grouped = "(SELECT ts, tz, d, k, v FROM s GROUP BY ts, tz, d, k, v) AS g"
        mirror.view(f"g{number}", ours.format(grouped), theirs.format(grouped))
    for row in ROWS:
        mirror.insert("s", [row], one_statement=True)
    mirror.check()


#: SQLSTATE, and the word at the error's position.
REFUSED = [
    ("0A000", "hop", "SELECT hop(ts, '1 minute', '3 minutes') FROM r"),
    ("0A000", "session", "SELECT k FROM r WHERE session(ts, '1 minute') IS NULL"),
    ("0A000", "hop", "SELECT max(hop(ts, '1 minute', '3 minutes')) FROM r"),
    ("0A000", "hop", "SELECT count(*) FROM r GROUP BY hop(ts, '1 s', '3 s') + interval '1 s'"),
    ("0A000", "session", "SELECT count(*) FROM r GROUP BY hop(ts, '1 s', '3 s'), session(ts, '1 s')"),
    ("0A000", "hop", "SELECT count(*) FROM r GROUP BY ROLLUP (hop(ts, '1 s', '3 s'))"),
    ("0A000", "hop", "SELECT count(*) FROM r GROUP BY hop(ts, '1 s', '1 hour')"),
    ("0A000", "tumble", "SELECT tumble(ts, '1 month') FROM r"),
    ("0A000", "tumble", "SELECT tumble(ts, v * interval '1 s') FROM r"),
    ("0A000", "tumble", "SELECT tumble(ts, '1 s', late) FROM r"),
    ("22008", "tumble", "SELECT tumble(ts, '-1 s') FROM r"),
    ("42883", "tumble", "SELECT tumble(k, '1 s') FROM r"),
    ("42883", "hop", "SELECT hop(ts, '1 s') FROM r"),
    ("42803", "k", "SELECT k FROM r GROUP BY hop(ts, '1 s', '3 s')"),
]


def test_arrays_are_not_kept_over_sessions_of_a_stream(mirror: Mirror) -> None:
    mirror.client.execute("CREATE FOREIGN TABLE of_sessions (ts timestamp, v integer) SERVER stream")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="arrays kept over a stream's sessions"):
        mirror.client.execute(
            "CREATE VIEW refused AS SELECT session(ts, '1 s'), count(DISTINCT array[v]) FROM of_sessions GROUP BY 1"
        )


def test_values_of_a_session_are_in_order_of_time_and_arrival(mirror: Mirror) -> None:
    mirror.client.execute("CREATE FOREIGN TABLE in_order (ts timestamp, v integer) SERVER stream")
    mirror.client.execute(
        "CREATE VIEW words AS SELECT session(ts, '1 minute') AS w, string_agg(v::text, ',') FROM in_order GROUP BY 1"
    )
    for time, value in (("00:02", 1), ("00:01", 2), ("00:02", 3), ("00:01", 4), ("00:09", 5)):
        mirror.client.execute(f"INSERT INTO in_order VALUES ('2024-01-01 {time}', {value})".encode())
    assert [row[1] for row in mirror.client.execute("SELECT * FROM words ORDER BY 1")] == ["2,4,1,3", "5"]


@pytest.mark.parametrize(("state", "word", "text"), REFUSED)
def test_what_is_refused(mirror: Mirror, state: str, word: str, text: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        mirror.client.execute(text.encode())
    assert caught.value.sqlstate == state
    place = int(caught.value.diag.statement_position or 0)
    assert text[place - 1 :].startswith(word)
