"""Continuous views of many shapes between servers, at random: each shows the same as one that never left.

The judge is a separate database with the same streams and views, which gets the same transactions. ``tests/law`` checks
that its views equal their queries over all rows.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from catalog.objects import View
from catalog.values.errors import SqlError
from tests.executor.client import Client, open_database
from tests.executor.moving import Servers
from tests.rig.process import wait_until
from tests.rig.sampling import sample

pytestmark = pytest.mark.slow

COLUMNS = "(i bigint, k int, n numeric(12,2), t text, m mood, ts timestamp)"
DEFINITIONS = f"""
    CREATE SCHEMA "My Schema";
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE FOREIGN TABLE s {COLUMNS} SERVER stream OPTIONS (watermark 'ts - interval ''30 seconds''');
    CREATE FOREIGN TABLE "My Schema"."R r" {COLUMNS} SERVER stream OPTIONS (watermark 'ts - interval ''30 seconds''');
    CREATE TABLE labels (x int, label text);
    INSERT INTO labels VALUES (0, 'none'), (1, 'one'), (2, 'two'), (7, 'seven');
    CREATE TABLE people (x int, name text, mood mood);
    CREATE TABLE "My Schema"."K k" (x int PRIMARY KEY, n numeric(12,2));
    INSERT INTO people VALUES (0, 'Ada', 'ok'), (1, 'Bob', NULL), (1, 'Bob', NULL);
"""
#: Columns of tables that views read at each read.
CHANGES = (
    "INSERT INTO people VALUES ({0}, 'p{1}', 'sad'), ({0}, 'p{1}', 'sad')",
    "UPDATE people SET name = name || '{1}', mood = 'happy' WHERE x = {0}",
    "DELETE FROM people WHERE x = {0}",
    "TRUNCATE people",
    'INSERT INTO "My Schema"."K k" VALUES ({0}, {1}) ON CONFLICT (x) DO UPDATE SET n = excluded.n',
    'DELETE FROM "My Schema"."K k" WHERE x = {0}',
)
START = datetime(2024, 3, 30, 23, 50)
#: Views with their options.
SHAPES = {
    "joined": ("", "SELECT label, count(*), sum(n) FROM s JOIN labels ON x = k GROUP BY label"),
    "kept": ("", "SELECT x, count(i) AS c FROM labels LEFT JOIN s ON x = k GROUP BY x"),
    "first": ("", "SELECT DISTINCT ON (k) k, i, t FROM s ORDER BY k, n DESC, i"),
    "top": ("", 'SELECT n, i FROM "My Schema"."R r" ORDER BY n DESC, i LIMIT 4'),
    "numbered": (
        "",
        "SELECT * FROM (SELECT k, i, row_number() OVER (PARTITION BY k ORDER BY n, i) r FROM s) q WHERE r < 4",
    ),
    "thirds": ("", "SELECT k, m, count(*) FROM s GROUP BY k, m HAVING count(*) % 3 = 1"),
    "fewer": ("", 'SELECT k, t FROM s EXCEPT ALL SELECT k, t FROM "My Schema"."R r"'),
    '"My Schema"."V v"': ("", "SELECT m, array_agg(i) AS a, max(t), count(DISTINCT k) FROM s GROUP BY CUBE (m)"),
    "windows": (
        "WITH (retention = '5 minutes')",
        "SELECT tumble(ts, '1 minute') AS w, k, sum(n), count(DISTINCT t), string_agg(t, ',') FROM s GROUP BY 1, 2",
    ),
    "sessions": (
        "WITH (retention = '2 minutes')",
        "SELECT session(ts, '20 seconds') AS w, k, count(*), string_agg(i::text, ',' ORDER BY i) FROM s GROUP BY 1, 2",
    ),
    "final": (
        "WITH (retention = '10 minutes', emit = 'final')",
        "SELECT hop(ts, '1 minute', '3 minutes') AS w, avg(n), max(ts) FROM s GROUP BY 1",
    ),
    "beside": (
        "",
        "SELECT p.name, p.mood::text, g.c FROM people p "
        "LEFT JOIN (SELECT k, count(*) AS c FROM s GROUP BY k) g ON k = x",
    ),
    "among": (
        "",
        "SELECT k, sum(n), (SELECT count(*) FROM people) AS p FROM s GROUP BY k "
        'HAVING k IN (SELECT x FROM "My Schema"."K k")',
    ),
    "several": (
        "",
        "SELECT a.c, b.d, x.n FROM (SELECT k, count(*) AS c FROM s GROUP BY k) a JOIN (SELECT k, count(*) AS d FROM "
        '"My Schema"."R r" GROUP BY k) b ON a.k = b.k JOIN "My Schema"."K k" x ON x.x = a.k',
    ),
    "near": (
        "",
        'SELECT s.k, count(*) AS c, sum(r.n) AS n FROM s JOIN "My Schema"."R r" r ON s.k = r.k '
        "AND r.ts BETWEEN s.ts - interval '1 minute' AND s.ts + interval '2 minutes' GROUP BY s.k",
    ),
    "days": (
        "",
        "SELECT date_trunc('day', ts::timestamptz) AS d, max(ts::timestamptz)::text AS last, count(*) AS c "
        "FROM s GROUP BY 1",
    ),
}
#: Views of streams that read others at each read, and the names of these.
READERS = {
    "mixed": (
        ("first", "thirds"),
        "SELECT g.k, g.c, f.i, f.t, h.m, h.count FROM (SELECT k, count(*) AS c FROM s GROUP BY k) g "
        "LEFT JOIN first f ON f.k = g.k LEFT JOIN thirds h ON h.k = g.k",
    ),
    "twofold": (
        ("mixed", "beside", "first", "thirds"),
        "SELECT k, max(i) AS i, (SELECT count(*) FROM mixed m WHERE m.i > 5) AS c, (SELECT max(name) FROM beside) AS n "
        'FROM "My Schema"."R r" GROUP BY k',
    ),
    "framed": (
        ("windows", '"My Schema"."V v"'),
        "SELECT w.w, w.k, w.sum, v.a, g.x FROM windows w JOIN (SELECT m, max(i) AS x FROM s GROUP BY m) g ON true "
        'JOIN "My Schema"."V v" v ON v.m = g.m',
    ),
    "dated": (
        ("days", "thirds"),
        "SELECT g.m, g.l::text, date_trunc('hour', g.l) AS h, d.d::text, d.last, t.count FROM days d, "
        '(SELECT m, max(ts::timestamptz) AS l FROM "My Schema"."R r" GROUP BY m) g LEFT JOIN thirds t ON t.m = g.m',
    ),
    "later": (
        ("dated", "days", "thirds"),
        "SELECT k, max(ts::timestamptz)::time AS l, (SELECT max(h)::text FROM dated) AS h, "
        "(SELECT max(d)::text FROM days) AS d FROM s GROUP BY k",
    ),
}
#: The TimeZone settings of views that are not created in UTC.
ZONES = {"days": "Asia/Tokyo", "dated": "America/New_York", "later": "Asia/Tokyo"}
#: Views over those, at home, and the views that they read.
ABOVE = {
    "above": (("first", "thirds"), "SELECT f.k, f.i, h.count FROM first f JOIN thirds h ON h.k = f.k"),
    "higher": (
        ("kept", '"My Schema"."V v"'),
        'SELECT x, (SELECT count(*) FROM "My Schema"."V v") AS c FROM kept WHERE c > 1',
    ),
    "over": (("beside", "thirds"), "SELECT b.name, h.count FROM beside b JOIN thirds h ON h.k = b.c % 4"),
    "of_mixed": (("mixed",), "SELECT k, c FROM mixed"),
}


class Scenario:
    """Views of the server ``a``, wherever they are, or suspended (at ''), and those of the judge."""

    def __init__(self, servers: Servers, judge: Client, choose: random.Random) -> None:
        self._servers, self._judge, self._choose = servers, judge, choose
        for client in (servers.client("a"), judge):
            client.run(DEFINITIONS)
            for name, (options, query) in (SHAPES | READERS | ABOVE).items():
                client.session.time_zone = ZONES.get(name, "UTC")
                client.run(f"CREATE VIEW {name} {options if isinstance(options, str) else ''} AS {query}")
            client.session.time_zone = "UTC"
        for name in "bc":
            servers.client(name).run('CREATE SCHEMA "My Schema"')
        self._at = dict.fromkeys(SHAPES | READERS, "a")
        self._rows, self._seconds = 0, 0

    def insert(self) -> None:
        """Inserts a transaction, whose rows are late, some by much."""
        choose, statements = self._choose, ["BEGIN"]
        for stream in choose.choice((("s",), ('"My Schema"."R r"',), ("s", '"My Schema"."R r"'))):
            rows = []
            for _ in range(choose.choice((1, 5, 60))):
                self._rows += 1
                time = START + timedelta(seconds=self._seconds - int(choose.expovariate(0.02)))
                values = (self._rows, choose.randrange(4), choose.randrange(900) / 100, choose.choice("abc"))
                rows.append((*values, choose.choice(("sad", "ok", "happy")), str(time)))
            statements.append(f"INSERT INTO {stream} VALUES {', '.join(map(repr, rows))}")
        self._seconds += choose.randrange(90)
        if choose.randrange(4) == 0:
            statements.insert(choose.randrange(1, len(statements) + 1), self._change())
        for client in (self._servers.client("a"), self._judge):
            client.run("; ".join((*statements, "COMMIT")))

    def _change(self) -> str:
        return self._choose.choice(CHANGES).format(self._choose.randrange(4), self._choose.randrange(100))

    def change(self) -> None:
        """Changes a table only."""
        statement = self._change()
        for client in (self._servers.client("a"), self._judge):
            client.run(statement)

    def _view(self, name: str) -> View:
        schema, _, relation = name.rpartition(".")
        server = self._servers[self._at[name] or "a"]
        found = server.core.catalog.require(schema.strip('"') or "public", relation.strip('"'))
        assert isinstance(found, View)
        return found

    def move(self) -> None:
        """Migrates, suspends or resumes a view, or copies it where it is."""
        name, target = self._choose.choice(list(self._at)), self._choose.choice("abc")
        at, to = self._at[name], self._servers[target].view_migration
        if at == "":
            shared = self._servers["a"].core.view(self._view(name).oid).shared
            (owned,) = [item for item in to.suspended() if item.name == shared]
            to.resume(owned, lambda: False)
        elif at == target and self._choose.randrange(2):
            to.checkpoint(self._view(name))
            return
        elif at == target:
            to.suspend(self._view(name))
            target = ""
        else:
            self._servers[at].view_migration.migrate(self._view(name), target, lambda: False)
        self._at[name] = target

    def lose(self) -> None:
        """A server is lost for the others, and its guests return to their home; it starts again."""
        lost = self._choose.choice("bc")
        if lost in self._servers.running:
            self._servers.lose(lost, "a")
            for entry in self._servers["a"].view_migration.ownership.all():
                if entry.owner == lost:
                    wait_until(partial(self._is_home, entry.name), what="the take-over")
            self._at = {name: "a" if at == lost else at for name, at in self._at.items()}
            self._servers.stop(lost)

    def _is_home(self, shared: str) -> bool:
        entry = self._servers["a"].view_migration.ownership.get(shared)
        return entry is not None and entry.taken and entry.owner == "a"

    def restart(self) -> None:
        """A server ends in order and restarts."""
        self._servers.stop(self._choose.choice(self._servers.running or ("a",)))

    def _places(self, name: str) -> list[str]:
        """The servers that show a view at home while it is away: its own, or those of the views that it reads."""
        if self._at.get(name, "a") != "a":
            return [self._at[name]]
        below = (READERS | ABOVE)[name][0] if name in READERS or name in ABOVE else ()
        return [place for each in below for place in self._places(each)]

    def read(self) -> None:
        """Checks that all views show the right rows, where they are and at home."""
        for name in (*self._at, *ABOVE):
            places = self._places(name)
            for place in ("a", *places):
                _ = self._servers[place or "a"]
            for reader in {"a", self._at.get(name) or "a"}:
                client, query = self._servers.client(reader), f"SELECT * FROM {name}"
                if "" in places:
                    with pytest.raises(SqlError, match=r"55000: view .* is suspended"):
                        client.run(query)
                else:
                    found, wanted = (sorted(map(repr, each.run(query))) for each in (client, self._judge))
                    assert found == wanted, (name, reader, self._at)


@pytest.mark.parametrize("seed", sample(range(8), range(1)))
def test_views_show_what_those_that_never_left_do(seed: int, servers: Servers, tmp_path: Path, whole: bool) -> None:
    choose = random.Random(seed)
    servers.options |= {"maintenance_rows": choose.choice((1, 50, 100_000)), "log_segment_bytes": 1 << 16}
    judge = open_database(tmp_path / "judge")
    try:
        scenario = Scenario(servers, Client(judge), choose)
        actions = [scenario.insert] * 3 + [scenario.change] + [scenario.move] * 6 + [scenario.lose, scenario.restart]
        for _ in range(20 if whole else 14):
            choose.choice(actions)()
            if choose.randrange(4) == 0:
                scenario.read()
        scenario.read()
    finally:
        judge.close()
