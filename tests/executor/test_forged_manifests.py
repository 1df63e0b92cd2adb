"""Manifests and entries with correct checksums that no server has written are refused, and nothing in them is
executed."""

from __future__ import annotations

import json
import os
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.codec import encode
from catalog.values.errors import SqlError
from catalog.values.types import BOOL, INT8, NUMERIC, TEXT, array
from executor.database.database import Database
from executor.traces.artifact_manifest import digest
from tests.executor.client import Client, open_database
from tests.executor.forging import Given, forged, places
from tests.executor.moving import READ, Rows, Servers, lost
from tests.executor.separating import TABLES, Asked, cut_everywhere, leave, separable
from tests.executor.test_separation_artifact import resume, signed
from tests.executor.test_separation_types import shown
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

QUERY = (
    "SELECT k, x, n, c FROM (SELECT k, x, sum(x) OVER (PARTITION BY k ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT "
    "ROW) AS n FROM (SELECT k, cast(sum(x) AS numeric(30,4)) AS x FROM u GROUP BY k) g) y "
    "LEFT JOIN (SELECT k AS kk, count(*) AS c FROM t GROUP BY k) h ON kk = k ORDER BY 1"
)

TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TYPE spot AS (city text, mood mood);"
    "CREATE TABLE f (k int, m mood, p spot, ms mood[]); INSERT INTO f SELECT g, (ARRAY['sad', 'ok']::mood[])[g % 3],"
    " ROW('c' || g % 7, 'happy')::spot, ARRAY['ok', NULL]::mood[] FROM generate_series(1, 90) g"
)
OF_TYPES = (
    "SELECT m, p, ms, n, m::text AS t, p::text AS u FROM "
    "(SELECT m, p, ms, count(*) AS n FROM f GROUP BY m, p, ms) g ORDER BY m, p, ms"
)


class Left:
    """A query that has left, whose manifest the tests change and restore."""

    def __init__(self, database: Database, query_id: str) -> None:
        self.database = database
        self.id = query_id
        self.path = database.core.options.shared_directory / "queries" / query_id / "manifest.json"
        self.text = self.path.read_bytes()

    @property
    def query(self) -> Any:
        return json.loads(self.text)["query"]

    def outcome(self) -> str:
        """The SQLSTATE of continuing the query, '' if it has rows. The list of queries must work in any case."""
        assert len(Client(self.database).run("SELECT * FROM millstream.queries")) <= 1
        try:
            resume(self.database, self.id)
        except SqlError as error:
            return error.sqlstate
        return ""


@contextmanager
def suspending(folder: Path, tables: str, query: str) -> Iterator[Left]:
    """A query over tables that has left after its first pipeline."""
    database = open_database(folder)
    Client(database).run(tables)
    with pytest.MonkeyPatch.context() as patch:
        cut_everywhere(patch)
        with pytest.MonkeyPatch.context() as asking:
            Asked(asking, 1)
            query_id = leave(separable(database), query)
        assert query_id is not None
        yield Left(database, query_id)
    database.close()


@pytest.fixture(scope="module")
def suspended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    with suspending(tmp_path_factory.mktemp("forged"), TABLES, QUERY) as found:
        yield found


@pytest.fixture(scope="module")
def suspended_of_types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    with suspending(tmp_path_factory.mktemp("types"), TYPES, OF_TYPES) as found:
        yield found


@pytest.fixture
def left(suspended: Left) -> Iterator[Left]:
    yield from put_back(suspended)


@pytest.fixture
def of_types(suspended_of_types: Left) -> Iterator[Left]:
    """A query over user-defined types that has left after its first pipeline."""
    yield from put_back(suspended_of_types)


def put_back(left: Left) -> Iterator[Left]:
    yield left
    left.path.write_bytes(left.text)
    assert left.outcome() == ""


def nodes(query: Any, kind: str) -> list[Any]:
    found = [node for node in query["plan"]["nodes"] if node[0] == kind]
    assert found
    return found


def add(query: Any, *node: Any) -> dict[str, int]:
    """Adds a node to the manifest; returns its reference."""
    query["plan"]["nodes"].append(list(node))
    return {"n": len(query["plan"]["nodes"]) - 1}


def wrap(query: Any, *predicate: Any) -> None:
    """The plan with a filter by a predicate on top."""
    query["plan"]["relation"] = add(query, "Filter", query["plan"]["relation"], *predicate)


def _mode(query: Any) -> None:
    for call in nodes(query, "WindowCall"):
        call[6] = "rows between current row and current row) from x; drop table t; --"


def _offsets(query: Any) -> None:
    for call in nodes(query, "WindowCall"):
        call[10] = []


def _kind(query: Any) -> None:
    nodes(query, "Join")[0][1] = "left join (select * from duckdb_settings()) as x on true left"


def _modifiers(query: Any) -> None:
    for cast in nodes(query, "Cast"):
        cast[2]["modifiers"] = ["30,4)) AS c9 FROM (SELECT 1); DROP TABLE t; --", 4]


def _shared(query: Any) -> None:
    found = add(query, "Literal", True, encode(BOOL))
    for _ in range(100):  # a few lines as text, 2 ** 100 nodes as a tree
        found = add(query, "Call", "and", [found, found], encode(BOOL))
    wrap(query, found)


def _shared_constant(query: Any) -> None:
    found = add(query, "Literal", True, encode(BOOL))
    for _ in range(100):
        found = add(query, "Literal", [found, found], encode(TEXT))
    wrap(query, found)


def _subqueries(query: Any) -> None:
    root, found = query["plan"]["relation"], add(query, "Literal", True, encode(BOOL))
    for _ in range(500):
        found = add(query, "Exists", add(query, "Filter", root, found))
    wrap(query, found)


def _deep(query: Any) -> None:
    for _ in range(20_000):
        query["plan"]["relation"] = add(query, "Limit", query["plan"]["relation"], None, None)


def _type(**fields: Any) -> Callable[[Any], None]:
    def change(query: Any) -> None:
        query["outputs"][0]["type"] = {**encode(NUMERIC), **fields}

    return change


def _nested(query: Any) -> None:
    found = INT8
    for _ in range(400):
        found = array(found)
    add(query, "Literal", None, encode(found))


def _with(**fields: Any) -> Callable[[Any], None]:
    return lambda query: query.update(fields)


def _rows(count: int) -> Callable[[Any], None]:
    return lambda query: next(iter(query["runs"].values())).update(rows=count)


CHANGES: dict[str, Callable[[Any], None]] = {
    "text of the engine's in a frame": _mode,
    "text of the engine's in a join": _kind,
    "text of the engine's in a type": _modifiers,
    "a plan that shares its parts": _shared,
    "a constant that shares its parts": _shared_constant,
    "subqueries in subqueries": _subqueries,
    "a deep plan": _deep,
    "a deep type": _nested,
    "digits that no numeric has": _type(modifiers=[1 << 40, 0]),
    "a scale that no numeric has": _type(modifiers=[10, 11]),
    "an offset too few": _offsets,
    "more pipelines than a number": _with(pipelines=10**30),
    "more rows than a number": _rows(10**30),
    "less than no rows": _rows(-1),
    "other rows than the file": _rows(7),
    "half a character": _with(text="\ud800"),
    "a zero byte": _with(text="SELECT\0"),
    "no time": _with(created={"$": "datetime", "v": "0001-01-01T00:00:00+14:00"}),
    "no zone": _with(created={"$": "datetime", "v": "2026-01-01T00:00:00"}),
    "a time zone": _with(time_zone="Mars/Phobos'; DROP TABLE t; --"),
    "a state": _with(state="running"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_that_no_server_writes(name: str, left: Left) -> None:
    query = left.query
    CHANGES[name](query)
    left.path.write_bytes(signed(query))
    assert left.outcome() == "XX001"


def types(query: Any, name: str) -> list[Any]:
    """A type at every place where a manifest has one; decoded types must be usual ones."""
    found = [item[key] for item, key in places(query) if isinstance(item[key], dict) and item[key].get("$") == name]
    assert found
    return found


def _each(kind: str, /, **fields: Any) -> Callable[[Any], None]:
    def change(query: Any) -> None:
        for found in types(query, kind):
            found.update(fields)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _each("Enumeration", labels=["sad", "ok"]),
        _each("Enumeration", labels=["sad", "ok", "ok"]),
        _each("Enumeration", labels=["sad", "ok", 7]),
        _each("Enumeration", labels=["sad", "ok", "a\0b"]),
        _each("Enumeration", labels="sok"),
        _each("Enumeration", places=[3, 2, 1]),
        _each("Enumeration", places=[1, 2, "3"]),
        _each("Enumeration", places=[1, 2, 10**30]),
        _each("Enumeration", places=[]),
        _each("Enumeration", name=7),
        _each("Enumeration", oid="x"),
        _each("Composite", fields=[["city", encode(TEXT)], [7, encode(INT8)]]),
        _each("Composite", schema=["public"]),
    ],
)
def test_types_that_no_server_has(change: Callable[[Any], None], of_types: Left) -> None:
    query = of_types.query
    change(query)
    of_types.path.write_bytes(signed(query))
    assert of_types.outcome() == "XX001"


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (_each("Enumeration", labels=["'; DROP TABLE f; --", '"', "}"]), {"text", "text[]"}),
        (_each("Enumeration", name='"; DROP TABLE f; --', schema="pg_catalog"), {"text", "text[]"}),
        (_each("Enumeration", name="spot"), {"text", "text[]"}),
        (_each("Enumeration", oid=23, comment="x", home=["one", 7]), {"mood", "spot", "mood[]"}),
        (_each("Enumeration", places=[1, 2, 3]), {"mood", "spot", "mood[]"}),
        (_each("Composite", oid=1259, domains=[7]), {"mood", "spot", "mood[]"}),
        (_each("Composite", name="mood"), {"mood", "text", "mood[]"}),
        (_each("Composite", name="f"), {"mood", "text", "mood[]"}),
        (_each("Composite", fields=[["city", encode(TEXT)], ["mood", encode(TEXT)]]), {"mood", "text", "mood[]"}),
    ],
)
def test_types_of_other_servers(change: Callable[[Any], None], kinds: set[str], of_types: Left) -> None:
    """The types become this server's types if those are the same, and texts otherwise, whatever oids they claim;
    ``shown`` looks for them in pg_type."""
    query = of_types.query
    change(query)
    of_types.path.write_bytes(signed(query))
    assert of_types.outcome() == ""
    found, rows = shown(Client(of_types.database), f"SELECT m, p, ms FROM millstream.resume('{of_types.id}')")
    assert (set(found), len(rows)) == (kinds, 21)


@pytest.mark.parametrize("of", ["left", "of_types"])
@pytest.mark.parametrize("seed", range(2))
def test_any_change_of_a_manifest(seed: int, of: str, request: pytest.FixtureRequest) -> None:
    """A changed manifest is refused, or is a query over the same files, in which only SQL errors can occur."""
    left: Left = request.getfixturevalue(of)
    found = set()
    for place in range(100):
        try:
            text = signed(forged(left.query, random.Random(seed * 1000 + place)))
        except (TypeError, ValueError):  # the manifest has no checksum
            continue
        left.path.write_bytes(text)
        found.add(left.outcome()[:2])
    assert {"XX"} < found <= {"", "XX", "22", "42"}
    assert "XX000" not in found


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".away"))
    path.symlink_to(path.with_suffix(".away"))


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    os.truncate(path, 1 << 40)  # a hole, except at its beginning


FILES: dict[str, Callable[[Path], None]] = {"pipe": _pipe, "link": _link, "endless": _endless, "huge": _huge}


@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("name", ["manifest", "run"])
def test_what_is_no_file(name: str, what: str, left: Left) -> None:
    path = left.path if name == "manifest" else sorted(left.path.parent.glob("*.parquet"))[0]
    content = path.read_bytes()
    FILES[what](path)
    try:
        # There is nothing at a manifest's name that is not a file.
        assert left.outcome() == ("42704" if name == "manifest" and what in ("pipe", "endless") else "XX001")
    finally:
        path.unlink()
        path.write_bytes(content)


def stored(path: Path, query: Any, name: str) -> None:
    """Replaces a run's file, and adapts the manifest."""
    content = path.read_bytes()
    query["runs"][name]["file"] |= {"size": len(content), "crc32": zlib.crc32(content)}


def _texts(table: pa.Table) -> pa.Table:
    """Other bytes in place of a text."""
    place = next(at for at, kind in enumerate(table.schema.types) if pa.types.is_int64(kind))
    return table.set_column(place, table.schema.names[place], pa.array(["x"] * table.num_rows))


@pytest.mark.parametrize(
    "change",
    [lambda table: table.slice(1), lambda table: table.drop_columns(table.schema.names[:1]), _texts],
    ids=["rows", "columns", "types"],
)
def test_a_file_with_something_else(change: Callable[[pa.Table], pa.Table], left: Left) -> None:
    query = left.query
    for name, run in query["runs"].items():
        path = left.path.parent / run["file"]["name"]
        content = path.read_bytes()
        if not any(pa.types.is_int64(kind) for kind in pq.read_schema(path).types):
            continue
        pq.write_table(change(pq.read_table(path)), path)
        stored(path, query, name)
        left.path.write_bytes(signed(query))
        try:
            assert left.outcome() == "XX001"
        finally:
            path.write_bytes(content)
        return
    pytest.fail("no run has a bigint")


@pytest.mark.parametrize("seed", range(2))
def test_any_change_of_a_file(seed: int, left: Left) -> None:
    """The file has a correct checksum, but cannot be read as Parquet, or has values that its types do not allow."""
    chance, found = random.Random(seed), set()
    for _ in range(40):
        query = left.query
        name = chance.choice(sorted(query["runs"]))
        path = left.path.parent / query["runs"][name]["file"]["name"]
        content = path.read_bytes()
        changed = bytearray(content)
        for _ in range(chance.choice((1, 4, 16))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        path.write_bytes(changed)
        stored(path, query, name)
        left.path.write_bytes(signed(query))
        try:
            found.add(left.outcome())
        finally:
            path.write_bytes(content)
    assert "XX001" in found
    assert "XX000" not in found


# -- views -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def given(servers: Servers, a: Client, tmp_path: Path) -> Given:
    Rows().insert(a, 20)
    return Given(servers, tmp_path)


def _trace(view: Any) -> None:
    """A state's name is that of a file."""
    name = next(name for name in view["files"] if name.startswith("state_"))
    view.update(json.loads(json.dumps(view).replace(name, "state_/../../x")))


def _zone(view: Any) -> None:
    program = view["program"]
    root = next(part for part in reversed(program["program"]["p"]) if isinstance(part, dict) and "n" in part)
    program["nodes"].append(["InZone", dict(root), "Mars/Phobos'; DROP TABLE t; --"])
    root["n"] = len(program["nodes"]) - 1


VIEW_CHANGES: dict[str, Callable[[Any], None]] = {
    "a trace elsewhere": _trace,
    "a name": lambda view: view["view"].update(name=["v"]),
    "a column's type": lambda view: view["view"]["columns"][0].update(type=encode(TEXT)),
    "a stream's column": lambda view: view["streams"][0]["columns"][0].update(type=encode(TEXT)),
    "no LSN": lambda view: view.update(at=float("nan")),
    "an LSN before all": lambda view: view.update(at=-1),
    "fewer columns": lambda view: view["program"]["program"]["p"][5].pop(),
    "a time zone": lambda view: view["view"].update(settings=[["TimeZone", "Mars/Phobos'; DROP TABLE t; --"]]),
    "a time zone within": _zone,
}


def test_a_view_that_no_server_writes(given: Given) -> None:
    assert given.outcome(given.view) == ""
    for name, change in VIEW_CHANGES.items():
        view = json.loads(json.dumps(given.view))
        change(view)
        assert given.outcome(view) == "XX001", name


def test_any_change_of_a_view(given: Given) -> None:
    found = set()
    for seed in range(200):
        try:
            found.add(given.outcome(forged(given.view, random.Random(seed))))
        except (TypeError, UnicodeEncodeError):  # the manifest has no checksum
            continue
    assert "XX001" in found
    assert found <= {"", "XX001", "3F000"}
    assert given.outcome(given.view) == ""


def test_a_file_of_a_view_that_is_no_parquet(servers: Servers, a: Client, tmp_path: Path) -> None:
    """With a correct checksum, the view is rebuilt from the log, as after damage."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.copied("b", "v")
    servers.stop("b")
    for path in (tmp_path / "storage/views").glob("*/*/manifest.json"):
        view = json.loads(path.read_bytes())["view"]
        for about in view["files"].values():
            content = b"PAR1" + b"\xff" * 64
            (path.parent / about["name"]).write_bytes(content)
            about |= {"size": len(content), "crc32": zlib.crc32(content)}
        path.write_bytes(json.dumps({"format": 1, "sha256": digest(view), "view": view}).encode())
    lost(servers["a"], "b")
    wait_until(lambda: servers.owner("v") == "a", what="the take-over")
    assert a.run(READ) == rows.wanted()


# -- entries -----------------------------------------------------------------------------------------------------------


def _deep_text(document: Any) -> bytes:
    return b'{"format":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def _named(**fields: Any) -> Callable[[Any], bytes]:
    return lambda document: json.dumps(document | fields).encode()


ENTRIES: dict[str, Callable[[Any], bytes]] = {
    "deep": _deep_text,
    "a handover elsewhere": _named(handover="../../../victim"),
    "an older one elsewhere": _named(older="../../../victim"),
    "another owner": _named(owner=7),
    "an LSN": _named(at=1 << 70),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_of_a_view(name: str, servers: Servers, a: Client, tmp_path: Path) -> None:
    """Nothing outside of the storage is read or deleted, and other views are unaffected."""
    rows = Rows()
    a.run("CREATE VIEW w AS SELECT count(*) AS c FROM s")
    rows.insert(a, 5)
    servers.migrate("a", "b")
    servers["b"].view_migration.checkpoints.close()  # a copy would be another entry
    victim = tmp_path / "victim"
    victim.mkdir()
    (path,) = (tmp_path / "storage/views").glob("*.json")
    before = path.read_bytes()
    path.write_bytes(ENTRIES[name](json.loads(before)))
    servers.migrate("a", "b", "w")
    assert servers.client("b").run("SELECT c FROM w") == [(5,)]
    with pytest.raises(SqlError, match="XX001"):
        servers.migrate("b", "a")
    path.write_bytes(before)
    assert victim.is_dir()
    rows.insert(a, 5)
    servers.migrate("b", "a")
    assert a.run(READ) == rows.wanted()


def test_what_is_staged_elsewhere_is_not_deleted(servers: Servers, a: Client, tmp_path: Path) -> None:
    servers.migrate("a", "b")
    servers.stop("a")
    victim = tmp_path / "victim"
    victim.mkdir()
    path = tmp_path / "storage/servers/a.json"
    entry = json.loads(path.read_bytes())
    staged = [{"name": "..", "handover": "../../victim"}, {}]
    path.write_bytes(json.dumps(entry | {"state": "adopted", "heir": "b", "staged": staged}).encode())
    with pytest.raises(SqlError, match="XX001"):
        servers["b"].view_migration._adoption.unstage()
    assert victim.is_dir()


@pytest.mark.parametrize(
    "content", [_deep_text(None), b'{"format":1,"server":[],"epoch":{}}', b'{"format":1,"epoch":1}']
)
def test_a_claim_does_not_end_the_heartbeat(content: bytes, servers: Servers, a: Client, tmp_path: Path) -> None:
    """The thread that renews the lease continues, and so does its other work."""
    database = servers["a"]
    path = tmp_path / "storage/claims/0123456789abcdef.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(SqlError, match="XX001"):
        database.separation.claims.get(path.stem)
    database.separation.moving._look()
    assert database.separation.claims.all() == {}


@pytest.mark.parametrize("content", [_deep_text(None), b'{"format":1,"stream":1,"lsn":1e999,"upto":1}', b"[]"])
def test_a_position_is_not_believed(content: bytes, servers: Servers, a: Client, tmp_path: Path) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    stream = servers["b"].core.runtimes()[0].program.inputs[0]
    there = servers["a"].core.runtimes()[0].program.inputs[0]
    servers.stop("b")
    path = tmp_path / f"storage/followed/a.{there}.b.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.replace(b'"stream":1', f'"stream":{stream}'.encode()))
    rows.insert(a, 5)
    assert servers.client("b").run(READ) == rows.wanted()
