"""Every durable file of a server, damaged in every way: answers are right, or errors XX001 that name the file.

A data folder with tables, streams, views, a followed folder and sequences is made once, with a recycled log, as an
orderly end leaves it and as a kill does. Then each file in turn is flipped, cut, zeroed, deleted or replaced with an
older copy, and a server is started on the folder. It may refuse to start, or answer some queries with errors; it never
gives a wrong count, never restarts a sequence, and never fails with an internal error. ``-s`` prints the counts.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct

from catalog.values.errors import SqlError
from executor.database.database import Database
from tests.executor.client import Client, open_database
from tests.rig.crash import copy_crashed
from tests.rig.process import wait_until
from tests.rig.sampling import sample

pytestmark = pytest.mark.slow

OPTIONS: Final = {
    "maintenance_engine": "embedded",
    "maintenance_rows": 500,
    "maintenance_idle": 0.05,
    "source_poll": 0.02,
    "log_segment_bytes": 1 << 16,
}
DEFINITIONS: Final = """
    CREATE FOREIGN TABLE s (k int, n bigint) SERVER stream;
    CREATE FOREIGN TABLE z (n bigint) SERVER stream;
    CREATE TABLE keyed (id serial PRIMARY KEY, n bigint, label text);
    CREATE TABLE loose (n bigint, label text);
    CREATE TABLE d (x int, label text);
    INSERT INTO d VALUES (0, 'none'), (1, 'one'), (2, 'two');
    CREATE SEQUENCE q;
    CREATE VIEW v AS SELECT label, count(*) AS c, sum(n) AS n FROM s JOIN d ON k = x GROUP BY label;
    CREATE VIEW w AS SELECT count(*) AS c, sum(n) AS n FROM s;
    CREATE VIEW u AS SELECT count(*) AS c, sum(n) AS n FROM z
"""
FOLLOWED: Final = """
    CREATE FOREIGN TABLE f (n bigint) SERVER stream OPTIONS (source 'files', path '{}', format 'csv');
    CREATE VIEW g AS SELECT count(*) AS c, sum(n) AS n FROM f
"""


class Truth(Struct):
    """The acknowledged rows: 0, 1, ... in each relation, so that a count identifies them."""

    rows: int = 0
    files: int = 0
    given: int = 0

    def answers(self) -> dict[str, list[tuple[Any, ...]]]:
        """Queries and their rows."""
        numbers = range(self.rows)
        parts = [[number for number in numbers if number % 3 == key] for key in range(3)]
        labels = sorted(zip(("none", "one", "two"), parts, strict=True))
        whole = [(self.rows, sum(numbers))] if self.rows else [(0, None)]
        return {
            "SELECT label, c, n FROM v ORDER BY label": [(label, len(part), sum(part)) for label, part in labels],
            "SELECT c, n FROM w": whole,
            "SELECT c, n FROM u": whole,
            "SELECT count(*), sum(n), count(DISTINCT id) FROM keyed": [(*whole[0], self.rows)],
            "SELECT count(*), sum(n) FROM loose": whole,
            "SELECT c, n FROM g": [(self.files, sum(range(self.files)))],
        }


class Folder:
    """The data folder, the followed folder beside it, and the acknowledged rows."""

    def __init__(self, path: Path, incoming: Path, truth: Truth | None = None) -> None:
        self.path, self.incoming = path, incoming
        self.truth = truth or Truth()

    def open(self) -> Database:
        """Starts a server."""
        return open_database(self.path, **OPTIONS)

    def write(self, client: Client, rows: int) -> None:
        """Inserts rows into each relation."""
        first, self.truth.rows = self.truth.rows, self.truth.rows + rows
        numbers = f"FROM generate_series({first}, {self.truth.rows - 1}) i"
        client.run(
            f"INSERT INTO s SELECT i % 3, i {numbers}; INSERT INTO keyed (n, label) SELECT i, md5(i::text) {numbers}"
        )
        client.run(
            f"BEGIN; INSERT INTO z SELECT i {numbers}; INSERT INTO loose SELECT i, md5(i::text) {numbers}; COMMIT"
        )

    def follow(self, client: Client, files: int) -> None:
        """Adds files, which have been counted at the end."""
        for number in range(self.truth.files, self.truth.files + files):
            beside = self.incoming / f".{number}"
            beside.write_text(f"{number}\n")
            beside.rename(self.incoming / f"{number}.csv")
        self.truth.files += files
        wait_until(lambda: client.run("SELECT c FROM g") == [(self.truth.files,)], 60, "the files")

    def draw(self, client: Client, count: int) -> None:
        """Takes values of the sequence."""
        for _ in range(count):
            ((self.truth.given,),) = client.run("SELECT nextval('q')")


class Made(Struct, frozen=True):
    """Copies of the folders: an old one, one after an orderly end, and one when the process was killed."""

    older: Path
    ends: dict[str, Path]
    incoming: Path
    truth: Truth


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("damage")
    incoming = root / "incoming"
    incoming.mkdir()
    folder = Folder(root / "data", incoming)
    with closing(folder.open()) as database:
        client = Client(database)
        client.run(DEFINITIONS + ";" + FOLLOWED.format(incoming))
        for _ in range(3):
            _work(folder, database, client)
    shutil.copytree(folder.path, root / "older")
    with closing(folder.open()) as database:
        client = Client(database)
        for _ in range(4):
            _work(folder, database, client)
        database.frontiers._note = lambda *_: False  # type: ignore[method-assign]  # the log keeps the rest
        for _ in range(3):
            folder.write(client, 150)  # free segments are not deleted
        folder.write(client, 20)
        folder.follow(client, 1)
        folder.draw(client, 3)
        copy_crashed(folder.path, root / "killed")
    assert (folder.path / "servers/main/forgotten").exists(), "the log was recycled"
    return Made(root / "older", {"closed": folder.path, "killed": root / "killed"}, incoming, folder.truth)


def _work(folder: Folder, database: Database, client: Client) -> None:
    folder.write(client, 1500)
    folder.follow(client, 2)
    folder.draw(client, 40)
    wait_until(lambda: all(database.frontiers.backlog(oid) == 0 for oid in database.core.streams), 60, "maintenance")
    database.core.tables.backlog.apply()
    database.frontiers.release()


# -- damages ---------------------------------------------------------------------------------------------------------


def _change(path: Path, place: float, change: Callable[[bytearray, int], None]) -> None:
    content = bytearray(path.read_bytes())
    if content:
        change(content, min(int(len(content) * place), len(content) - 1))
        path.write_bytes(content)


def _flip(place: float, path: Path) -> None:
    _change(path, place, lambda content, at: content.__setitem__(at, content[at] ^ 1))


def _zero(place: float, path: Path) -> None:
    _change(
        path, place, lambda content, at: content.__setitem__(slice(at, at + 512), bytes(len(content[at : at + 512])))
    )


def _cut(place: float, path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * place))


def _used(path: Path) -> int:
    """The length of a file up to the last byte other than zero, as log segments end in zeros."""
    return len(path.read_bytes().rstrip(b"\0"))


def _flip_last(path: Path) -> None:
    _change(path, 0, lambda content, _: content.__setitem__(_used(path) - 1, content[_used(path) - 1] ^ 1))


def _zero_last(path: Path) -> None:
    _change(
        path,
        0,
        lambda content, _: content.__setitem__(slice(_used(path) // 2, None), bytes(len(content) - _used(path) // 2)),
    )


def _cut_last(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(max(0, _used(path) - 1))


DAMAGES: Final[dict[str, Callable[[Path], None]]] = {
    **{f"flip {place}": partial(_flip, place) for place in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999)},
    **{f"zero {place}": partial(_zero, place) for place in (0.0, 0.2, 0.5, 0.9)},
    **{f"cut {place}": partial(_cut, place) for place in (0.0, 0.3, 0.5, 0.9)},
    "flip last": _flip_last,
    "zero last": _zero_last,
    "cut last": _cut_last,
    "delete": Path.unlink,
    "older": Path.unlink,  # followed by the earlier content
}

#: Kinds of files by patterns in a data folder; of several files, the first and the last.
KINDS: Final = {
    "log": "servers/main/log/*.log",
    "free": "servers/main/log/free-*",
    "control": "servers/main/control",
    "forgotten": "servers/main/forgotten",
    "sequences": "servers/main/sequences",
    "tables": "servers/main/tables.duckdb",
    "wal": "servers/main/tables.duckdb.wal",
    "names": "shared/streams/*/files.jsonl",
    "manifest": "shared/state/v*/manifest.json",
    "program": "shared/state/v*/program.json",
    "runs": "shared/state/v*/*.parquet",
    "static": "shared/state/v*-static/*.parquet",
    "server": "shared/servers/*.json",
}
CASES: Final = list(itertools.product(KINDS, DAMAGES, ("closed", "killed"), (0, -1)))
#: Cases for a run without ``--whole``: each kind of file that servers check in a way of its own, and each way of
#: damaging one.
SOME: Final = [
    ("log", "flip last", "killed", -1),
    ("log", "delete", "closed", 0),
    ("wal", "cut 0.5", "killed", 0),
    *[("tables", damage, "closed", 0) for damage in ("flip 0.3", "older")],
    ("sequences", "delete", "killed", 0),
    ("names", "flip 0.1", "closed", 0),
    ("manifest", "older", "closed", 0),
    ("free", "zero 0.0", "killed", -1),
]
COUNTS: Final[Counter[str]] = Counter()


@pytest.fixture(scope="module", autouse=True)
def _counts() -> Iterator[None]:
    yield
    print(f"\ndamaged files: {sum(COUNTS.values())}; " + ", ".join(f"{name} {COUNTS[name]}" for name in sorted(COUNTS)))


@pytest.mark.parametrize(("kind", "damage", "end", "which"), sample(CASES, SOME))
def test_a_damaged_file(kind: str, damage: str, end: str, which: int, made: Made, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(made.ends[end], data)
    found = sorted(data.glob(KINDS[kind]))
    if not found or (which == -1 and len(found) == 1 and kind != "log"):
        pytest.skip("there is no such file")
    path = found[which]
    older = made.older / path.relative_to(data)
    if damage == "older" and not older.exists():
        pytest.skip("it was not there before")
    DAMAGES[damage](path)
    if damage == "older":
        shutil.copy(older, path)
    truth = Truth(made.truth.rows, made.truth.files, made.truth.given)
    outcome = _outcome(Folder(data, made.incoming, truth), path)
    COUNTS[outcome] += 1


def _outcome(folder: Folder, path: Path) -> str:
    """What a server does with a damaged folder: it answers everything correctly, or some queries, or does not start.
    Asserts that it is one of these, at the first start and at the next."""
    lost: set[str] = set()
    for is_first in (True, False):
        try:
            database = folder.open()
        except SqlError as error:
            _require_named(error, path)
            return "refused"
        with closing(database):
            client = Client(database)
            database.watcher._work()  # asks now which files have arrived
            if is_first:
                lost |= _compare(client, folder, path)
                _insert(client, folder, path, lost)
                if path.name.startswith("free-"):
                    folder.write(client, 300)  # so that the log uses the segment
            _draw(client, folder, path, lost)
            lost |= _compare(client, folder, path)
    return "in part" if lost else "whole"


def _compare(client: Client, folder: Folder, path: Path) -> set[str]:
    """The queries that raise XX001; asserts that the others' answers are right."""
    lost = set()
    for query, wanted in folder.truth.answers().items():
        try:
            assert client.run(query) == wanted, f"{query} after damage of {path.name}"
        except SqlError as error:
            _require_named(error, path)
            lost.add(query)
    return lost


def _draw(client: Client, folder: Folder, path: Path, lost: set[str]) -> None:
    try:
        ((value,),) = client.run("SELECT nextval('q')")
    except SqlError as error:
        _require_named(error, path)
        lost.add("nextval")
        return
    assert isinstance(value, int)
    assert value > folder.truth.given, "a value is given twice"
    folder.truth.given = value


def _insert(client: Client, folder: Folder, path: Path, lost: set[str]) -> None:
    """Inserts one row, also if the sequence of the table's key is lost."""
    number = folder.truth.rows
    folder.truth.rows += 1
    client.run(f"INSERT INTO s VALUES ({number % 3}, {number}); INSERT INTO z VALUES ({number})")
    client.run(f"INSERT INTO loose VALUES ({number})")
    try:
        client.run(f"INSERT INTO keyed (n) VALUES ({number})")
    except SqlError as error:
        _require_named(error, path)
        lost.add("serial")
        client.run(f"INSERT INTO keyed (id, n) VALUES ({10**6 + number}, {number})")


def _require_named(error: SqlError, path: Path) -> None:
    names = (path.name, path.parent.name, "tables.duckdb" if path.name.startswith("tables") else path.name)
    assert error.sqlstate == "XX001", repr(error)
    assert any(name in error.message for name in names) or "the log is corrupted" in error.message, error.message
    assert error.hint, error.message


def test_the_end_of_the_log_can_be_given_up(tmp_path: Path) -> None:
    """Without the control file, a server continues with the existing records, and confirms these from then on."""
    data = tmp_path / "data"
    with closing(open_database(data, **OPTIONS)) as database:
        client = Client(database)
        client.run("CREATE TABLE t (a int); CREATE FOREIGN TABLE s (a int) SERVER stream")
        client.run("CREATE VIEW v AS SELECT count(*) AS c FROM s")
        client.run("INSERT INTO s VALUES (1)")
    with closing(open_database(data, **OPTIONS)) as database:
        client = Client(database)
        client.run("BEGIN; INSERT INTO t VALUES (1); INSERT INTO s VALUES (2); COMMIT")
        (path,) = set((data / "servers/main/log").glob("*.log")) - {database.core.log._segments[0].path}
        database.core.tables.backlog.apply()
        copy_crashed(data, tmp_path / "killed")
    data = tmp_path / "killed"
    path = data / path.relative_to(tmp_path / "data")
    path.write_bytes(path.read_bytes()[:64].ljust(path.stat().st_size, b"\0"))
    with pytest.raises(SqlError, match=path.name) as raised:
        open_database(data, **OPTIONS)
    assert 'delete the file "control"' in (raised.value.hint or "")
    (data / "servers/main/control").unlink()
    for count in range(2):
        with closing(open_database(data, **OPTIONS)) as database:
            client = Client(database)
            assert client.run("SELECT count(*) FROM t") == [(1,)]
            assert client.run("SELECT c FROM v") in ([(1 + count,)], [(2 + count,)])  # the view may have had the row
            if count == 0:
                client.run("INSERT INTO s VALUES (3)")
