"""Files of a followed folder that are refused, and files that are there before a view is created."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from tests.executor.client import Client, open_database
from tests.rig.process import wait_until

PACE = {"source_poll": 0.02, "maintenance_idle": 0.02}
STREAM = "CREATE FOREIGN TABLE f (id int, t text) SERVER stream OPTIONS (source 'files', path '{}', format 'csv')"
VIEW = "CREATE VIEW v AS SELECT id, max(t) AS t FROM f GROUP BY id"


def put(folder: Path, name: str, data: bytes) -> None:
    """Moves a whole file into the folder."""
    (folder / f"_{name}").write_bytes(data)
    (folder / f"_{name}").rename(folder / name)


def state(client: Client) -> object:
    """The view's rows, or the SQLSTATE and the place of the error that a read raises."""
    try:
        return client.run("SELECT * FROM v ORDER BY id")
    except SqlError as error:
        return error.sqlstate, (error.where or "").rpartition("/")[2]


def shows(client: Client, wanted: object) -> bool:
    return state(client) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("mended", ["replaced", "removed"])
def test_a_file_that_does_not_fit_holds_its_stream_up_until_it_is_replaced_or_removed(
    tmp_path: Path, mended: str
) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = open_database(tmp_path / "data", **PACE)
    client = Client(database)
    client.run(STREAM.format(folder))
    client.run(VIEW)
    put(folder, "a.csv", b"1,a\n")
    wait_until(partial(shows, client, [(1, "a")]))
    put(folder, "b.csv", b"2,b\n3\n")
    wait_until(partial(shows, client, ("22P04", 'b.csv", line 2: "3"')))
    where = f'stream "f", file "{folder}/b.csv", line 2: "3"'
    told = f'22P04: missing data for column "t" ({where})'
    wait_until(lambda: client.run("SELECT error FROM millstream.streams") == [(told,)])
    database.close()
    database = open_database(tmp_path / "data", **PACE)
    client = Client(database)
    wait_until(partial(shows, client, ("22P04", 'b.csv", line 2: "3"')))
    if mended == "replaced":
        put(folder, "b.csv", b"2,b\n3,c\n")
    else:
        (folder / "b.csv").unlink()
    wait_until(partial(shows, client, [(1, "a"), (2, "b"), (3, "c")] if mended == "replaced" else [(1, "a")]))
    assert client.run("SELECT error FROM millstream.streams") == [(None,)]
    put(folder, "c.csv", b"4,d\n")
    wait_until(lambda: (4, "d") in client.run("SELECT * FROM v"))
    database.close()


@pytest.mark.slow
def test_a_refused_file_is_read_again_as_its_stream_is_defined_now(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = open_database(tmp_path / "data", **PACE)
    client = Client(database)
    client.run(STREAM.format(folder))
    client.run(VIEW)
    put(folder, "a.csv", b"1;a\n")
    wait_until(partial(shows, client, ("22P02", 'a.csv", line 1, column id: "1;a"')))
    client.run("ALTER FOREIGN TABLE f OPTIONS (ADD delimiter ';')")
    wait_until(partial(shows, client, [(1, "a")]))
    database.close()


@pytest.mark.parametrize("at_once", [True, False])
def test_files_that_lie_there_before_a_view_count(tmp_path: Path, at_once: bool) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    put(folder, "a.csv", b"1,a\n")
    put(folder, "b.csv", b"2,b\n")
    database = open_database(tmp_path / "data", **PACE)
    client = Client(database)
    if at_once:
        client.run("BEGIN")
    client.run(STREAM.format(folder))
    if not at_once:
        wait_until(lambda: client.run("SELECT rows FROM millstream.streams") == [(2,)])
    client.run(VIEW)
    if at_once:
        client.run("COMMIT")
    wait_until(partial(shows, client, [(1, "a"), (2, "b")]))
    put(folder, "c.csv", b"3,c\n")
    wait_until(partial(shows, client, [(1, "a"), (2, "b"), (3, "c")]))
    client.run(VIEW.replace("VIEW v", "VIEW w"))
    everything = "SELECT * FROM w ORDER BY 1"
    assert client.run(everything) == [(1, "a"), (2, "b"), (3, "c")]
    database.close()
    database = open_database(tmp_path / "data", **PACE)
    assert Client(database).run(everything) == [(1, "a"), (2, "b"), (3, "c")]
    database.close()


def test_a_view_has_the_files_that_are_still_there(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = open_database(tmp_path / "data", **PACE)
    client = Client(database)
    client.run(STREAM.format(folder))
    client.run(VIEW)
    for place, name in enumerate("abc", 1):
        put(folder, f"{name}.csv", f"{place},{name}\n".encode())
        wait_until(partial(shows, client, [(each, "abc"[each - 1]) for each in range(1, place + 1)]))
    wait_until(lambda: client.run("SELECT max(rows_behind) FROM millstream.views") == [(0,)])
    (folder / "b.csv").unlink()
    client.notices.clear()
    client.run(VIEW.replace("VIEW v", "VIEW w"))
    assert client.notices == [
        'continuous view "w" does not have all files of stream "f": 2 files that arrived before are left out, '
        "the last of which is no longer as it arrived"
    ]
    assert client.run("SELECT * FROM w") == [(3, "c")]
    assert client.run("SELECT count(*) FROM v") == [(3,)]
    database.close()


def test_a_file_that_goes_before_a_new_view_has_it_stops_no_other_view(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = open_database(tmp_path / "data", **PACE)
    client = Client(database)
    client.run(STREAM.format(folder))
    client.run(VIEW)
    put(folder, "a.csv", b"1,a\n")
    wait_until(partial(shows, client, [(1, "a")]))
    wait_until(lambda: client.run("SELECT max(rows_behind) FROM millstream.views") == [(0,)])
    client.run("BEGIN")
    client.run(VIEW.replace("VIEW v", "VIEW w"))
    (folder / "a.csv").unlink()
    client.run("COMMIT")
    put(folder, "b.csv", b"2,b\n")
    wait_until(partial(shows, client, [(1, "a"), (2, "b")]))
    with pytest.raises(SqlError, match="no longer exists") as caught:
        client.run("SELECT * FROM w")
    assert caught.value.sqlstate == "58P01"
    client.run("DROP VIEW w")
    client.run(VIEW.replace("VIEW v", "VIEW w"))
    assert client.run("SELECT * FROM w") == [(2, "b")]
    database.close()


@pytest.mark.parametrize(
    "text",
    [
        "CREATE FOREIGN TABLE g (i int) SERVER files OPTIONS (path 's3://bucket/a.csv', format 'csv')",
        "CREATE FOREIGN TABLE g (i int) SERVER stream OPTIONS (source 'files', path 'HDFS://x/y', format 'csv')",
        "CREATE FOREIGN TABLE g (i int) SERVER files OPTIONS (path 'file:///x')",
    ],
)
def test_a_path_is_no_url(client: Client, text: str) -> None:
    with pytest.raises(SqlError, match=r"0A000: a path with the scheme .* is not supported"):
        client.run(text)
