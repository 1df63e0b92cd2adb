"""Files are read as PostgreSQL reads them by COPY, foreign tables and followed folders, with both engines.

PostgreSQL's COPY judges CSV, its json_to_record judges lines of JSON. An answer is how often each row occurs, or an
SQLSTATE.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.server import Millstream
from tests.server.small_files import SmallFile, small_files

pytestmark = pytest.mark.postgres
FILES: Final = tuple(small_files())
#: Every how many files one is followed in a run without ``--whole``; a quarter of these on Spark.
SHARE: Final = 12

Answer = str | Counter[tuple[object, ...]]


def test_there_are_many() -> None:
    assert len({file.name for file in FILES}) == len(FILES) > 200


@pytest.fixture(scope="module")
def right(postgres: Postgres) -> Iterator[dict[str, Answer]]:
    """PostgreSQL's answers."""
    with postgres.connect() as judge:
        judge.execute("SET timezone = 'UTC'")
        yield {file.name: file.told or judged(judge, file) for file in FILES}


def judged(judge: psycopg.Connection[Any], file: SmallFile) -> Answer:
    """PostgreSQL's answer."""
    if file.format == "csv":
        return copied(judge, file)
    found: Counter[tuple[object, ...]] = Counter()
    for line in filter(bytes.strip, file.data.split(b"\n")):
        query = f"SELECT {texts(file)} FROM json_to_record($1::json) AS x ({file.columns})"
        result = judge.pgconn.exec_params(query.encode(), [line])
        if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
            return (state or b"").decode()
        found[tuple(text(result.get_value(0, place)) for place in range(result.nfields))] += 1
    return found


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def texts(file: SmallFile) -> str:
    """The columns as texts, with a text for NULL."""
    return ", ".join(f"{column.split()[0]}::text" for column in file.columns.split(", "))


def copied(connection: psycopg.Connection[Any], file: SmallFile) -> Answer:
    """The rows from COPY."""
    connection.execute(f"CREATE TEMP TABLE copied ({file.columns})")
    header = ", HEADER" if file.header else ""
    command = f"COPY copied FROM STDIN (FORMAT csv, DELIMITER '{file.delimiter}', NULL '{file.null}'{header})"
    try:
        with connection.cursor().copy(command) as copy:
            copy.write(file.data)
        return rows(connection, f"SELECT {texts(file)} FROM copied")
    except psycopg.Error as error:
        return error.sqlstate or ""
    finally:
        connection.execute("DROP TABLE copied")


def rows(connection: psycopg.Connection[Any], query: str) -> Answer:
    """A query's rows, or its SQLSTATE."""
    try:
        return Counter(connection.execute(query, prepare=False).fetchall())
    except psycopg.Error as error:
        return error.sqlstate or ""


def differing(right: dict[str, Answer], found: dict[str, Answer]) -> dict[str, tuple[Answer, Answer]]:
    """The answers that differ: PostgreSQL's and Millstream's."""
    return {name: (right[name], answer) for name, answer in found.items() if answer != right[name]}


def at_rest(connection: psycopg.Connection[Any], file: SmallFile, folder: Path) -> Answer:
    """The rows of a foreign table."""
    path = folder / f"at_rest.{file.format}"
    path.write_bytes(file.data)
    connection.execute(
        f"CREATE FOREIGN TABLE at_rest ({file.columns}) SERVER files OPTIONS (path '{path}', {file.options})"
    )
    try:
        return rows(connection, f"SELECT {texts(file)} FROM at_rest")
    finally:
        connection.execute("DROP FOREIGN TABLE at_rest")


class Followed:
    """Files that arrive in folders of their own, and a view over each folder."""

    def __init__(self, connection: psycopg.Connection[Any], files: Sequence[SmallFile], folder: Path, engine: str):
        self._connection, self._files, self._folder, self._engine = connection, files, folder, engine
        for place, file in enumerate(files):
            (folder / f"{engine}{place}").mkdir()
            about = f"source 'files', path '{folder}/{engine}{place}', {file.options}"
            connection.execute(
                f"CREATE FOREIGN TABLE {self.stream(place)} ({file.columns}) SERVER stream OPTIONS ({about})"
            )
            columns = texts(file)
            keys = ", ".join(str(number) for number in range(1, columns.count("::") + 1))
            connection.execute(
                f"CREATE VIEW v_{self.stream(place)} WITH (maintenance_engine = '{engine}') AS "
                f"SELECT {columns}, count(*) FROM {self.stream(place)} GROUP BY {keys}"
            )

    def stream(self, place: int) -> str:
        return f"s_{self._engine}{place}"

    def arrive(self, right: dict[str, Answer]) -> None:
        """Moves the files in, and waits until all have been checked."""
        for place, file in enumerate(self._files):
            folder = self._folder / f"{self._engine}{place}"
            (folder / "_new").write_bytes(file.data)
            (folder / "_new").rename(folder / f"a.{file.format}")
        wanted = sorted(
            (self.stream(place), isinstance(right[file.name], str))
            for place, file in enumerate(self._files)
            if right[file.name] != Counter()
        )
        looked = (
            "SELECT name, error IS NOT NULL FROM millstream.streams WHERE name = ANY(%s) AND (error <> '' OR rows > 0)"
        )
        own = [self.stream(place) for place in range(len(self._files))]
        wait_until(lambda: sorted(self._connection.execute(looked, (own,)).fetchall()) == wanted, 60, "the files")

    def await_spark(self) -> None:
        """Waits until Spark has maintained all views with rows."""
        behind = "SELECT count(*) FROM millstream.views WHERE rows_behind > 0"
        wait_until(lambda: self._connection.execute(behind).fetchone() == (0,), 600, "Spark")
        # Not all views: only the embedded engine reads some texts of values.
        done = (
            "SELECT count(*) FILTER (WHERE engine = 'spark') > count(*) / 2 FROM millstream.jobs WHERE status = 'done'"
        )
        assert self._connection.execute(done).fetchone() == (True,)

    def answers(self) -> dict[str, Answer]:
        """The views' rows."""
        found = {}
        for place, file in enumerate(self._files):
            answer = rows(self._connection, f"TABLE v_{self.stream(place)}")
            if not isinstance(answer, str):
                answer = Counter({tuple(row[:-1]): row[-1] for row in answer})
            found[file.name] = answer
        return found

    def close(self) -> None:
        for place in range(len(self._files)):
            self._connection.execute(f"DROP FOREIGN TABLE {self.stream(place)} CASCADE")


@pytest.mark.slow
def test_copy(sql: psycopg.Connection[Any], right: dict[str, Answer]) -> None:
    assert differing(right, {file.name: copied(sql, file) for file in FILES if file.format == "csv"}) == {}


@pytest.mark.slow
def test_files_at_rest(sql: psycopg.Connection[Any], right: dict[str, Answer], tmp_path: Path) -> None:
    assert differing(right, {file.name: at_rest(sql, file, tmp_path) for file in FILES}) == {}


@pytest.mark.slow
def test_followed_folders(sql: psycopg.Connection[Any], right: dict[str, Answer], tmp_path: Path, whole: bool) -> None:
    files = FILES if whole else FILES[::SHARE]
    with contextlib.closing(Followed(sql, files, tmp_path, "embedded")) as followed:
        followed.arrive(right)
        assert differing(right, followed.answers()) == {}


@pytest.mark.slow
@pytest.mark.spark
def test_spark(spark_server: Millstream, right: dict[str, Answer], tmp_path: Path, whole: bool) -> None:
    files = FILES if whole else FILES[:: 4 * SHARE]
    with spark_server.connect() as connection:
        connection.execute("SET query_engine = 'spark'")
        assert differing(right, {file.name: at_rest(connection, file, tmp_path) for file in files}) == {}
        connection.execute("RESET query_engine")
        with contextlib.closing(Followed(connection, files, tmp_path, "spark")) as followed:
            followed.arrive(right)
            followed.await_spark()
            assert differing(right, followed.answers()) == {}
