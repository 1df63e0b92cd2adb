"""Values of sequences: with restarts and crashes, in transactions, for many rows at once, and in several sessions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from catalog.objects import Sequence
from catalog.values.errors import SqlError
from catalog.values.types import INT8
from executor.tables.sequences import AHEAD, SequenceStore
from tests.executor.client import Client, open_database
from tests.rig.beside import at_once
from tests.rig.crash import copy_crashed


def sequence(state: int = 1, increment: int = 1, maximum: int = 1000, cycle: bool = False) -> Sequence:
    return Sequence(20000, "s", INT8, 1, increment, 1, maximum, cycle, 1, state, 1)


def test_an_orderly_end_skips_no_value(tmp_path: Path) -> None:
    with closing(SequenceStore(tmp_path / "sequences")) as store:
        assert store.take(sequence(), 3).tolist() == [1, 2, 3]
    with closing(SequenceStore(tmp_path / "sequences")) as store:
        assert store.take(sequence(), 1).tolist() == [4]


def test_a_crash_skips_values_and_repeats_none(tmp_path: Path) -> None:
    with closing(SequenceStore(tmp_path / "sequences")) as store:
        given = [int(store.take(sequence(), 1)[0]) for _ in range(2 * AHEAD + 7)]
        given += store.take(sequence(), 500).tolist()
        shutil.copy(tmp_path / "sequences", tmp_path / "crashed")
        with (tmp_path / "crashed").open("ab") as file:
            file.write(b"[1, 99999, tr")  # being written, but never relied on
    with closing(SequenceStore(tmp_path / "crashed")) as store:
        first = int(store.take(sequence(), 1)[0])
    assert given == list(range(1, len(given) + 1))
    assert given[-1] < first <= given[-1] + AHEAD + 1


def test_each_step_of_a_set_sequence_survives_a_crash(tmp_path: Path) -> None:
    with closing(SequenceStore(tmp_path / "sequences")) as store:
        store.set(sequence(), 7, False)
        shutil.copy(tmp_path / "sequences", tmp_path / "crashed")
        with closing(SequenceStore(tmp_path / "crashed")) as other:
            assert other.take(sequence(), 1).tolist() == [7]
        assert store.take(sequence(), 1).tolist() == [7]


def test_values_end_at_the_bound_or_begin_anew(tmp_path: Path) -> None:
    with closing(SequenceStore(tmp_path / "sequences")) as store:
        assert store.take(sequence(1, 3, 10, cycle=True), 6).tolist() == [1, 4, 7, 10, 1, 4]
        with pytest.raises(SqlError, match="reached maximum value"):
            store.take(sequence(2, 1, 3), 4)
        with pytest.raises(SqlError, match="reached maximum value"):
            store.take(sequence(2, 1, 3), 1)
        assert store.current(sequence(2, 1, 3))[0] == 3


def test_the_file_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.tables.sequences._LONG", 200)
    with closing(SequenceStore(tmp_path / "sequences")) as store:
        values = [int(store.take(sequence(maximum=10**6), AHEAD + 1)[0]) for _ in range(100)]
        assert (tmp_path / "sequences").stat().st_size < 400
        assert len(set(values)) == 100
        shutil.copy(tmp_path / "sequences", tmp_path / "crashed")
        with closing(SequenceStore(tmp_path / "crashed")) as other:
            assert int(other.take(sequence(maximum=10**6), 1)[0]) > values[-1] + AHEAD


def test_sessions_never_share_a_value(tmp_path: Path) -> None:
    given: list[int] = []
    with closing(SequenceStore(tmp_path / "sequences")) as store:

        def take(count: int) -> None:
            for _ in range(50):
                given.extend(store.take(sequence(maximum=10**6), count).tolist())

        at_once(partial(take, count) for count in (1, 3, 40))
    assert sorted(given) == list(range(1, len(given) + 1))


@pytest.mark.slow
def test_rows_of_copy_and_of_a_select_take_their_range_at_once(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("CREATE TABLE t (id bigserial PRIMARY KEY, a int, b int DEFAULT 5)")
        batch = pa.RecordBatch.from_arrays([pa.array(np.arange(5000), pa.int32())], names=["a"])
        assert client.copy("COPY t (a) FROM STDIN", [batch, batch]) == 10_000
        client.run("INSERT INTO t (a) SELECT a FROM t ORDER BY id")
        assert client.run("SELECT count(*), count(DISTINCT id), max(id), min(b) FROM t") == [
            (20_000, 20_000, 20_000, 5)
        ]
        assert client.run("SELECT count(*) FROM t x JOIN t y ON y.id = x.id + 5000 AND y.a = x.a") == [(15_000,)]
        assert client.run("SELECT currval('t_id_seq')") == [(20_000,)]


@pytest.mark.slow
def test_definitions_and_values_are_there_after_a_restart(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("CREATE SEQUENCE s START 5")
        client.run("CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY, n int DEFAULT nextval('s'))")
        client.run("INSERT INTO t DEFAULT VALUES; INSERT INTO t DEFAULT VALUES")
        client.run("BEGIN; ALTER SEQUENCE s RESTART WITH 50; INSERT INTO t DEFAULT VALUES; ROLLBACK")
        copy_crashed(tmp_path, tmp_path.with_name("crashed"))
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("INSERT INTO t DEFAULT VALUES")
        assert client.run("SELECT * FROM t ORDER BY id") == [(1, 5), (2, 6), (4, 7)]
        client.run("DROP SEQUENCE s CASCADE")
        assert client.notices == ["drop cascades to default value for column n of table t"]
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        assert client.run("INSERT INTO t DEFAULT VALUES RETURNING *") == [(5, None)]
    with closing(open_database(tmp_path.with_name("crashed"))) as database:
        client = Client(database)
        ((identity, number),) = client.run("INSERT INTO t DEFAULT VALUES RETURNING *")
        assert int(identity) > 3
        assert int(number) > 6


@pytest.mark.slow
def test_two_tables_created_at_the_same_time_have_sequences_of_their_own(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        late = client.bind("CREATE TABLE late (id serial, up int REFERENCES late (id), UNIQUE (id))")
        other.run("CREATE TABLE early (id serial)")
        client.session.execute(late)
        client.run(
            "INSERT INTO late DEFAULT VALUES; INSERT INTO late (up) VALUES (1); INSERT INTO early DEFAULT VALUES"
        )
        assert client.run("SELECT * FROM late ORDER BY id") == [(1, None), (2, 1)]
        assert client.run("SELECT currval('late_id_seq'), currval('early_id_seq')") == [(2, 1)]


@pytest.mark.slow
def test_parents_and_children_of_one_statement_survive_a_restart(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("CREATE TABLE parent (id serial PRIMARY KEY, n int)")
        client.run(
            "CREATE TABLE child (id serial PRIMARY KEY, parent int REFERENCES parent, twice int"
            " GENERATED ALWAYS AS (parent * 2) STORED)"
        )
        for n in range(3):
            client.run(
                f"WITH p AS (INSERT INTO parent (n) VALUES ({n}), ({n + 10}) RETURNING id)"
                " INSERT INTO child (parent) SELECT id FROM p ORDER BY id"
            )
        batch = pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int32())], names=["parent"])
        client.copy("COPY child (parent) FROM STDIN", [batch])
    with closing(open_database(tmp_path)) as database:
        found = Client(database).run("SELECT * FROM child ORDER BY id")
        assert found == [*((n, n, 2 * n) for n in range(1, 7)), (7, 1, 2), (8, 2, 4)]


def test_a_table_like_one_that_goes_meanwhile_is_not_created(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run("CREATE TABLE t (id serial PRIMARY KEY)")
        late = client.bind("CREATE TABLE late (LIKE t INCLUDING DEFAULTS)")
        referring = client.bind("CREATE TABLE referring (t int REFERENCES t)")
        other.run("DROP TABLE t")
        for statement in (late, referring):
            with pytest.raises(SqlError) as caught:
                client.session.execute(statement)
            assert caught.value.sqlstate == "40001"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A session with a sequence, a table that uses one, and a stream."""
    with closing(open_database(tmp_path_factory.mktemp("sequences"))) as database:
        client = Client(database)
        client.run("CREATE SEQUENCE s; CREATE TABLE t (id serial, n int UNIQUE)")
        client.run("CREATE FOREIGN TABLE clicks (n int) SERVER stream")
        yield client


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CASE WHEN true THEN nextval('s') END",
        "SELECT coalesce(1, nextval('s'))",
        "SELECT 1 WHERE nextval('s') > 0 AND random() >= 0",
        "SELECT (SELECT nextval('s') + v.x) FROM (VALUES (1)) AS v (x)",
        "SELECT setval('s', nextval('s'))",
        "INSERT INTO t (n) VALUES (1), (2) RETURNING currval('t_id_seq')",
        "INSERT INTO t (n) SELECT n FROM t RETURNING nextval('s')",
        "UPDATE t SET id = DEFAULT RETURNING lastval()",
        "INSERT INTO t (n) VALUES (1), (2) ON CONFLICT (n) DO UPDATE SET n = nextval('s') RETURNING nextval('s')",
        "CREATE FOREIGN TABLE f (a serial) SERVER stream",
        "CREATE FOREIGN TABLE f (a int DEFAULT nextval('s')) SERVER stream",
        "CREATE VIEW w AS SELECT count(*) + nextval('s') AS n FROM clicks",
        "CREATE VIEW w AS SELECT count(nextval('s')) AS n FROM clicks",
    ],
)
def test_calls_in_other_places_are_refused(client: Client, text: str) -> None:
    with pytest.raises(SqlError) as caught:
        client.run(text)
    assert caught.value.sqlstate == "0A000"


def test_calls_for_many_rows_hear_a_cancel(tmp_path: Path) -> None:
    """The calls are made here, row by row, so the engine cannot notice the cancel."""
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        told = list[str]()

        def notify(channel: str, payload: str) -> None:
            told.append(payload)
            client.session.cancel()

        client.session.notify = notify
        with pytest.raises(SqlError, match="57014"):
            client.run("SELECT pg_notify('c', n::text) FROM generate_series(1, 100) n")
        assert told == ["1"]
