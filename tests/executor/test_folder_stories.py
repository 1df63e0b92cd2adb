"""The law for views over a followed folder: whatever moves, restarts or is lost, the rows are those of all files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.executor.folders import Folder, Row, view_of
from tests.executor.moving import READ, VIEW, Servers
from tests.rig.process import wait_until
from tests.rig.sampling import sample

pytestmark = pytest.mark.slow

QUERIES = {
    "sums": "SELECT k, count(*) AS c, sum(n) AS n, min(t) AS least, avg(n) AS mean FROM {} GROUP BY k",
    "firsts": "SELECT DISTINCT ON (k) k, n, t FROM {} ORDER BY k, n DESC, t",
    "different": "SELECT n % 3 AS m, count(DISTINCT t) AS d, max(k) AS k FROM {} GROUP BY n % 3",
}


class Story:
    """Random files, moves, restarts and losses of a view; after each step its rows must be those of its query over all
    files' rows."""

    def __init__(self, servers: Servers, folder: Folder, seed: int) -> None:
        self.servers, self.folder = servers, folder
        self.chance = random.Random(seed)
        self.owner = "a"
        self.query = self.chance.choice(list(QUERIES.values()))
        a = servers.client("a")
        a.run(folder.stream)
        a.run("CREATE TABLE every (k int, n numeric(12,2), t text)")
        a.run(f"CREATE VIEW w AS {self.query.format('s')}")
        a.run(VIEW)

    def play(self, steps: int) -> None:
        actions = [self.files] * 4 + [self.migrate] * 3 + [self.copy, self.rest, self.restart, self.lose]
        for _ in range(steps):
            action = self.chance.choice(actions)
            action()
            if self.chance.random() < 0.7:
                self.check(action.__name__)
        self.check("the end")

    def files(self) -> None:
        """Adds several files, each with some rows or none."""
        a = self.servers.client("a")
        for _ in range(self.chance.choice((1, 1, 4))):
            rows = [self._row() for _ in range(self.chance.choice((0, 1, 3, 20)))]
            self.folder.put(rows)
            if rows:
                values = ", ".join(f"({k}, {n}, '{t}')" for k, n, t in rows)
                a.run(f"INSERT INTO every VALUES {values}")

    def _row(self) -> Row:
        return self.chance.randrange(3), f"{self.chance.randrange(100)}.25", self.chance.choice("xyz")

    def migrate(self) -> None:
        target = self.chance.choice([name for name in "abc" if name != self.owner])
        for name in ("v", "w"):
            self.servers.migrate(self.owner, target, name)
        self.owner = target

    def copy(self) -> None:
        if self.owner != "a":
            self.servers.copied(self.owner, "v")

    def rest(self) -> None:
        """It goes on anywhere, after some files."""
        moving = self.servers[self.owner].view_migration
        for name in ("v", "w"):
            moving.suspend(view_of(self.servers.client(self.owner), name))
        self.files()
        self.owner = self.chance.choice("abc")
        for owned in self.servers[self.owner].view_migration.suspended():
            self.servers[self.owner].view_migration.resume(owned, lambda: False)

    def restart(self) -> None:
        names = self.chance.choice((self.owner, "a", {"a", self.owner}))
        for name in names:
            self.servers.stop(name)
        if self.chance.random() < 0.5:
            self.files()
        _ = [self.servers[name] for name in names]

    def lose(self) -> None:
        """Its server is lost, after some files; the home then has the view."""
        if self.owner != "a":
            self.files()
            self.servers.lose(self.owner, "a")
            for name in ("v", "w"):
                wait_until(lambda: self.servers.owner(name) == "a", what="the take-over")  # noqa: B023
            self.servers.stop(self.owner)
            self.owner = "a"

    def check(self, what: str) -> None:
        self.folder.await_all(self.servers.client("a"))
        wanted = sorted(map(repr, self.servers.client("a").values(self.query.format("every"))))
        for name in {"a", self.owner}:
            client = self.servers.client(name)
            assert sorted(map(repr, client.values("SELECT * FROM w"))) == wanted, (what, name)
            assert client.run(READ) == self.folder.wanted(), (what, name)


@pytest.mark.parametrize("seed", sample(range(4), (0,)))
def test_the_law(seed: int, servers: Servers, tmp_path: Path) -> None:
    servers.options |= {"source_poll": 0.02, "log_segment_bytes": 1 << 16, "maintenance_rows": 10}
    folder = Folder(tmp_path / "incoming", ("parquet", "csv")[seed % 2])
    Story(servers, folder, seed).play(20)
