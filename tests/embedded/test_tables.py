"""The table store: statements, constraints, atomicity, savepoints, two writers, net changes, recovery."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.commit.records import TableChange
from executor.tables.store import TableStore
from tests.embedded.sql import Tables, rows_of
from tests.rig.beside import Beside


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    store = TableStore.open(tmp_path / "tables.duckdb", threads=1)
    yield Tables(store)
    store.close()


@pytest.fixture
def accounts(tables: Tables) -> Tables:
    tables.create(
        "CREATE TABLE account (id int PRIMARY KEY, owner text NOT NULL, "
        "balance numeric(10,2) DEFAULT 0 CHECK (balance >= 0))"
    )
    tables.execute("INSERT INTO account VALUES (1, 'ann', 10), (2, 'bob', 20)")
    return tables


def failure(tables: Tables, *texts: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        tables.execute(*texts)
    return caught.value


def test_insert_update_delete_and_what_they_answer(accounts: Tables) -> None:
    changes = accounts.execute("INSERT INTO account (id, owner) VALUES (3, 'cy') RETURNING id, balance + 1 AS more")
    assert changes.count == 1
    assert changes.returned is not None
    assert rows_of(changes.returned) == [(3, Decimal("1.00"))]
    changes = accounts.execute("UPDATE account SET balance = balance * 2 WHERE id < 3 RETURNING owner, balance")
    assert changes.returned is not None
    assert sorted(rows_of(changes.returned)) == [("ann", Decimal("20.00")), ("bob", Decimal("40.00"))]
    changes = accounts.execute("DELETE FROM account WHERE owner = 'bob' RETURNING id")
    assert changes.returned is not None
    assert rows_of(changes.returned) == [(2,)]
    assert accounts.read("SELECT id, balance FROM account ORDER BY id") == [(1, Decimal("20.00")), (3, Decimal("0.00"))]


def test_update_from_a_join_changes_a_row_once(accounts: Tables) -> None:
    changes = accounts.execute(
        "UPDATE account SET balance = v.n FROM (VALUES (1, 5), (1, 5), (9, 9)) v(id, n) WHERE account.id = v.id"
    )
    assert changes.count == 1
    assert accounts.read("SELECT balance FROM account WHERE id = 1") == [(Decimal("5.00"),)]


@pytest.mark.parametrize(
    ("text", "state", "message", "detail"),
    [
        (
            "INSERT INTO account VALUES (3, NULL, 1)",
            "23502",
            'null value in column "owner" of relation "account" violates not-null constraint',
            "Failing row contains (3, null, 1.00).",
        ),
        (
            "INSERT INTO account VALUES (NULL, 'x', 1)",
            "23502",
            'null value in column "id" of relation "account" violates not-null constraint',
            "Failing row contains (null, x, 1.00).",
        ),
        (
            "INSERT INTO account VALUES (3, 'cy', 1), (2, 'bob', 1)",
            "23505",
            'duplicate key value violates unique constraint "account_pkey"',
            "Key (id)=(2) already exists.",
        ),
        (
            "INSERT INTO account VALUES (3, 'cy', 1), (3, 'cy', 1)",
            "23505",
            'duplicate key value violates unique constraint "account_pkey"',
            "Key (id)=(3) already exists.",
        ),
        (
            "UPDATE account SET balance = balance - 15",
            "23514",
            'new row for relation "account" violates check constraint "account_balance_check"',
            "Failing row contains (1, ann, -5.00).",
        ),
        (
            "UPDATE account SET id = 7",
            "23505",
            'duplicate key value violates unique constraint "account_pkey"',
            "Key (id)=(7) already exists.",
        ),
        ("UPDATE account SET balance = 1 / (id - 1)", "22012", "division by zero", None),
    ],
)
def test_violations_leave_nothing(accounts: Tables, text: str, state: str, message: str, detail: str | None) -> None:
    before = accounts.read("SELECT * FROM account ORDER BY id")
    error = failure(accounts, "INSERT INTO account VALUES (50, 'first of the transaction', 1)", text)
    assert (error.sqlstate, error.message, error.detail) == (state, message, detail)
    assert accounts.read("SELECT * FROM account ORDER BY id") == before


def test_keys_are_checked_at_the_statements_end(accounts: Tables) -> None:
    accounts.execute("UPDATE account SET id = id + 1")
    assert accounts.read("SELECT id FROM account ORDER BY id") == [(2,), (3,)]
    accounts.execute("DELETE FROM account WHERE id = 2", "INSERT INTO account VALUES (2, 'again', 1)")
    assert accounts.read("SELECT id, owner FROM account ORDER BY id") == [(2, "again"), (3, "bob")]


def test_unique_allows_nulls(tables: Tables) -> None:
    tables.create("CREATE TABLE u (a int, b int, UNIQUE (a, b))")
    tables.execute("INSERT INTO u VALUES (1, NULL), (1, NULL), (1, 2)")
    assert failure(tables, "INSERT INTO u VALUES (1, 2)").detail == "Key (a, b)=(1, 2) already exists."


@pytest.fixture
def family(tables: Tables) -> Tables:
    tables.create("CREATE TABLE parent (id int PRIMARY KEY, other int)")
    tables.create("CREATE TABLE strict (p int REFERENCES parent)")
    tables.create(
        "CREATE TABLE follows (p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, n int PRIMARY KEY)"
    )
    tables.create("CREATE TABLE below (n int REFERENCES follows ON DELETE CASCADE)")
    tables.create("CREATE TABLE loses (p int REFERENCES parent ON DELETE SET NULL)")
    tables.execute("INSERT INTO parent VALUES (1, 0), (2, 0), (3, 0)")
    tables.execute(
        "INSERT INTO follows VALUES (1, 10), (2, 20)",
        "INSERT INTO below VALUES (10), (20)",
        "INSERT INTO loses VALUES (1), (2)",
    )
    return tables


def test_foreign_keys_need_their_partner(family: Tables) -> None:
    error = failure(family, "INSERT INTO strict VALUES (NULL), (9)")
    assert error.sqlstate == "23503"
    assert error.message == 'insert or update on table "strict" violates foreign key constraint "strict_p_fkey"'
    assert error.detail == 'Key (p)=(9) is not present in table "parent".'
    family.execute("INSERT INTO strict VALUES (NULL), (3)")
    error = failure(family, "DELETE FROM parent WHERE id = 3")
    assert error.sqlstate == "23503"
    assert (
        error.message
        == 'update or delete on table "parent" violates foreign key constraint "strict_p_fkey" on table "strict"'
    )
    assert error.detail == 'Key (id)=(3) is still referenced from table "strict".'
    family.execute("UPDATE parent SET other = 5 WHERE id = 3")
    assert failure(family, "UPDATE parent SET id = 4 WHERE id = 3").sqlstate == "23503"
    family.execute("DELETE FROM strict", "DELETE FROM parent WHERE id = 3")


def test_keys_that_go_from_row_to_row(family: Tables) -> None:
    """The references would follow the wrong row, so this is refused if there are any."""
    error = failure(family, "UPDATE parent SET id = id + 1")
    assert (error.sqlstate, error.message) == (
        "0A000",
        'moving keys of "parent" between rows while other rows refer to them is not supported',
    )
    assert family.read("SELECT p FROM follows ORDER BY p") == [(1,), (2,)]
    family.execute("DELETE FROM follows", "DELETE FROM loses")
    family.execute("UPDATE parent SET id = id + 1")
    assert family.read("SELECT id FROM parent ORDER BY id") == [(2,), (3,), (4,)]


def test_actions_of_foreign_keys(family: Tables) -> None:
    family.execute("DELETE FROM parent WHERE id = 1")
    assert family.read("SELECT * FROM follows") == [(2, 20)]
    assert family.read("SELECT * FROM below") == [(20,)]
    assert family.read("SELECT p FROM loses ORDER BY p") == [(2,), (None,)]
    family.execute("DELETE FROM loses", "UPDATE parent SET id = id + 100")
    assert family.read("SELECT * FROM follows") == [(102, 20)]


def test_a_table_may_refer_to_itself(tables: Tables) -> None:
    tables.create("CREATE TABLE node (id int PRIMARY KEY, up int REFERENCES node ON DELETE CASCADE)")
    tables.execute("INSERT INTO node VALUES (1, 2), (2, 1), (3, 2), (4, NULL)")
    assert failure(tables, "INSERT INTO node VALUES (5, 6)").sqlstate == "23503"
    tables.execute("DELETE FROM node WHERE id = 3", "DELETE FROM node WHERE id = 1")
    assert tables.read("SELECT id FROM node") == [(4,)]


def test_truncate(family: Tables) -> None:
    assert failure(family, "TRUNCATE parent").sqlstate == "0A000"
    family.execute("TRUNCATE below")
    assert family.read("SELECT count(*) FROM below") == [(0,)]


# Transactions ---------------------------------------------------------------------------------------------------------


def test_a_writer_sees_its_own_changes_and_readers_do_not(accounts: Tables) -> None:
    write = accounts.store.begin_write()
    accounts.run(write, "INSERT INTO account VALUES (3, 'cy', 1)")
    assert accounts.read("SELECT count(*) FROM account", write) == [(3,)]
    assert accounts.read("SELECT count(*) FROM account") == [(2,)]
    write.rollback()
    write.rollback()
    assert accounts.read("SELECT count(*) FROM account") == [(2,)]


def test_a_snapshot_stays(accounts: Tables) -> None:
    from tests.embedded.sql import query

    relation = query("SELECT count(*) FROM account", accounts.catalog).relation
    snapshot = accounts.store.snapshot()
    accounts.execute("DELETE FROM account")
    assert rows_of(snapshot.query(relation, {}, (), "UTC")) == [(2,)]
    snapshot.close()
    snapshot.close()
    assert accounts.read("SELECT count(*) FROM account") == [(0,)]


def test_savepoints(accounts: Tables) -> None:
    write = accounts.store.begin_write()
    accounts.run(write, "UPDATE account SET balance = 11 WHERE id = 1")
    write.savepoint("a")
    accounts.run(write, "DELETE FROM account WHERE id = 1")
    write.savepoint("b")
    accounts.run(write, "INSERT INTO account VALUES (7, 'gus', 7)")
    with pytest.raises(SqlError, match="23505"):
        accounts.run(write, "INSERT INTO account VALUES (7, 'gus', 7)")
    with pytest.raises(SqlError, match="25P02"):
        accounts.run(write, "DELETE FROM account")
    write.rollback_to("b")
    assert accounts.read("SELECT id FROM account", write) == [(2,)]
    with pytest.raises(SqlError, match="22012"):
        accounts.run(write, "UPDATE account SET balance = 1 / (id - 2)")
    write.rollback_to("a")
    assert accounts.read("SELECT id, balance FROM account ORDER BY id", write) == [
        (1, Decimal("11.00")),
        (2, Decimal("20.00")),
    ]
    with pytest.raises(SqlError, match="3B001"):
        write.rollback_to("b")
    write.release("a")
    with pytest.raises(SqlError, match="3B001"):
        write.release("a")
    accounts.commit(write)
    assert accounts.read("SELECT id, balance FROM account ORDER BY id") == [
        (1, Decimal("11.00")),
        (2, Decimal("20.00")),
    ]


def test_savepoints_undo_definitions(accounts: Tables) -> None:
    write = accounts.store.begin_write()
    (oid,) = (oid for oid, table in accounts.store.definitions.items() if table.name == "account")
    write.savepoint("a")
    write.drop(oid)
    write.rollback_to("a")
    assert accounts.read("SELECT count(*) FROM account", write) == [(2,)]
    write.drop(oid)
    accounts.commit(write)
    assert oid not in accounts.store.definitions


def test_rows_alike_are_counted(tables: Tables) -> None:
    """Without a key, a rollback deletes exactly as many of the equal rows as were inserted."""
    tables.create("CREATE TABLE bag (a int, t text, i interval, f float8)")
    row = "(1, NULL, '1 month', 'NaN')"
    tables.execute(f"INSERT INTO bag VALUES {row}, {row}, {row}, (2, 'x', NULL, 1)")
    write = tables.store.begin_write()
    tables.run(write, f"INSERT INTO bag VALUES {row}")
    tables.run(write, "DELETE FROM bag WHERE a = 2")
    write.savepoint("a")
    tables.run(write, "DELETE FROM bag")
    write.rollback_to("a")
    assert tables.read("SELECT a, count(*) FROM bag GROUP BY a", write) == [(1, 4)]
    write.rollback()


def test_net_changes(accounts: Tables) -> None:
    write = accounts.store.begin_write()
    accounts.run(write, "INSERT INTO account VALUES (3, 'cy', 1)")
    accounts.run(write, "UPDATE account SET balance = 2 WHERE id = 3")
    accounts.run(write, "UPDATE account SET balance = balance WHERE id = 2")
    accounts.run(write, "DELETE FROM account WHERE id = 1")
    (change,) = write.record()
    assert isinstance(change, TableChange)
    inserted, deleted = change.inserted, change.deleted
    assert rows_of(inserted) == [(3, "cy", Decimal("2.00"))]
    assert rows_of(deleted) == [(1, "ann", Decimal("10.00"))]
    accounts.run(write, "DELETE FROM account WHERE id = 3")
    accounts.run(write, "INSERT INTO account VALUES (1, 'ann', 10)")
    assert write.record() == []
    write.rollback()


def test_copy_checks_too(accounts: Tables) -> None:
    (table,) = accounts.store.definitions.values()
    schema = pa.schema([("id", pa.int32()), ("owner", pa.string()), ("balance", pa.decimal128(10, 2))])
    write = accounts.store.begin_write()
    write.append(table, pa.table([[3, 4], ["c", "d"], [Decimal(1), None]], schema=schema), "UTC")
    accounts.commit(write)
    assert accounts.read("SELECT count(*), sum(id) FROM account") == [(4, 10)]
    write = accounts.store.begin_write()
    with pytest.raises(SqlError, match="23505"):
        write.append(table, pa.table([[9, 3], ["c", "d"], [Decimal(1), None]], schema=schema), "UTC")
    write.rollback()


def test_decimals_are_computed_wide_in_a_transaction(accounts: Tables) -> None:
    """The overflow of a narrow product would end the transaction; 12 + 12 digits do not fit in 18."""
    accounts.create("CREATE TABLE n (a numeric(14,2))")
    accounts.execute("INSERT INTO n VALUES (999999999999.99)")
    write = accounts.store.begin_write()
    assert accounts.read("SELECT a * a FROM n", write) == [(Decimal("999999999999980000000000.0001"),)]
    write.rollback()


def test_writers_of_a_table_wait_for_each_other(accounts: Tables) -> None:
    first = accounts.store.begin_write()
    accounts.run(first, "UPDATE account SET id = id")
    store = accounts.store
    for write, state in ((store.begin_write(0.01), "55P03"), (store.begin_write(0.0, lambda: True), "57014")):
        with pytest.raises(SqlError, match=state):
            accounts.run(write, "UPDATE account SET id = id")
        write.rollback()

    def second() -> int:
        write = store.begin_write()
        count = accounts.run(write, "UPDATE account SET id = id").count
        write.rollback()
        return count

    waiting = Beside(second)
    accounts.run(first, "INSERT INTO account VALUES (3, 'cy', 1)")
    accounts.commit(first)
    assert waiting.result() == 3


def test_a_transaction_sees_what_others_commit_in_other_tables(accounts: Tables) -> None:
    accounts.create("CREATE TABLE other (n int)")
    first, second = accounts.store.begin_write(), accounts.store.begin_write()
    accounts.run(first, "INSERT INTO account SELECT id + 10, owner, balance FROM account")
    accounts.run(second, "INSERT INTO other VALUES (1), (2)")
    first.see(accounts.store.definitions)
    assert accounts.read("SELECT count(*) FROM other", first) == [(0,)]
    accounts.commit(second)
    first.see(accounts.store.definitions)
    assert accounts.read("SELECT count(*) FROM other", first) == [(2,)]
    assert accounts.read("SELECT count(*) FROM account", first) == [(4,)]
    accounts.commit(first)
    assert accounts.read("SELECT count(*) FROM account") == [(4,)]


# Recovery -------------------------------------------------------------------------------------------------------------


def test_the_lsn_of_a_definition_is_that_of_its_change_of_the_catalog(tmp_path: Path) -> None:
    store = TableStore.open(tmp_path / "t.duckdb", threads=1)
    tables = Tables(store)
    tables.create("CREATE TABLE t (id int)")
    before = tables.lsn
    write = store.begin_write()
    tables.run(write, "INSERT INTO t VALUES (1)")
    write.save_catalog(before + 1, ['{"a": "change"}', '{"and": "another"}'])
    tables.commit(write)
    store.close()
    again = TableStore.open(tmp_path / "t.duckdb", threads=1)
    assert (again.applied_lsn, again.stored_lsn) == (before + 1, before + 1)
    write = again.begin_write()
    write.save_catalog(before + 2, ['{"undone": "change"}'])
    write.rollback()
    again.close()
    last = TableStore.open(tmp_path / "t.duckdb", threads=1)
    assert last.applied_lsn == before + 1
    assert last.catalog.changes == ((before + 1, '{"a": "change"}'), (before + 1, '{"and": "another"}'))
    last.close()


def test_what_is_committed_is_there_after_reopening(tmp_path: Path) -> None:
    store = TableStore.open(tmp_path / "t.duckdb", threads=1)
    tables = Tables(store)
    tables.create("CREATE TABLE t (id int PRIMARY KEY, v text)")
    write = store.begin_write()
    tables.run(write, "INSERT INTO t VALUES (1, 'a')")
    write.save_catalog(2, ['{"a": "change"}'])
    tables.commit(write)
    store.compact(2, lambda: '{"its": "json"}')
    write = store.begin_write()
    tables.run(write, "INSERT INTO t VALUES (2, 'lost')")
    write.rollback()
    store.close()
    again = TableStore.open(tmp_path / "t.duckdb", threads=1)
    assert (again.applied_lsn, again.catalog.whole) == (2, '{"its": "json"}')
    assert [table.name for table in again.definitions.values()] == ["t"]
    reopened = Tables(again)
    reopened.catalog = tables.catalog
    assert reopened.read("SELECT * FROM t") == [(1, "a")]
    again.close()


def test_changes_apply_elsewhere(accounts: Tables, tmp_path: Path) -> None:
    """The log record's changes, applied to a copy without them, give the same table."""
    (table,) = accounts.store.definitions.values()
    copy = Tables(TableStore.open(tmp_path / "copy.duckdb", threads=1))
    write = copy.store.begin_write()
    write.create(table)
    copy.catalog = accounts.catalog
    copy.commit(write)
    copy.execute("INSERT INTO account VALUES (1, 'ann', 10), (2, 'bob', 20)")
    write = accounts.store.begin_write()
    accounts.run(write, "UPDATE account SET balance = balance + 1")
    accounts.run(write, "INSERT INTO account SELECT id + 10, owner, balance FROM account")
    accounts.run(write, "DELETE FROM account WHERE id = 2")
    changes = [(part.table, part.inserted, part.deleted) for part in write.record() if isinstance(part, TableChange)]
    accounts.commit(write)
    replay = copy.store.begin_write()
    replay.apply(changes)
    copy.commit(replay)
    everything = "SELECT * FROM account ORDER BY id"
    assert copy.read(everything) == accounts.read(everything)
    copy.store.close()


def test_statistics_without_reading(accounts: Tables) -> None:
    oid = next(iter(accounts.store.definitions))
    found = accounts.store.statistics(oid, ["id", "owner"])
    assert found is not None
    assert found.rows == 2
    assert (found.columns["id"].low, found.columns["id"].high) == (1, 2)
    assert found.columns["owner"].distinct == pytest.approx(2, abs=1)
    assert accounts.store.statistics(oid, []) is not None
    assert accounts.store.statistics(oid + 1, ["id"]) is None
    for _ in range(3):
        accounts.execute("UPDATE account SET id = id + 2")
    changed = accounts.store.statistics(oid, ["id"])
    assert changed is not None and changed.rows == 2  # DuckDB's own estimate has what has gone
    accounts.execute("DELETE FROM account")
    emptied = accounts.store.statistics(oid, ["id"])
    assert emptied is not None
