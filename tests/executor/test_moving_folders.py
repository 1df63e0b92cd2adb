"""Continuous views over streams that follow a folder, between servers: each server reads the files itself.

``test_lost_folders`` has views whose home or guest is lost, and ``test_folder_stories`` random moves.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.replicas.replica import as_at_home, as_own, replicated
from executor.streams.runtime import is_followed
from executor.traces.layout import home_of
from tests.executor.client import Client
from tests.executor.folders import Folder, amount, only_csv, view_of
from tests.executor.folders import a as a
from tests.executor.folders import folder as folder
from tests.executor.forging import Given
from tests.executor.moving import READ, VIEW, Servers
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]


ERROR = "SELECT error FROM millstream.streams"


def test_there_and_back(servers: Servers, a: Client, folder: Folder) -> None:
    """The view moves over three servers, in order of arrival; files arrive meanwhile, and many arrive at once."""
    folder.add(a, 5)
    for source, target in (("a", "b"), ("b", "c"), ("c", "a"), ("a", "b"), ("b", "a")):
        servers.migrate(source, target)
        for count in (4, 1, 0, 7):
            folder.add(a, count)
            for name in {"a", target}:
                assert servers.client(name).run(READ) == folder.wanted(), (source, target)
        for number in range(5):
            folder.put([(number % 2, "1.25", f"{target}{number}")])
        folder.await_all(a)
        for name in {"a", target}:
            assert servers.client(name).run(READ) == folder.wanted(), (source, target)
        sources = {name: servers.client(name).run("SELECT source FROM millstream.streams") for name in ("a", target)}
        assert sources == {target: [("server",)]} | {"a": [("files",)]}
    wait_until(lambda: not servers["b"].core.streams, what="the guest's end")


@only_csv
def test_first_rows_and_two_streams(servers: Servers, a: Client, folder: Folder, tmp_path: Path) -> None:
    """The first row is the same on all servers; the view also reads another folder and a stream that clients write."""
    other = Folder(tmp_path / "other", "csv")
    a.run(other.stream.replace("TABLE s", "TABLE o"))
    a.run("CREATE FOREIGN TABLE c (k int, t text) SERVER stream")
    views = {
        "first": "SELECT DISTINCT ON (k) k, t FROM s ORDER BY k, n",
        "least": "SELECT k, t FROM "
        "(SELECT k, t, row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM o) x WHERE r <= 2",
        "every": "SELECT k, count(*) AS c, array_agg(t) AS t FROM "
        "(SELECT k, t FROM s UNION ALL SELECT k, t FROM o UNION ALL SELECT k, t FROM c) x GROUP BY k",
    }
    for name, query in views.items():
        a.run(f"CREATE VIEW {name} AS {query}")
    reads = [f"SELECT * FROM {name} ORDER BY 1, 2" for name in views]
    written = 0
    for source, target in (("a", "b"), ("b", "c"), ("c", "a")):
        for name in views:
            servers.migrate(source, target, name)
            for each in (folder, other):
                each.put([(key, f"{written}.00", f"{each.path.name}{written}{key}") for key in (0, 1)])
                written += 1
            a.run(f"INSERT INTO c VALUES (0, '{written}')")
            a.run(f"BEGIN; INSERT INTO c VALUES (1, '{written}'), (0, '{written}!'); COMMIT")
        wait_until(
            lambda: a.run("SELECT sum(rows) FROM millstream.streams WHERE name <> 'c'") == [(2 * written,)],  # noqa: B023
            60,
            "the files' arrival",
        )
        at_home = [a.run(read) for read in reads]
        assert at_home == [servers.client(target).run(read) for read in reads]
        assert at_home[0] == [(0, folder.rows[0][2]), (1, folder.rows[1][2])]
        assert sorted(at_home[1]) == sorted((row[0], row[2]) for row in other.rows[:4])
        for key, count, texts in at_home[2]:
            own = [row[2] for row in folder.rows if row[0] == key], [row[2] for row in other.rows if row[0] == key]
            assert count == len(texts) == len(own[0]) + len(own[1]) + written // 2 * (2 if key == 0 else 1)
            assert [text for text in texts if text.startswith("incoming")] == own[0]
            assert [text for text in texts if text.startswith("other")] == own[1]


@only_csv
@pytest.mark.parametrize("where", ["a", "b"])
def test_it_rests(where: str, servers: Servers, a: Client, folder: Folder) -> None:
    """The view continues at its home, or elsewhere, with all files that arrived meanwhile, also over a restart."""
    folder.add(a, 5)
    servers["a"].view_migration.suspend(view_of(a))
    folder.add(a, 5)
    with pytest.raises(SqlError, match='55000: view "v" is suspended'):
        a.run(READ)
    servers.stop("a")
    a = servers.client("a")
    folder.add(a, 5)
    (owned,) = servers[where].view_migration.suspended()
    servers[where].view_migration.resume(owned, lambda: False)
    for name in {"a", where}:
        assert servers.client(name).run(READ) == folder.wanted()
    folder.add(a, 5)
    for name in {"a", where}:
        assert servers.client(name).run(READ) == folder.wanted()


@only_csv
def test_restarts(servers: Servers, a: Client, folder: Folder) -> None:
    """Both servers restart in turns, with logs that forget soon."""
    servers.options |= {"log_segment_bytes": 1 << 16}
    for name in "ab":
        servers.stop(name)
    a = servers.client("a")
    a.run("CREATE TABLE filling (x text)")
    folder.add(a, 3)
    servers.migrate("a", "b")
    for number in range(3):
        for stopped in ("b", "a", "ba"):
            folder.add(a, 2)
            if number != 1:  # otherwise the files are first seen after the restart
                assert servers.client("b").run(READ) == folder.wanted()
            for _ in range(4):
                a.run(f"INSERT INTO filling VALUES ('{os.urandom(20_000).hex()}')")
            a.run("SELECT count(*) FROM filling")
            servers.copied("b", "v")
            for name in stopped:
                servers[name].frontiers.release()
                servers.stop(name)
            a = servers.client("a")
            for name in "ba":
                assert servers.client(name).run(READ) == folder.wanted(), (number, stopped)
            assert servers.client("b").run("SELECT rows FROM millstream.streams") == [(len(folder.rows),)]
    assert servers["a"].core.log.first_lsn > 0
    servers.migrate("b", "a")
    assert a.run(READ) == folder.wanted()


@only_csv
def test_a_server_without_the_folder(servers: Servers, a: Client, folder: Folder, tmp_path: Path) -> None:
    """That server does not take the view, which continues where it was."""
    folder.add(a, 5)
    assert a.run(READ) == folder.wanted()
    wait_until(lambda: a.run("SELECT rows_behind FROM millstream.views") == [(0,)], what="maintenance")
    folder.path.rename(tmp_path / "aside")
    with pytest.raises(
        SqlError, match=r'58P01: server "b" cannot take over view "v": folder ".*" of stream "s" does not'
    ):
        servers.migrate("a", "b")
    assert a.run(READ) == folder.wanted()
    assert not servers["b"].core.streams
    (tmp_path / "aside").rename(folder.path)
    servers.migrate("a", "b")
    folder.add(a, 5)
    assert servers.client("b").run(READ) == folder.wanted()


@only_csv
def test_a_file_that_is_not_as_it_was(servers: Servers, a: Client, folder: Folder, tmp_path: Path) -> None:
    """No server computes anything from the changed file, or without it."""
    servers.options |= {"maintenance_idle": 600.0}  # no server reads the file before that
    folder.add(a, 5)
    servers["b"].view_migration.checkpoints.close()
    servers.migrate("a", "b")
    for number, what in enumerate(("no longer exists", "was changed after it arrived")):
        path = folder.add(a, 5)
        kept = tmp_path / f"kept{number}"
        path.rename(kept)
        if what != "no longer exists":
            path.write_text("0,1,1\n")
        for name in "ba":
            with pytest.raises(SqlError, match=f'58P01: file "{path}" of stream "s" {what}'):
                servers.client(name).run(READ)
            told = f'file "{path}" of stream "s" {what}'
            wait_until(lambda name=name, told=told: told in str(servers.client(name).run(ERROR)), what="its error")
        kept.rename(path)
        for name in "ba":
            assert servers.client(name).run(READ) == folder.wanted()
            wait_until(lambda name=name: servers.client(name).run(ERROR) == [(None,)], what="the end of its error")
    path = folder.put([(1, "not a number", "")])
    for _ in range(2):
        wait_until(lambda: _fails(servers.client("b"), "22P02", path), what="the error")
        assert _fails(servers.client("a"), "22P02", path), "it is the view's value, wherever that is"
        servers.stop("b")


def _fails(client: Client, sqlstate: str, path: Path, line: int = 1) -> bool:
    try:
        client.run(READ)
    except SqlError as error:
        return error.sqlstate == sqlstate and f'file "{path}", line {line}' in (error.where or "")
    return False


@pytest.mark.parametrize(
    ("wrong", "sqlstate", "line", "mended"),
    [("1,x,a\n", "22P02", 1, "replaced"), ("1,1,a\n1,2\n", "22P04", 2, "removed")],
)
@only_csv
def test_a_file_that_a_home_refuses(
    servers: Servers, a: Client, folder: Folder, wrong: str, sqlstate: str, line: int, mended: str
) -> None:
    """The guest raises the error, too, also if the view came later than the file; both continue once the file is
    mended."""
    folder.add(a, 5)
    servers.migrate("a", "b")
    for source, target in (("b", "c"), ("c", "b")):
        path = folder.path / f"wrong_at_{source}.csv"
        folder.put([(1, "1.25", "fits")])
        (folder.path / "_wrong").write_text(wrong)
        (folder.path / "_wrong").rename(path)
        folder.await_all(a)
        for name in (source, "a"):
            wait_until(partial(_fails, servers.client(name), sqlstate, path, line), what="the error")
            wait_until(partial(_tells, servers.client(name), path), what="the stream's error")
        if mended == "replaced":
            (folder.path / "_mended").write_text("0,2.50,mended\n")
            (folder.path / "_mended").replace(path)
            folder.rows.append((0, "2.50", "mended"))
        else:
            path.unlink()
        folder.await_all(a)
        for name in (source, "a"):
            wait_until(partial(_reads, servers.client(name), folder), what="its end")
            wait_until(partial(_tells, servers.client(name), None), what="the end of the stream's error")
        servers.migrate(source, target)


def _tells(client: Client, path: Path | None) -> bool:
    """Whether the stream's error names a file, or there is none."""
    ((error,),) = client.run(ERROR)
    return error is None if path is None else str(path) in str(error)


def _reads(client: Client, folder: Folder) -> bool:
    try:
        return client.run(READ) == folder.wanted()
    except SqlError:
        return False


@only_csv
def test_a_server_that_is_drained(servers: Servers, a: Client, folder: Folder) -> None:
    folder.add(a, 5)
    _ = servers["b"]
    assert servers["b"].separation.moving.drain("a", lambda: False, lambda moved: None) == 1
    folder.add(a, 5)
    for name in "ba":
        assert servers.client(name).run(READ) == folder.wanted()


@only_csv
def test_what_a_guest_may_not(servers: Servers, a: Client, folder: Folder) -> None:
    servers.migrate("a", "b")
    b = servers.client("b")
    for statement in ("INSERT INTO s VALUES (1, 1, '')", "INSERT INTO s SELECT 1, 1, ''"):
        with pytest.raises(SqlError, match='42809: stream "s" is filled on server "a" and accepts no INSERT here'):
            b.run(statement)
    for statement in (
        "ALTER FOREIGN TABLE s OPTIONS (ADD null 'x')",
        "ALTER FOREIGN TABLE s ADD COLUMN x int",
        "DROP FOREIGN TABLE s CASCADE",
    ):
        with pytest.raises(SqlError, match=r'55000: relation "[sv]" belongs to server "a"'):
            b.run(statement)
    with pytest.raises(SqlError, match='55000: relation "s" is in use by server "b"'):
        a.run("ALTER FOREIGN TABLE s OPTIONS (ADD null 'x')")
    a.run("DROP FOREIGN TABLE s CASCADE")
    names = servers["b"].core.storage.stream_folder(0).parent
    wait_until(lambda: not servers["b"].core.streams and not list(names.iterdir()), what="the guest's end")


@only_csv
def test_streams_of_an_earlier_version(servers: Servers, a: Client, folder: Folder) -> None:
    """Those of clients, at another server, said of their source that it is that one."""
    (runtime,) = servers["a"].core.streams.values()
    own = replace(runtime.stream, options=(("watermark", "t"),))
    options = (*own.options, ("source", "server"), ("server", "a"), ("oid", str(own.oid)))
    there = replace(own, options=options)
    assert (home_of(there), is_followed(there), there.has_writers) == ("a", False, False)
    assert as_own(there) == as_at_home(there) == own
    there = replace(runtime.stream, options=(*runtime.stream.options, *replicated("a", own.oid)))
    assert (home_of(there), is_followed(there), there.has_writers) == ("a", True, False)
    assert as_own(there) == as_at_home(there) == runtime.stream


@only_csv
def test_more_than_one_view_of_a_folder(servers: Servers, a: Client, folder: Folder) -> None:
    """One view moves to a replica whose position is after that of the view's states."""
    a.run("CREATE VIEW w AS SELECT count(*) AS c, array_agg(t) AS t FROM s")
    folder.add(a, 5)
    servers["a"].view_migration.suspend(view_of(a, "w"))
    servers.migrate("a", "b")
    for _ in range(3):
        folder.add(a, 2)
    assert servers.client("b").run(READ) == folder.wanted()
    (owned,) = servers["b"].view_migration.suspended()
    servers["b"].view_migration.resume(owned, lambda: False)
    assert len(servers["b"].core.streams) == 1
    for _ in range(2):
        folder.add(a, 2)
        for name in "ba":
            texts = [row[2] for row in folder.rows]
            assert servers.client(name).run("SELECT * FROM w") == [(len(texts), texts)]
            if name == "a" or servers.owner("v") == "b":
                assert servers.client(name).run(READ) == folder.wanted()
        if servers.owner("v") == "b":
            servers.migrate("b", "a")


@only_csv
def test_a_view_that_reads_another(servers: Servers, a: Client, folder: Folder) -> None:
    """The view leaves with the states of the other view, also if that is on another server and has read the files
    there."""
    a.run("CREATE VIEW w AS SELECT v.k, v.t, x.m FROM v JOIN (SELECT k, max(n) AS m FROM s GROUP BY k) x ON x.k = v.k")
    folder.add(a, 5)
    servers.migrate("a", "b")
    servers["b"].view_migration.checkpoints.close()
    folder.add(a, 5)
    servers.migrate("a", "c", "w")
    for source, target in (("c", "b"), ("b", "a")):
        folder.add(a, 5)
        wanted = [(k, t, max(amount(row) for row in folder.rows if row[0] == k)) for k, _, _, t in folder.wanted()]
        for name in {"a", source}:
            assert servers.client(name).run("SELECT * FROM w ORDER BY k") == wanted
        servers.migrate(source, target, "w")
        for name in {"a", target}:
            assert servers.client(name).run("SELECT * FROM w ORDER BY k") == wanted


@only_csv
def test_a_second_view_comes_to_a_stream_that_is_there(servers: Servers, a: Client, folder: Folder) -> None:
    """Its states have the files that the stream has had from home since it came with the first view."""
    a.run(VIEW.replace("VIEW v", "VIEW w"))
    folder.add(a, 5)
    servers.migrate("a", "b")
    folder.add(a, 4)
    assert servers.client("b").run(READ) == folder.wanted()
    servers.migrate("a", "b", "w")
    folder.add(a, 2)
    for name in "ab":
        assert servers.client(name).run(READ.replace("FROM v", "FROM w")) == folder.wanted()


@only_csv
@pytest.mark.parametrize(
    "change",
    [
        lambda view: view.pop("arrived"),
        lambda view: view["arrived"].clear(),
        lambda view: next(iter(view["arrived"].values())).update(name="t0.parquet"),
        lambda view: _options(view, path=""),
        lambda view: _options(view, format="orc"),
    ],
)
def test_what_no_server_has_written(
    change: Callable[[Any], object], servers: Servers, a: Client, folder: Folder, tmp_path: Path
) -> None:
    folder.add(a, 5)
    given = Given(servers, tmp_path)
    assert given.outcome(given.view) == ""
    view = json.loads(json.dumps(given.view))
    change(view)
    assert view != given.view
    assert given.outcome(view) == "XX001"
    assert not servers["b"].core.streams


def _options(view: Any, **options: str) -> None:
    """The options of a stream in a manifest, replaced."""
    (stream,) = view["streams"]
    stream["options"] = [[name, options.get(name, value)] for name, value in stream["options"]]
