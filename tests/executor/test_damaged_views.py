"""Damaged files of a continuous view: it is rebuilt from the log, or reports the damage; other views are unaffected."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.traces.checked import pack, unpack
from executor.views.failure import ViewError
from tests.executor.client import Client, open_database
from tests.executor.damaging import DAMAGES
from tests.rig.process import wait_until
from tests.rig.sampling import sample

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

DEFINITIONS = """
    CREATE FOREIGN TABLE s (k int, n bigint) SERVER stream;
    CREATE TABLE d (x int, label text);
    INSERT INTO d VALUES (0, 'none'), (1, 'one'), (2, 'two');
    CREATE VIEW v AS SELECT label, count(*) AS c, sum(n) AS n FROM s JOIN d ON k = x GROUP BY label;
    CREATE VIEW w AS SELECT count(*) AS c, sum(n) AS n FROM s;
    CREATE VIEW u AS SELECT a.label, a.c, w.c AS whole FROM v a, w
"""
READ = "SELECT label, c, n FROM v ORDER BY label"


class Rows:
    """The inserted rows, and the expected content of the views over them."""

    def __init__(self) -> None:
        self._count = 0

    def insert(self, client: Client, count: int) -> None:
        """Inserts some rows."""
        values = ", ".join(f"({number % 3}, {number})" for number in range(self._count, self._count + count))
        client.run(f"INSERT INTO s VALUES {values}")
        self._count += count

    def wanted(self) -> list[tuple[object, ...]]:
        """The expected content of ``v``."""
        own = [[number for number in range(self._count) if number % 3 == key] for key in range(3)]
        return [(label, len(part), sum(part)) for label, part in zip(("none", "one", "two"), own, strict=True)]

    def whole(self) -> list[tuple[object, ...]]:
        """The expected content of ``w``."""
        return [(self._count, sum(range(self._count)))]


class Server:
    """A server that is started several times."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: Database | None = None

    def start(self) -> Client:
        """Starts the server."""
        if self._open is None:
            self._open = open_database(
                self._folder, maintenance_rows=1, maintenance_idle=0.05, log_segment_bytes=1 << 16
            )
        return Client(self._open)

    @property
    def database(self) -> Database:
        """The running server's database."""
        assert self._open is not None
        return self._open

    def stop(self) -> None:
        """Stops the server."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def files(self, view: str) -> list[Path]:
        """The files of a view's state by kind: manifest, a run, program, and a static run."""
        oid = self.start().session.catalog.require("public", view).oid
        self.stop()
        state, static = (self._folder / "shared" / "state" / name for name in (f"v{oid}", f"v{oid}-static"))
        if not state.is_dir():
            (state,) = self._folder.rglob(f"state/v{oid}")
            static = state.with_name(static.name)
        runs = sorted(state.glob("*.parquet"))
        assert runs
        return [state / "manifest.json", runs[-1], static / "program.json", *sorted(static.glob("*.parquet"))]

    def settled(self) -> None:
        """Waits until all rows are in the states' files."""
        database = self.database
        streams = tuple(database.core.streams)

        def is_settled() -> bool:
            return all(database.frontiers.backlog(oid) == 0 for oid in streams)

        wait_until(is_settled, 60, "the maintenance")

    def forget(self, rows: Rows) -> None:
        """Makes the log forget its beginning."""
        client = self.start()
        first = self.database.core.log.first_lsn
        while self.database.core.log.first_lsn == first:
            rows.insert(client, 4000)
            self.settled()
            self.database.frontiers.release()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    opened = Server(tmp_path)
    yield opened
    opened.stop()


#: Each kind of a view's files with each kind of damage.
CASES = sample(product(range(4), DAMAGES), [*zip(range(4), DAMAGES, strict=True)])


@pytest.fixture
def rows(server: Server) -> Rows:
    client, found = server.start(), Rows()
    client.run(DEFINITIONS)
    found.insert(client, 10)
    server.settled()
    return found


@pytest.mark.parametrize(("kind", "damage"), CASES)
def test_a_view_is_rebuilt_from_the_log(kind: int, damage: Callable[[Path], None], server: Server, rows: Rows) -> None:
    """The log has all rows since the view's creation; the tables' rows as of then are in a file of their own."""
    damage(server.files("v")[kind])
    client = server.start()
    rows.insert(client, 5)
    if kind == 3:
        with pytest.raises(SqlError, match="XX001"):
            client.run(READ)
        with pytest.raises(SqlError, match="XX001"):
            client.run("SELECT * FROM u")
    else:
        assert client.run(READ) == rows.wanted()
        assert client.run("SELECT sum(c) FROM u") == [(15,)]
        server.settled()
        server.stop()
        assert server.start().run(READ) == rows.wanted(), "and stays so"
    assert server.start().run("SELECT * FROM w") == rows.whole()


@pytest.mark.parametrize(("kind", "damage"), CASES)
def test_what_the_log_has_forgotten(kind: int, damage: Callable[[Path], None], server: Server, rows: Rows) -> None:
    """The view has no value any more; nothing else is affected, and the view can be created again."""
    server.forget(rows)
    damage(server.files("v")[kind])
    for _ in range(2):
        client = server.start()
        rows.insert(client, 5)
        assert client.run("SELECT * FROM w") == rows.whole()
        if kind == 2:  # the manifest contains the program, too
            assert client.run(READ) == rows.wanted()
        else:
            with pytest.raises(SqlError, match='XX001: the state of view "v" is damaged') as raised:
                client.run(READ)
            assert raised.value.hint is not None
            with pytest.raises(SqlError, match="XX001"):
                client.run("SELECT * FROM u")
            assert client.run("SELECT error_sqlstate FROM millstream.views WHERE name = 'v'") == [("XX001",)]
        server.stop()
    client = server.start()
    client.run("DROP VIEW v CASCADE; CREATE VIEW v AS SELECT count(*) AS c FROM s")
    rows.insert(client, 3)
    assert client.run("SELECT c FROM v") == [(3,)]


def test_manifest_and_program_are_gone(server: Server, rows: Rows) -> None:
    """Not even the view's states are known."""
    manifest, _, program, *_ = server.files("v")
    manifest.unlink()
    program.unlink()
    client = server.start()
    rows.insert(client, 5)
    for text in (READ, "SELECT * FROM u", "SELECT label FROM v WHERE label = 'one'"):
        with pytest.raises(SqlError, match="XX001"):
            client.run(text)
    assert client.run("SELECT * FROM w") == rows.whole()
    assert len(client.run("SELECT name FROM millstream.views")) == 2
    server.settled()
    client.run("DROP VIEW v CASCADE")
    assert client.run("SELECT * FROM w") == rows.whole()


def test_a_forged_manifest_needs_a_forged_checksum(server: Server, rows: Rows) -> None:
    """The forged frontier would count rows twice."""
    manifest = server.files("v")[0]
    _, content = unpack(manifest.read_bytes(), "it")
    before = f'"frontiers":{{"0":{content["frontiers"]["0"]}}}'
    forged = manifest.read_bytes().replace(before.encode(), b'"frontiers":{"0":1}')
    assert forged != manifest.read_bytes()
    for data in (forged, forged.replace(b'"format":2', b'"format":1')):
        manifest.write_bytes(data)
        assert server.start().run(READ) == rows.wanted()
        server.stop()
    manifest.write_bytes(pack({**content, "runs": {}, "states": {}}))
    assert server.start().run(READ) == rows.wanted()


def test_files_of_before(server: Server, rows: Rows, tmp_path: Path) -> None:
    """Files from a backup continue from their LSN if the log has the rest; otherwise the view has no value."""
    folder = server.files("v")[0].parent
    shutil.copytree(folder, tmp_path / "backup")

    def put_back() -> Client:
        server.stop()
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "backup", folder)
        return server.start()

    rows.insert(server.start(), 5)
    server.settled()
    client = put_back()
    assert client.run(READ) == rows.wanted()
    server.forget(rows)
    client = put_back()
    with pytest.raises(SqlError, match="XX001"):
        client.run(READ)
    assert client.run("SELECT * FROM w") == rows.whole()


def test_each_read_raises_an_error_of_its_own() -> None:
    """An error object that is raised repeatedly would keep the frames of all its callers."""
    error = ViewError(SqlError("XX001", "damaged", "why", "what to do"), 0)
    first, second = error.raised(), error.raised()
    assert first is not second
    assert (second.message, second.detail, second.hint) == ("damaged", "why", "what to do")
