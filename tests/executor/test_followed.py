"""Streams that follow a folder, with the embedded engine alone."""

from __future__ import annotations

import os
import struct
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.objects import Stream
from catalog.values.errors import SqlError
from executor.commit.encoding.payloads import decode_record
from executor.commit.records import FilesArrived
from executor.database.database import Database
from executor.files.arrived_files import FileFeed
from executor.options import Options
from executor.subscriptions.arrival_scan import Patience
from executor.upkeep.frontiers import Frontiers
from tests.executor.client import Client, open_database
from tests.rig.beside import Beside
from tests.rig.process import wait_until

VIEW = "CREATE VIEW v AS SELECT page, sum(n) AS n FROM files GROUP BY page"


def stream_over(folder: Path, form: str, options: str = "") -> str:
    """The statement that defines the stream."""
    about = f"source 'files', path '{folder}', format '{form}'{options}"
    return f"CREATE FOREIGN TABLE files (page text, n int) SERVER stream OPTIONS ({about})"


def write(folder: Path, name: str, rows: dict[str, list[object]]) -> None:
    """Moves a whole file into the folder."""
    pq.write_table(pa.table(rows), folder / f"_{name}")
    (folder / f"_{name}").rename(folder / name)


def shows(client: Client, expected: list[tuple[str, int]]) -> bool:
    """Whether the view has these rows."""
    return client.run("SELECT * FROM v ORDER BY page") == expected


@pytest.mark.slow
def test_files_that_arrive_are_rows_and_stay_so_after_restarts(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = open_database(tmp_path / "data", source_poll=0.02, maintenance_idle=0.02)
    client = Client(database)
    client.run(stream_over(folder, "parquet"))
    client.run(VIEW)
    with pytest.raises(SqlError, match="42809"):
        client.run("INSERT INTO files VALUES ('a', 1)")
    write(folder, "one.parquet", {"page": ["a", "b"], "n": [1, 2]})
    wait_until(partial(shows, client, [("a", 1), ("b", 2)]))
    for round_ in range(3):
        database.close()
        write(folder, f"more{round_}.parquet", {"page": ["a"], "n": [10]})
        database = open_database(tmp_path / "data", source_poll=0.02, maintenance_idle=0.02)
        client = Client(database)
        expected = [("a", 11 + 10 * round_), ("b", 2)]
        wait_until(partial(shows, client, expected))
    database.close()


@pytest.mark.slow
def test_rows_of_files_are_counted_across_restarts(tmp_path: Path) -> None:
    """Parquet rows by the footers, text rows by the lines; also in files that were removed since."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    pace = {"source_poll": 0.02, "maintenance_idle": 0.02}
    database = open_database(tmp_path / "data", **pace)
    client = Client(database)
    client.run(stream_over(folder, "csv", ", header 'true'"))
    client.run(VIEW)
    (folder / "_one").write_bytes(b"page,n\na,1\nb,2\na,3")
    (folder / "_one").rename(folder / "one.csv")
    wait_until(partial(shows, client, [("a", 4), ("b", 2)]))
    counted = "SELECT rows FROM millstream.streams"
    assert client.run(counted) == [(3,)]
    wait_until(lambda: client.run("SELECT sum(rows) FROM millstream.jobs WHERE status = 'done'") == [(3,)])
    wait_until(lambda: client.run("SELECT rows_behind FROM millstream.views") == [(0,)])
    wait_until(lambda: bool(_names(tmp_path)))
    database.close()
    (folder / "one.csv").unlink()
    database = open_database(tmp_path / "data", **pace)
    assert Client(database).run(counted) == [(3,)]
    database.close()


@pytest.mark.slow
def test_a_file_that_vanishes_is_an_error_of_its_stream_until_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = Database(Options(tmp_path / "data", spark_enabled=False, source_poll=0.02, maintenance_idle=0.02))
    database.watcher.start()
    client = Client(database)
    client.run(stream_over(folder, "parquet"))
    client.run(VIEW)
    write(folder, "one.parquet", {"page": ["a"], "n": [1]})
    wait_until(lambda: client.run("SELECT rows FROM millstream.streams") == [(1,)])
    (folder / "one.parquet").rename(tmp_path / "aside")
    database.maintenance.start()  # not before, as it would have read the file
    message = '58P01%one.parquet" of stream "files" no longer exists'
    error = f"SELECT count(*) FROM millstream.streams WHERE error LIKE '{message}'"
    wait_until(lambda: client.run(error) == [(1,)])
    failed = "SELECT count(*) > 0 FROM millstream.jobs WHERE status = 'failed' AND detail LIKE '58P01%one.parquet%'"
    wait_until(lambda: client.run(failed) == [(True,)])
    with pytest.raises(SqlError, match=r"58P01.*one\.parquet"):
        client.run("SELECT * FROM v")
    (tmp_path / "aside").rename(folder / "one.parquet")
    write(folder, "two.parquet", {"page": ["a"], "n": [2]})
    wait_until(lambda: client.run("SELECT error, rows FROM millstream.streams") == [(None, 2)])
    assert client.run("SELECT * FROM v") == [("a", 3)]
    wait_until(lambda: client.run("SELECT rows_behind FROM millstream.views") == [(0,)])
    database.close()


@pytest.mark.slow
def test_files_are_found_while_background_work_is_busy(tmp_path: Path) -> None:
    """The background is blocked, as by a long job; readers see the files all the same."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = Database(Options(tmp_path / "data", spark_enabled=False, source_poll=0.02))
    database.watcher.start()
    client = Client(database)
    client.run(stream_over(folder, "parquet"))
    client.run(VIEW)
    for number in range(3):
        write(folder, f"{number}.parquet", {"page": ["a"], "n": [1]})
        wait_until(partial(shows, client, [("a", number + 1)]))
    client.run("DROP FOREIGN TABLE files CASCADE")
    assert not list((tmp_path / "data/shared/streams").iterdir())
    database.close()


@pytest.mark.slow
def test_a_view_that_waits_for_a_file_does_not_hold_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = Database(Options(tmp_path / "data", spark_enabled=False, source_poll=0.02, log_segment_bytes=1 << 16))
    database.watcher.start()
    client = Client(database)
    client.run(stream_over(folder, "parquet"))
    client.run(VIEW)
    client.run("CREATE TABLE t (x text)")
    write(folder, "one.parquet", {"page": ["a"], "n": [1]})
    wait_until(partial(shows, client, [("a", 1)]))
    arrived = database.core.log.last_lsn
    for _ in range(10):
        client.run(f"INSERT INTO t VALUES ('{os.urandom(20_000).hex()}')")
    assert client.run("SELECT count(*) FROM t") == [(10,)]  # reads the file's rows for the view, so that no table waits
    database.frontiers.release()
    assert database.core.log.first_lsn > arrived
    database.close()
    database = open_database(tmp_path / "data", source_poll=0.02)
    assert Client(database).run("SELECT * FROM v") == [("a", 1)]
    database.close()


@pytest.mark.slow
def test_a_query_of_the_stream_sees_files_that_arrive_meanwhile(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = open_database(tmp_path / "data", source_poll=0.02)
    client = Client(database)
    client.run(stream_over(folder, "parquet"))
    (stream,) = database.core.streams.values()
    write(folder, "before.parquet", {"page": ["a"], "n": [1]})
    wait_until(lambda: stream.last_lsn > 0)
    client.session.await_rows(Patience(0.0, 0.0), lambda notice: None)
    found = Beside(client.run, "SELECT page, n FROM files LIMIT 3")
    wait_until(lambda: len(stream.waiting) == 1)
    write(folder, "one.parquet", {"page": ["b", "c"], "n": [2, 3]})
    write(folder, "two.parquet", {"page": ["d"], "n": [4]})
    assert sorted(found.result()) == [("b", 2), ("c", 3), ("d", 4)]
    database.close()


@pytest.mark.slow
def test_a_file_counts_once_whenever_the_server_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server dies before the file's name is stored beside the log, when a view has its rows already; and while
    names are written, some of them old ones without positions."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    pace = {"source_poll": 0.02, "maintenance_idle": 0.02}
    with monkeypatch.context() as patch:
        patch.setattr(Frontiers, "release", lambda self: None)
        database = open_database(tmp_path / "data", **pace)
        client = Client(database)
        client.run(stream_over(folder, "parquet"))
        client.run(VIEW)
        for number in range(3):
            write(folder, f"{number}.parquet", {"page": ["a"], "n": [1]})
            wait_until(partial(shows, client, [("a", number + 1)]))
        wait_until(lambda: client.run("SELECT rows_behind FROM millstream.views") == [(0,)])
        database.close()
    for number, page in enumerate("bcd"):
        database = open_database(tmp_path / "data", **pace)
        client = Client(database)
        write(folder, f"more{number}.parquet", {"page": [page], "n": [1]})
        wait_until(partial(shows, client, [("a", 3), *((each, 1) for each in "bcd"[: number + 1])]))
        assert client.run("SELECT rows FROM millstream.streams") == [(4 + number,)]
        wait_until(lambda: len(_names(tmp_path).splitlines()) == 4 + number)  # noqa: B023
        database.close()
        if number == 0:
            (path,) = (tmp_path / "data/shared/streams").glob("*/files.jsonl")
            path.write_text(path.read_text()[:-5])


def _names(folder: Path) -> str:
    return "".join(path.read_text() for path in (folder / "data/shared/streams").glob("*/files.jsonl"))


def test_what_earlier_versions_have_written(tmp_path: Path) -> None:
    """Earlier versions stored names beside the log without positions, and without row counts in the log."""
    (tmp_path / "files.jsonl").write_text('[3, [["/x/a.csv", 1000, 7], ["/x/b.csv", 4, 8]], [5, null]]\n')
    feed = FileFeed(Stream(1, "s", ()), tmp_path / "files.jsonl")
    (found,) = feed.files(0, 3)
    assert (found.place, found.rows, feed.rows(0, 3), feed.total_rows) == (3, (5, None), 6, 5)
    body = b'{"files":[["/x/c.csv",300,9]],"format":"csv"}'
    payload = struct.pack("<QQB7x", len(body), 1, 4) + body + bytes(-len(body) % 8)
    (part,) = decode_record(pa.py_buffer(payload))
    assert part == FilesArrived(1, (("/x/c.csv", 300, 9),), "csv")
    feed.publish(4, part)
    assert (feed.rows(3, 4), feed.files(3, 4)[0].place) == (3, 4)


@pytest.mark.slow
def test_other_options_are_those_of_files_to_come(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = open_database(tmp_path / "data", source_poll=0.02, maintenance_idle=0.02)
    client = Client(database)
    client.run(stream_over(folder, "csv"))
    client.run(VIEW)
    for number, (options, text) in enumerate(
        (("ADD delimiter ';'", "a;1\n"), ("SET delimiter '|', ADD header 'true'", "page|n\na|2\n"))
    ):
        client.run(f"ALTER FOREIGN TABLE files OPTIONS ({options})")
        (folder / "_new").write_text(text)
        (folder / "_new").rename(folder / f"{number}.csv")
        wait_until(partial(shows, client, [("a", 1 + 2 * number)]))
        assert client.run("SELECT rows FROM millstream.streams") == [(number + 1,)]
    database.close()
