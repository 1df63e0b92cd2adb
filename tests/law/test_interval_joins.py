"""The law for joins of streams that their times bound: a view equals its query over the rows in time, whenever rows
leave its states.

PostgreSQL has all rows with the number of their transaction, and says itself which are in time: where rows of one
stream leave by the other's watermark, a row of that one counts if its time lies above the watermark of the
transactions before, or if it has none. Times are whole minutes, so that many lie on the bounds. The server works in the
background, and starts again in between, also as after a crash.
"""

from __future__ import annotations

import contextlib
import random
import re
from typing import Final

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

COLUMNS: Final = "k int, at timestamp, tz timestamptz, x int, t text"
#: By stream, the watermark's column and its delay in minutes.
WATERMARKS: Final = {"a": ("at", 2), "b": ("at", 0), "c": ("tz", 5), "d": ("at", 3), "plain": None}
#: By view, the streams of which rows in time alone count, and the query.
VIEWS: Final = {
    "grouped": ("ab", "SELECT a.k, count(*), sum(b.x), max(a.t) AS t FROM a JOIN b ON a.k = b.k "
                "AND b.at BETWEEN a.at AND a.at + interval '10 minutes' GROUP BY a.k"),
    "strict": ("ab", "SELECT count(*), sum(a.x - b.x) FROM a, b WHERE a.k = b.k AND b.at > a.at - interval '3 minutes' "
               "AND b.at - interval '4 minutes' < a.at AND a.x <> b.x"),
    "differences": ("ab", "SELECT a.t, b.t AS u, count(*) FROM a, b WHERE a.k = b.k "
                    "AND b.at - a.at BETWEEN interval '-5 minutes' AND interval '5 minutes' GROUP BY 1, 2"),
    "before": ("ab", "SELECT a.k, count(*), avg(b.x) FROM a JOIN b USING (k) WHERE b.at >= a.at - interval '9 minutes' "
               "AND b.at <= a.at - interval '4 minutes' AND a.x > 2 GROUP BY a.k"),
    "equal": ("ab", "SELECT a.at, count(*), array_agg(b.x ORDER BY b.x, a.x), count(DISTINCT a.t) AS d, "
              "string_agg(b.t, ',' ORDER BY b.t) FROM a JOIN b ON a.at = b.at GROUP BY a.at"),
    "zoned": ("c", "SELECT c.k, count(*), min(a.x) FROM a JOIN c ON a.k = c.k AND a.at <= c.tz::timestamp "
              "AND c.tz - interval '8 minutes' <= a.tz AND a.at >= '2024-01-01' AND a.tz + interval '1 day' >= c.tz "
              "GROUP BY c.k"),
    "one_side": ("b", "SELECT a.k, count(*), sum(b.x) FROM a JOIN b ON a.k = b.k "
                 "AND b.at <= a.at + interval '3 minutes' GROUP BY a.k"),
    "one_watermark": ("b", "SELECT p.k, count(*), sum(b.x * p.x) FROM plain p JOIN b ON p.k = b.k "
                      "AND b.at BETWEEN p.at - interval '2 minutes' AND p.at + interval '3 minutes' GROUP BY p.k"),
    "itself": ("a", "SELECT l.t, r.t AS u, count(*) FROM a l JOIN a r ON l.k = r.k AND r.at > l.at "
               "AND r.at <= l.at + interval '5 minutes' GROUP BY 1, 2"),
    "tables": ("ab", "SELECT name, count(*), sum(a.x * w) FROM a JOIN names ON a.k = id JOIN b ON a.k = b.k "
               "AND b.at BETWEEN a.at AND a.at + interval '6 minutes' WHERE w + b.x > 1 GROUP BY name"),
    "rows": ("ab", "SELECT a.k, a.at, b.at AS then, a.t || b.t AS both FROM a JOIN b ON a.k = b.k AND a.x + b.x > 3 "
             "AND b.at BETWEEN a.at AND a.at + interval '4 minutes'"),
    "rows_of_tables": ("ab", "SELECT a.k, name, b.x FROM a JOIN b ON a.k = b.k AND abs(a.x - b.x) < 3 "
                       "AND b.at BETWEEN a.at AND a.at + interval '4 minutes' LEFT JOIN names ON id = b.x"),
    "above": ("ab", "SELECT k, n, rank() OVER (ORDER BY n DESC) FROM (SELECT a.k, count(*) AS n FROM a JOIN b "
              "ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '7 minutes' GROUP BY a.k) g WHERE n > 1"),
    "twice": ("ab", "SELECT l.k, l.n, r.s FROM (SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k AND "
              "b.at BETWEEN a.at AND a.at + interval '5 minutes' GROUP BY a.k) l JOIN (SELECT b.t, a.k, sum(a.x) AS s "
              "FROM a JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '5 minutes' GROUP BY b.t, a.k) r "
              "ON l.k = r.k"),
    "first_rows": ("ab", "SELECT DISTINCT ON (a.k) a.k, b.at, b.x, a.x AS y FROM a JOIN b ON a.k = b.k AND "
                   "b.at BETWEEN a.at AND a.at + interval '5 minutes' ORDER BY a.k, b.at DESC, b.x, a.x"),
    "latest_too": ("ab", "SELECT (SELECT max(at) FROM b) AS latest, count(*) FROM a JOIN b ON a.k = b.k AND "
                   "b.at BETWEEN a.at AND a.at + interval '5 minutes'"),
}  # fmt: skip


#: Those of three streams.
THREE: Final = {
    "three": ("abd", "SELECT a.k, count(*), sum(b.x), max(d.x) AS x FROM a JOIN b ON a.k = b.k AND b.at BETWEEN a.at "
              "AND a.at + interval '5 min' JOIN d ON d.k = b.k AND d.at BETWEEN b.at AND b.at + interval '4 min' "
              "GROUP BY a.k"),
    "three_rows": ("abd", "SELECT a.k, a.at, b.at AS u, d.at AS v, d.t FROM a, b, d WHERE a.k = b.k AND b.k = d.k "
                   "AND a.at - d.at BETWEEN interval '-3 min' AND interval '2 min' AND b.at <= d.at + interval '2 min' "
                   "AND b.at >= d.at AND a.x + b.x > d.x"),
    "three_equal": ("abd", "SELECT a.at, count(*), array_agg(d.x ORDER BY d.x, a.x, b.x) FROM a JOIN b ON a.at = b.at "
                    "JOIN d ON d.at = b.at GROUP BY a.at"),
    "three_partly": ("bd", "SELECT a.k, count(*), sum(d.x) FROM a JOIN b ON a.k = b.k "
                     "AND b.at <= a.at + interval '3 min' JOIN d ON d.k = b.k AND d.at < b.at + interval '2 min' "
                     "GROUP BY a.k"),
    "three_itself": ("a", "SELECT l.k, l.t, m.t AS u, r.t AS v, count(*) FROM a l JOIN a m ON l.k = m.k "
                     "AND m.at > l.at AND m.at <= l.at + interval '3 min' JOIN a r ON r.k = m.k AND r.at > m.at "
                     "AND r.at <= m.at + interval '3 min' GROUP BY 1, 2, 3, 4"),
    "three_of_two": ("ab", "SELECT l.x, b.x AS y, r.x AS z FROM a l JOIN b ON l.k = b.k AND b.at BETWEEN l.at AND l.at "
                     "+ interval '3 min' JOIN a r ON r.k = b.k AND r.at BETWEEN b.at AND l.at + interval '6 min'"),
    "four": ("abd", "SELECT a.k, count(*), sum(d.x - e.x) FROM a JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + "
             "interval '4 min' JOIN d ON d.k = b.k AND d.at BETWEEN b.at AND b.at + interval '3 min' JOIN a e "
             "ON e.k = d.k AND e.at BETWEEN b.at AND d.at + interval '2 min' GROUP BY a.k"),
    "four_rows": ("abd", "SELECT a.x, b.x AS y, d.x AS z, e.x AS v FROM a, b, d, b e WHERE a.k = b.k AND b.k = d.k "
                  "AND a.at = b.at AND d.at = b.at AND e.at BETWEEN a.at AND d.at + interval '3 min' AND e.x > a.x"),
    "three_tables": ("abd", "SELECT name, count(*), sum(a.x * w) FROM a JOIN names ON a.k = id JOIN b ON a.k = b.k AND "
                     "b.at BETWEEN a.at AND a.at + interval '6 min' JOIN d ON d.k = id "
                     "AND d.at >= b.at - interval '1 min' AND d.at <= b.at + interval '2 min' GROUP BY name"),
}  # fmt: skip


#: Those of outer joins: a row without a time counts, since it has no partner.
OUTER: Final = {
    "left": ("ab", "SELECT a.k, a.at, a.x, b.at AS then, b.x AS y FROM a LEFT JOIN b ON a.k = b.k "
             "AND b.at BETWEEN a.at AND a.at + interval '4 minutes'"),
    "left_groups": ("ab", "SELECT a.k, count(*), count(b.x) AS m, sum(b.x), max(a.t) AS t, min(b.at) FROM a "
                    "LEFT JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '10 minutes' GROUP BY a.k"),
    "left_conditions": ("ab", "SELECT a.x, b.x AS y, count(*) FROM a LEFT JOIN b ON a.k = b.k AND a.x > 1 AND b.x < 4 "
                        "AND a.t IS DISTINCT FROM b.t AND b.at - a.at BETWEEN interval '-3 min' AND interval '3 min' "
                        "WHERE a.k < 3 AND coalesce(b.x, 7) > 1 GROUP BY 1, 2"),
    "left_one_side": ("b", "SELECT a.k, count(*), sum(b.x) FROM a LEFT JOIN b ON a.k = b.k "
                      "AND b.at <= a.at + interval '3 minutes' GROUP BY a.k"),
    "left_of_plain": ("b", "SELECT p.k, p.x, b.x AS y FROM plain p LEFT JOIN b ON p.k = b.k "
                      "AND b.at BETWEEN p.at - interval '2 minutes' AND p.at + interval '3 minutes'"),
    "left_of_rows": ("ab", "SELECT l.u, l.d, b.t FROM (SELECT k, x * 2 AS d, at + interval '5 min' AS u FROM a "
                     "WHERE x > 1) l LEFT JOIN b ON b.k = l.k AND b.at <= u AND b.at >= u - interval '6 minutes'"),
    "left_missing": ("ab", "SELECT a.k, a.x FROM a LEFT JOIN b ON a.k = b.k AND b.at BETWEEN a.at "
                     "AND a.at + interval '5 minutes' WHERE b.at IS NULL"),
    "left_kept": ("", "SELECT b.k, p.x, b.x AS y FROM b LEFT JOIN plain p ON p.k = b.k "
                  "AND b.at BETWEEN p.at - interval '2 minutes' AND p.at + interval '3 minutes'"),
    "right": ("ab", "SELECT b.k, b.x, count(a.x) AS m, count(*) FROM a RIGHT JOIN b ON a.k = b.k "
              "AND b.at BETWEEN a.at AND a.at + interval '6 minutes' GROUP BY 1, 2"),
    "full": ("ab", "SELECT a.k, a.x, b.k AS l, b.x AS y FROM a FULL JOIN b ON a.k = b.k "
             "AND b.at BETWEEN a.at - interval '2 minutes' AND a.at + interval '3 minutes'"),
    "full_groups": ("ab", "SELECT coalesce(a.k, b.k) AS k, count(*), count(a.x) AS m, count(DISTINCT b.t) AS d, "
                    "array_agg(b.x ORDER BY b.x, a.x) FROM a FULL JOIN b ON a.k = b.k "
                    "AND b.at BETWEEN a.at AND a.at + interval '5 minutes' GROUP BY 1"),
    "full_zoned": ("ac", "SELECT a.t, c.t AS u, count(*) FROM a FULL JOIN c ON a.k = c.k AND a.tz - c.tz "
                   "<= interval '3 minutes' AND a.at >= c.tz::timestamp AND a.at - interval '3 min' <= c.at "
                   "AND c.tz <= a.tz GROUP BY 1, 2"),
    "anti": ("ab", "SELECT a.k, a.at, a.x FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k "
             "AND b.at BETWEEN a.at AND a.at + interval '5 minutes')"),
    "anti_groups": ("ab", "SELECT b.k, count(*) FROM b WHERE b.x > 0 AND NOT EXISTS (SELECT FROM a WHERE b.k = a.k "
                    "AND b.at BETWEEN a.at AND a.at + interval '2 minutes' AND a.x <> b.x) GROUP BY b.k"),
    "left_itself": ("a", "SELECT l.k, l.at, r.at AS next FROM a l LEFT JOIN a r ON l.k = r.k AND r.at > l.at "
                    "AND r.at <= l.at + interval '5 minutes'"),
    "left_tables": ("ab", "SELECT name, count(*), sum(a.x * w), count(b.x) AS m FROM a LEFT JOIN b ON a.k = b.k "
                    "AND b.at BETWEEN a.at AND a.at + interval '6 minutes' JOIN names ON a.k = id GROUP BY name"),
    "left_rows_of_tables": ("ab", "SELECT a.k, name, b.x FROM a LEFT JOIN b ON a.k = b.k AND b.at BETWEEN a.at "
                            "AND a.at + interval '4 minutes' LEFT JOIN names ON id = b.x"),
    "left_twice": ("ab", "SELECT l.k, l.n, r.s FROM (SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k AND b.at "
                   "BETWEEN a.at AND a.at + interval '5 minutes' GROUP BY a.k) l FULL JOIN (SELECT b.t, a.k, sum(a.x) "
                   "AS s FROM a LEFT JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '5 minutes' "
                   "GROUP BY b.t, a.k) r ON l.k = r.k"),
    "left_first_rows": ("ab", "SELECT DISTINCT ON (a.k) a.k, b.at, b.x, a.x AS y FROM a LEFT JOIN b ON a.k = b.k "
                        "AND b.at BETWEEN a.at AND a.at + interval '5 minutes' ORDER BY a.k, b.at DESC, b.x, a.x"),
    "left_above": ("ab", "SELECT k, n, rank() OVER (ORDER BY n DESC) FROM (SELECT b.k, count(*) AS n FROM a "
                   "LEFT JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '7 minutes' GROUP BY b.k) g "
                   "WHERE n > 1"),
    "tables_first": ("ab", "SELECT a.k, name, a.x, b.x AS y FROM a JOIN names ON id = a.k LEFT JOIN b ON a.k = b.k "
                     "AND b.at BETWEEN a.at AND a.at + interval '4 minutes'"),
    "tables_right": ("ab", "SELECT name, count(*), sum(w), count(b.x) AS m FROM b RIGHT JOIN (SELECT a.*, name, w "
                     "FROM a LEFT JOIN names ON id = x) a ON a.k = b.k AND b.at BETWEEN a.at AND a.at "
                     "+ interval '5 minutes' GROUP BY name"),
    "tables_left": ("ab", "SELECT a.k, name, b.x FROM (SELECT a.*, name FROM a LEFT JOIN names ON id = x) a JOIN b "
                    "ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '4 minutes' AND (b.x > 2 OR name = 'n1') "
                    "WHERE EXISTS (SELECT FROM names WHERE id = b.x)"),
    "tables_anti": ("ab", "SELECT name, count(*) FROM (SELECT a.*, name || 's' AS name FROM a JOIN names ON id <= x) a "
                    "WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k AND b.at BETWEEN a.at AND a.at "
                    "+ interval '3 minutes') GROUP BY name"),
    "exists": ("ab", "SELECT a.k, a.at, a.x FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k AND b.at BETWEEN a.at "
               "AND a.at + interval '4 minutes' AND a.x <> b.x)"),
    "exists_groups": ("ab", "SELECT b.k, count(*), sum(x), array_agg(x ORDER BY x) FROM b WHERE EXISTS (SELECT FROM a "
                      "WHERE a.x < b.x AND a.k = b.k AND a.at - b.at BETWEEN interval '-3 min' AND interval '3 min') "
                      "GROUP BY b.k"),
    "exists_itself": ("a", "SELECT l.k, l.at, l.t FROM a l WHERE EXISTS (SELECT FROM a r WHERE l.k = r.k AND "
                      "r.at > l.at AND r.at <= l.at + interval '5 minutes')"),
    "exists_of_tables": ("ab", "SELECT a.x, name FROM a JOIN names ON id = a.k WHERE a.x IN (SELECT x FROM b "
                         "WHERE b.at = a.at)"),
    "exists_one_side": ("b", "SELECT p.k, p.x FROM plain p WHERE EXISTS (SELECT FROM b WHERE p.k = b.k "
                        "AND b.at <= p.at + interval '3 minutes')"),
    "not_in": ("ab", "SELECT a.x, count(*) FROM a WHERE a.k NOT IN (SELECT k FROM b WHERE b.at BETWEEN a.at "
               "AND a.at + interval '2 minutes') GROUP BY a.x"),
}  # fmt: skip

#: Those of which some rows fail, by the option: in a stream's own rows, in conditions on both, and beside late rows.
FAILING: Final = {
    "skip": ("SELECT a.k, count(*), sum(b.q) FROM a JOIN (SELECT k, at, 12 / x AS q FROM b) b ON a.k = b.k "
             "AND b.at BETWEEN a.at AND a.at + interval '5 minutes' GROUP BY a.k"),
    "skip_rows": ("SELECT a.k, a.at, b.x, b.at AS u FROM a JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at "
                  "+ interval '4 minutes' AND 12 / b.x > a.x WHERE 7 % b.x < 3"),
    "skip_three": ("SELECT count(*), sum(a.x) FROM a JOIN b ON a.at = b.at AND a.k < 12 / b.x JOIN d ON d.k = b.k "
                   "AND d.at BETWEEN a.at AND a.at + interval '5 minutes'"),
    "skip_itself": ("SELECT l.k, count(*) FROM b l JOIN b r ON l.k = r.k AND r.at > l.at AND 12 / l.x >= 12 / r.x "
                    "AND r.at <= l.at + interval '5 minutes' GROUP BY l.k"),
    "null": ("SELECT a.k, count(*), count(b.q) AS m, sum(b.q) FROM a JOIN (SELECT k, at, 12 / x AS q FROM b) b "
             "ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '5 minutes' GROUP BY a.k"),
    "null_rows": ("SELECT a.k, a.at, b.x, b.q FROM a JOIN (SELECT k, at, x, 7 % x AS q FROM b) b ON a.k = b.k "
                  "AND b.at BETWEEN a.at AND a.at + interval '4 minutes' AND 12 / b.x > a.x"),
    "null_itself": ("SELECT l.k, count(*) FROM b l JOIN b r ON l.k = r.k AND r.at > l.at AND (12 / l.x IS DISTINCT "
                    "FROM 12 / r.x) AND r.at <= l.at + interval '5 minutes' GROUP BY l.k"),
    "skip_left": ("SELECT a.k, a.x, a.at, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at "
                  "+ interval '4 minutes' AND 12 / b.x > a.x"),
    "skip_full": ("SELECT a.k, a.x, b.k AS l, b.x AS y, b.q FROM a FULL JOIN (SELECT k, at, x, 12 / x AS q FROM b) b "
                  "ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '3 minutes'"),
    "skip_anti": ("SELECT b.k, count(*) FROM b WHERE 12 / b.x > 2 AND NOT EXISTS (SELECT FROM a WHERE a.k = b.k "
                  "AND b.at BETWEEN a.at AND a.at + interval '3 minutes' AND a.x < 12 / b.x) GROUP BY b.k"),
    "skip_right": ("SELECT b.x, count(*), count(a.x) AS m FROM a RIGHT JOIN b ON a.k = b.k AND a.x < 7 % b.x "
                   "AND b.at BETWEEN a.at AND a.at + interval '4 minutes' GROUP BY b.x"),
    "skip_exists": ("SELECT b.k, count(*) FROM b WHERE EXISTS (SELECT FROM a WHERE a.k = b.k AND 12 / b.x > a.x "
                    "AND b.at BETWEEN a.at AND a.at + interval '3 minutes') GROUP BY b.k"),
    "null_left": ("SELECT a.k, a.x, a.at, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND b.at BETWEEN a.at AND a.at "
                  "+ interval '4 minutes' AND 12 / b.x > a.x"),
    "null_full": ("SELECT coalesce(a.k, b.k) AS k, count(*), count(a.x) AS m, sum(b.q) FROM a FULL JOIN (SELECT k, at, "
                  "12 / x AS q FROM b) b ON a.k = b.k AND b.at BETWEEN a.at AND a.at + interval '3 min' GROUP BY 1"),
    "null_anti": ("SELECT a.k, a.x, a.at FROM a WHERE NOT EXISTS (SELECT FROM b WHERE a.k = b.k AND 7 % b.x = a.x "
                  "AND b.at BETWEEN a.at AND a.at + interval '5 minutes')"),
}  # fmt: skip


SETTINGS: Final = {"maintenance_rows": 15, "maintenance_idle": 0.05, "spark_enabled": False}
NAMES: Final = (
    "CREATE TABLE names (id int, name text, w int)",
    "INSERT INTO names SELECT i, 'n' || i % 2, i FROM generate_series(0, 3) AS g (i)",
)


@pytest.mark.parametrize("seed", sample(range(10), (0,)))
def test_views_equal_their_queries_over_the_rows_in_time(postgres: Postgres, seed: int, whole: bool) -> None:
    drawn, steps = random.Random(seed), 60 if whole else 24
    with Millstream(settings=SETTINGS) as server, mirrored(server, postgres) as mirror:
        _create(mirror, seed)
        number = minute = 0
        for step in range(1, steps + 1):
            minute += drawn.choice((0, 0, 1, 1, 2))
            number = _feed(mirror, drawn, number, minute)
            if drawn.random() < 0.1:
                mirror.both(f"UPDATE names SET w = w + 1 WHERE id = {drawn.randint(0, 3)}")
            if step % (steps // 3) == 0:
                mirror.restart(crash=drawn.random() < 0.7)
            if drawn.random() < 0.3:
                mirror.check(*drawn.sample(sorted(mirror.views), 9))
        mirror.check()


def _create(mirror: Mirror, seed: int) -> None:
    """Makes streams and views; the rows of every second view follow changes."""
    for statement in NAMES:
        mirror.both(statement)
    for stream, watermark in WATERMARKS.items():
        option = "" if watermark is None else f"OPTIONS (watermark '{watermark[0]} - interval ''{watermark[1]} min''')"
        mirror.client.execute(f"CREATE FOREIGN TABLE {stream} ({COLUMNS}) SERVER stream {option}".encode())
        mirror.judge.execute(f"CREATE TABLE all_{stream} (n int, {COLUMNS})".encode())
    for place, (name, (streams, query)) in enumerate((VIEWS | OUTER | THREE).items()):
        is_followed = (place + seed) % 2
        options = "WITH (method = 'incremental', refresh_policy = 'incremental')" if is_followed else ""
        mirror.client.execute(f"CREATE VIEW v_{name} {options} AS {query}".encode())
        rows = (f"{stream} AS ({_in_time(stream, stream in streams)})" for stream in WATERMARKS)
        mirror.views[f"v_{name}"] = f"WITH {', '.join(rows)} {query}"
    for name, query in FAILING.items():
        policy = name.partition("_")[0]
        mirror.client.execute(f"CREATE VIEW v_{name} WITH (on_error = '{policy}') AS {query}".encode())
        come = {"b": "x <> 0"} if policy == "skip" else {}
        rows = (f"{item} AS ({_in_time(item, item in 'abd', come.get(item, 'true'))})" for item in WATERMARKS)
        judged = re.sub(r"([/%]) ((?:[blr]\.)?x)", r"\1 nullif(\2, 0)", query) if policy == "null" else query
        mirror.views[f"v_{name}"] = f"WITH {', '.join(rows)} {judged}"


def _in_time(stream: str, is_judged: bool, has_come: str = "true") -> str:
    """The rows of a stream that count, of those that are there for the view."""
    watermark = WATERMARKS[stream]
    if not is_judged or watermark is None:
        return f"SELECT * FROM all_{stream}"
    column, delay = watermark
    before = f"(SELECT max({column}) FROM all_{stream} b WHERE b.n < r.n AND b.{has_come})"
    before = before.replace("b.true", "true")
    return (
        f"SELECT * FROM all_{stream} r WHERE {has_come} AND ({column} IS NULL "
        f"OR {before} IS NULL OR {column} > {before} - interval '{delay} min')"
    )


def _feed(mirror: Mirror, drawn: random.Random, number: int, minute: int) -> int:
    """Rows about some minute, of which some are late or have no time, in one transaction or in one each; ``number`` is
    that of the last transaction."""
    is_one = drawn.random() < 0.7
    statements = []
    number += 1
    for stream in drawn.sample(sorted(WATERMARKS), drawn.randint(1, 3)):
        for _ in range(drawn.randint(1, 4)):
            at = minute - drawn.choice((0, 0, 0, 1, 1, 2, 3, 6, 12))
            time = "NULL" if drawn.random() < 0.05 else f"timestamp '2024-01-01' + {at} * interval '1 minute'"
            values = f"{drawn.randint(0, 3)}, {time}, {time}, {drawn.randint(0, 5)}, '{drawn.choice('xyz')}'"
            statements.append((number, stream, values))
            number += not is_one
    with mirror.judge.transaction():
        for place, stream, values in statements:
            mirror.judge.execute(f"INSERT INTO all_{stream} VALUES ({place}, {values})".encode())
    with mirror.client.transaction() if is_one else contextlib.nullcontext():
        for _, stream, values in statements:
            mirror.client.execute(f"INSERT INTO {stream} VALUES ({values})".encode())
    return number
