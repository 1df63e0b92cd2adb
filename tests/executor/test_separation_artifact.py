"""The artifact of a query: complete, self-contained, and protected against files that no server wrote."""

from __future__ import annotations

import errno
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.codec import encode
from catalog.values.errors import SqlError
from catalog.values.types import INT4
from executor.cluster import storage as storage_module
from executor.database.database import Database
from executor.embedded.pipeline_results import Kept, KeptResults
from executor.files.file_tables import FileColumn
from executor.queries.client import Client as Asker
from executor.separation import query_artifact, steps
from executor.separation.running_queries import RunningQuery
from executor.separation.shared_files import SharedFile, SharedFiles
from executor.traces import artifact_manifest, parquet
from executor.traces.artifact_manifest import encode_manifest
from planner.algebra.nodes import Relation, Snapshot
from tests.executor.client import Client, open_database
from tests.executor.separating import TABLES, Asked, leave, separable, whole
from tests.rig.beside import Beside

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("everywhere"), pytest.mark.sample(9)]

QUERY = (
    "WITH g AS (SELECT k, sum(v) AS v, max(i) AS i FROM t GROUP BY k) "
    "SELECT g.k, g.v, g.i, w, x FROM g JOIN u ON u.k = g.k WHERE g.v > (SELECT avg(v) FROM g) ORDER BY 1, 4, 5 LIMIT 50"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "one"


@pytest.fixture
def database(folder: Path) -> Iterator[Database]:
    database = open_database(folder)
    Client(database).run(TABLES)
    yield database
    database.close()


def left(database: Database, monkeypatch: pytest.MonkeyPatch, after: int = 1) -> str:
    """The id of a suspended query."""
    with monkeypatch.context() as patch:
        Asked(patch, after)
        found = leave(separable(database), QUERY)
    assert found is not None
    return found


def resume(database: Database, query_id: str) -> Any:
    return Client(database).run(f"SELECT * FROM millstream.resume('{query_id}')")


def test_the_rest_needs_nothing_of_its_server(
    database: Database, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = separable(database)
    wanted = whole(client, QUERY)
    query_id = left(database, monkeypatch)
    client.run("DELETE FROM t WHERE k < 50; DROP TABLE u")
    assert resume(database, query_id) == wanted, "as in its snapshot"
    shutil.copytree(folder / "shared/queries", tmp_path / "two/shared/queries")
    other = open_database(tmp_path / "two")
    try:
        assert resume(other, query_id) == wanted, "on a server without the tables"
        assert Client(other).run("SELECT query_id, pid, state FROM millstream.queries") == [
            (query_id, None, "suspended")
        ]
    finally:
        other.close()


def test_it_leaves_again_and_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = whole(separable(database), QUERY)
    query_id = left(database, monkeypatch)
    numbers = []
    for _ in range(9):
        numbers.append(database.separation.stored.get(query_id).number)
        with monkeypatch.context() as patch:
            Asked(patch, 1)
            try:
                assert resume(database, query_id) == wanted
            except SqlError as error:
                assert error.sqlstate == "57014"
            else:
                break
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 1
    assert resume(database, query_id) == wanted


def test_a_checkpoint_is_of_a_query_that_goes_on(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(database)
    wanted = whole(client, QUERY)
    seen: list[Any] = []
    with monkeypatch.context() as patch:
        asked = Asked(patch, 1, "checkpoint")
        write = query_artifact.SeparatedQueries.write

        def written(self: query_artifact.SeparatedQueries, query_id: str, *rest: Any, **about: Any) -> None:
            write(self, query_id, *rest, **about)
            seen.append(self.get(query_id))

        patch.setattr(query_artifact.SeparatedQueries, "write", written)
        assert client.run(QUERY) == wanted
    assert [request.done for request in asked.requests] == [True]
    assert [query.state for query in seen] == ["checkpoint"]
    assert database.separation.stored.ids() == [], "nobody needs it any more"


def test_the_state_is_what_unfinished_pipelines_read(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) g GROUP BY n ORDER BY n"
    with monkeypatch.context() as patch:
        Asked(patch, 2)
        query_id = leave(separable(database), query)
    assert query_id is not None
    stored = database.separation.stored.get(query_id)
    assert (stored.pipelines, stored.finished, stored.rows, len(stored.runs)) == (3, 2, 1, 1)


def test_requests_of_a_query_that_ends_first(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, 0)
    client = separable(database)
    begun, go_on = threading.Event(), threading.Event()
    rows = KeptResults.rows

    def waiting(self: KeptResults, relation: Relation, name: str | None = None) -> Any:
        begun.set()
        assert go_on.wait(60)
        return rows(self, relation, name)

    monkeypatch.setattr(KeptResults, "rows", waiting)
    running = Beside(client.run, QUERY)
    assert begun.wait(60)
    (query,) = database.separation.running.all()
    request = query.ask("suspend")
    ((state, pipelines, finished, is_left),) = Client(database).run(
        "SELECT state, pipelines, finished, seconds_left >= 0 FROM millstream.queries"
    )
    assert (state, finished, is_left) == ("running", pipelines - 1, True)
    go_on.set()
    running.result()
    assert not request.wait(lambda: False)
    assert not asked.queries[0].ask("suspend").wait(lambda: False)
    assert database.separation.running.all() == ()
    with pytest.raises(SqlError, match="runs no query") as raised:
        database.separation.ask("suspend", 4711, lambda: False)
    assert raised.value.sqlstate == "55000"


def test_what_fails_in_steps_is_asked_of_the_whole(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = whole(separable(database), QUERY)
    tried: list[str] = []

    def failing(self: KeptResults, result: Snapshot, *rest: Any) -> Kept:
        tried.append(result.trace)
        raise SqlError("22012", "division by zero")

    monkeypatch.setattr(KeptResults, "keep", failing)
    assert separable(database).run(QUERY) == wanted
    assert len(tried) == 1


def test_no_result_stays_in_memory(database: Database) -> None:
    client = separable(database)
    client.run(QUERY)
    snapshot = database.core.tables.snapshot()
    try:
        assert snapshot.connection.rows("SELECT table_name FROM duckdb_tables() WHERE temporary") == []
    finally:
        snapshot.close()


def test_what_runs_whole(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, 0)
    client = separable(database)
    client.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    client.run(QUERY)
    client.run("COMMIT; BEGIN; UPDATE t SET v = v WHERE id = 1")
    client.run(QUERY)
    client.run("COMMIT")
    client.session.reader.separable = "auto"
    monkeypatch.setattr(steps, "LONG", 60.0)
    client.run(QUERY)
    client.session.reader.separable = "off"
    client.run(QUERY)
    assert asked.queries == []
    client.session.reader.separable = "on"
    client.run("BEGIN")
    client.run(QUERY)
    client.run("COMMIT")
    assert asked.queries


# -- manifests ---------------------------------------------------------------------------------------------------------


def signed(query: Any) -> bytes:
    """A manifest whose checksum is right, whatever it says."""
    return encode_manifest("query", query)


def edited(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    def forged(text: bytes) -> bytes:
        query = json.loads(text)["query"]
        change(query)
        return signed(query)

    return forged


def _scan(query: Any) -> None:
    place = next(at for at, node in enumerate(query["plan"]["nodes"]) if node[0] == "Snapshot")
    _, _, columns, sources = query["plan"]["nodes"][place]
    query["plan"]["nodes"][place] = ["Scan", 16384, "t", "table", columns, sources, None]


def _call(query: Any) -> None:
    node = next(node for node in query["plan"]["nodes"] if node[0] == "Call")
    node[1] = "read_text"


def _set(path: str, value: Any) -> Callable[[Any], None]:
    def change(query: Any) -> None:
        *above, last = path.split(".")
        for name in above:
            query = query[int(name) if isinstance(query, list) else name]
        query[int(last) if isinstance(query, list) else last] = value

    return change


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda text: b"",
    "truncated": lambda text: text[: len(text) // 2],
    "no object": lambda text: b"[]",
    "another checksum": lambda text: text.replace(b'"sha256":"', b'"sha256":"0'),
    "changed without its checksum": lambda text: text.replace(b'"finished":1', b'"finished":2'),
    "to another query": edited(_set("id", "0123456789abcdef")),
    "a table": edited(_scan),
    "an unknown function": edited(_call),
    "an unknown class": edited(_set("plan.nodes.0.0", "Popen")),
    "another class": edited(_set("plan.nodes.0.0", "Values")),
    "an unknown type": edited(_set("plan.columns.0.2", {"$": "SqlType", "name": "no", "modifiers": []})),
    "a column's name for its number": edited(_set("plan.columns.0.0", '1" FROM x --')),
    "a missing run": edited(_set("runs", {})),
    "a file elsewhere": edited(lambda query: next(iter(query["runs"].values()))["file"].update(name="../../x.parquet")),
    "other columns": edited(_set("outputs", [])),
    "outputs that are none": edited(lambda query: query.update(outputs=[1] * len(query["outputs"]))),
    "no plan": edited(lambda query: query.pop("plan")),
    **{
        f"another type of {name}": edited(_set(name, [1]))
        for name in ("role", "text", "created", "pipelines", "way", "engine")
    },
    "an unknown engine": edited(_set("engine", "flink")),
    "an output's name": edited(_set("outputs.0.name", 7)),
    "an output's typmod": edited(_set("outputs.0.typmod", "x")),
    "files that are none": edited(_set("files", 7)),
    "a file that is none": edited(_set("files", encode((("f1", 7),)))),
    **{
        f"a shared file's {name}": edited(_set("files", encode((("f1", SharedFiles(*parts)),))))
        for name, parts in {
            "list": (7, (), 1),
            "path": ((SharedFile(7, 1, 1),), (), 1),  # type: ignore[arg-type]
            "zero byte": ((SharedFile("a\0b", 1, 1),), (), 1),
            "size": ((SharedFile("a", "b", 1),), (), 1),  # type: ignore[arg-type]
            "columns": ((), ("c",), 1),
            "column": ((), (FileColumn(7, INT4),), 1),  # type: ignore[arg-type]
            "rows": ((), (), "many"),
        }.items()
    },
    "a run's rows": edited(lambda query: next(iter(query["runs"].values())).update(rows="many")),
    "a run's size": edited(lambda query: next(iter(query["runs"].values()))["file"].update(size=True)),
}


@pytest.fixture(scope="module")
def abandoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Database, str]]:
    """A database with one suspended query, whose folder tests may change and restore."""
    database = open_database(tmp_path_factory.mktemp("forged"))
    Client(database).run(TABLES)
    with pytest.MonkeyPatch.context() as patch:
        yield database, left(database, patch)
    database.close()


def manifest_of(abandoned: tuple[Database, str]) -> Path:
    database, query_id = abandoned
    return database.core.options.shared_directory / "queries" / query_id / "manifest.json"


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_manifest(name: str, abandoned: tuple[Database, str]) -> None:
    database, query_id = abandoned
    path = manifest_of(abandoned)
    text = path.read_bytes()
    path.write_bytes(FORGERIES[name](text))
    assert path.read_bytes() != text
    try:
        with pytest.raises(SqlError, match="has no valid manifest") as raised:
            resume(database, query_id)
        assert raised.value.sqlstate == "XX001"
        assert Client(database).run("SELECT count(*) FROM millstream.queries") == [(0,)]
    finally:
        path.write_bytes(text)
    assert len(resume(database, query_id)) == 50


def test_a_stale_manifest(abandoned: tuple[Database, str], monkeypatch: pytest.MonkeyPatch) -> None:
    database, query_id = abandoned
    path = manifest_of(abandoned)
    text = path.read_bytes()
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        with pytest.raises(SqlError, match="suspended"):
            resume(database, query_id)
    newer = path.read_bytes()
    path.write_bytes(text)
    with pytest.raises(SqlError, match="is missing") as raised:
        resume(database, query_id)
    assert raised.value.sqlstate == "XX001"
    path.write_bytes(newer)
    assert len(resume(database, query_id)) == 50


def test_a_damaged_file(abandoned: tuple[Database, str]) -> None:
    database, query_id = abandoned
    for file in manifest_of(abandoned).parent.glob("*.parquet"):
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(SqlError, match="is damaged") as raised:
            resume(database, query_id)
        assert raised.value.sqlstate == "XX001"
        file.write_bytes(content)
    assert len(resume(database, query_id)) == 50


def test_a_manifest_that_names_no_engine(abandoned: tuple[Database, str]) -> None:
    """The manifest is from a version that only had the embedded engine."""
    database, query_id = abandoned
    path = manifest_of(abandoned)
    text = path.read_bytes()
    path.write_bytes(edited(lambda query: query.pop("engine"))(text))
    assert database.separation.stored.get(query_id).engine == "embedded"
    assert len(resume(database, query_id)) == 50
    path.write_bytes(text)


def test_a_format_of_a_later_version(abandoned: tuple[Database, str]) -> None:
    database, query_id = abandoned
    path = manifest_of(abandoned)
    text = path.read_bytes()
    path.write_bytes(text.replace(b'{"format":1', b'{"format":2'))
    with pytest.raises(SqlError, match="format 2") as raised:
        resume(database, query_id)
    assert raised.value.sqlstate == "0A000"
    path.write_bytes(text)


@pytest.mark.parametrize("query_id", ["", "..", "../../etc", "0123456789abcdef", "x'; --"])
def test_an_unknown_query(query_id: str, abandoned: tuple[Database, str]) -> None:
    database, _ = abandoned
    with pytest.raises(SqlError, match="does not exist") as raised:
        Client(database).run("SELECT * FROM millstream.resume('" + query_id.replace("'", "''") + "')")
    assert raised.value.sqlstate == "42704"
    assert not database.separation.forget(Asker(), query_id)


def test_it_runs_once_at_a_time(abandoned: tuple[Database, str], monkeypatch: pytest.MonkeyPatch) -> None:
    database, query_id = abandoned
    found: list[str] = []
    rows = KeptResults.rows

    def twice(self: KeptResults, relation: Relation, name: str | None = None) -> Any:
        with pytest.raises(SqlError, match="is running already") as raised:
            resume(database, query_id)
        found.append(raised.value.sqlstate)
        return rows(self, relation, name)

    monkeypatch.setattr(KeptResults, "rows", twice)
    assert len(resume(database, query_id)) == 50
    assert found == ["55006"]


def test_the_rest_is_a_relation_like_others(abandoned: tuple[Database, str]) -> None:
    database, query_id = abandoned
    client = Client(database)
    rest = f"millstream.resume('{query_id}')"
    assert client.run(f"SELECT count(*), count(DISTINCT w) FROM {rest}") == [(50, 10)]
    assert client.run(f"CREATE TABLE kept AS SELECT * FROM {rest}; SELECT count(*) FROM kept") == [(50,)]
    assert client.run(f"INSERT INTO kept SELECT * FROM {rest} r WHERE r.w = 'w1'; SELECT count(*) > 50 FROM kept") == [
        (True,)
    ]
    with pytest.raises(SqlError, match="definition of a view"):
        client.run(f"CREATE VIEW v AS SELECT * FROM {rest}")
    with pytest.raises(SqlError, match="no constant"):
        client.run("SELECT * FROM millstream.resume('a' || 'b')")


@pytest.mark.parametrize(("number", "sqlstate"), [(errno.ENOSPC, "53100"), (errno.EIO, "58030")])
def test_a_write_that_did_not_end_is_nothing(
    number: int, sqlstate: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        asked = Asked(patch, 1)
        replace, fail = storage_module.replace_file, failing(number)
        patch.setattr(
            storage_module,
            "replace_file",
            lambda path, *rest: (fail if path.name == "manifest.json" else replace)(path, *rest),
        )
        wanted = whole(separable(database), QUERY)
        assert separable(database).run(QUERY) == wanted, "the query goes on"
    with pytest.raises(SqlError) as raised:
        asked.requests[0].wait(lambda: False)
    assert raised.value.sqlstate == sqlstate
    assert database.separation.stored.ids() == []
    with pytest.raises(SqlError, match="does not exist"):
        resume(database, asked.queries[0].id)


def test_nothing_is_written_to_an_empty_mount_point(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a query whose claim this server has."""
    query_id, storage = left(database, monkeypatch), database.core.options.shared_directory
    database.separation.claims.take(query_id)
    away = storage.with_name("away")
    storage.rename(away)
    storage.mkdir()
    try:
        with pytest.raises(SqlError) as raised:
            database.separation.stored.write(query_id, {})
        assert raised.value.sqlstate == "58030"
        assert list(storage.iterdir()) == []
    finally:
        storage.rmdir()
        away.rename(storage)


def test_no_file_stays_of_a_write_that_is_cancelled(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query_id = left(database, monkeypatch)
    folder = database.core.options.shared_directory / "queries" / query_id
    before, store = set(folder.iterdir()), query_artifact._store

    def cancelled(path: Path, run: query_artifact.Run) -> None:
        store(path, run)
        raise SqlError("57014", "canceling statement due to user request")

    with monkeypatch.context() as patch:
        patch.setattr(query_artifact, "_store", cancelled)
        asked = Asked(patch, 1, "checkpoint")
        with pytest.raises(SqlError, match="57014"):
            resume(database, query_id)
    assert [request.done for request in asked.requests] == [False]
    assert set(folder.iterdir()) == before
    assert database.separation.stored.delete(query_id)


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_waiting_session_waits_while_this_server_runs_the_query(
    is_noticed: bool, abandoned: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This server has taken it over from one that died, shortly before the waiting session would have continued it."""
    database, query_id = abandoned
    moving, running = database.separation.moving, database.separation.running
    if not is_noticed:
        monkeypatch.setattr(running, "has", lambda query_id: False)
    reader = separable(database).session.reader
    with running.during(RunningQuery(reader.client(), ("p",), (1.0,), query_id)):
        waiting = Beside(lambda: moving.rows(reader, query_id))
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
    assert waiting.result().num_rows == 50


def failing(number: int) -> Callable[..., Any]:
    """A file operation on a failing disk."""

    def fail(*arguments: object) -> Any:
        raise OSError(number, "the disk failed")

    return fail


@pytest.mark.parametrize(("where", "name"), [(artifact_manifest, "read_document"), (parquet, "describe_file")])
def test_what_the_disk_cannot_read(
    where: object, name: str, abandoned: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, query_id = abandoned
    with monkeypatch.context() as patch:
        patch.setattr(where, name, failing(errno.EIO))
        with pytest.raises(SqlError) as raised:
            database.separation.stored.tables(database.separation.stored.get(query_id))
        assert raised.value.sqlstate == "58030"
    assert len(resume(database, query_id)) == 50
