"""Isolation of transactions of many clients that append values to lists and read them."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

from tests.rig.beside import Beside
from tests.rig.list_append import FORBIDDEN, Append, Read, Transaction, phenomena
from tests.rig.server import Millstream

Client = psycopg.Connection[Any]
_KEYS = 6
#: A list is a row found by key, changed by key or by a query, or the rows of a table.
_APPENDS = (
    "UPDATE lists SET v = v || {value} WHERE k = {key}",
    "UPDATE lists SET v = v || {value} WHERE k + 0 = {key}",
    "INSERT INTO lists VALUES ({key}, ARRAY[{value}]) ON CONFLICT (k) DO UPDATE SET v = lists.v || excluded.v",
)
_READS = ("SELECT v FROM lists WHERE k = {key}", "SELECT v FROM lists WHERE k + 0 = {key}")


@pytest.mark.parametrize("level", FORBIDDEN)
def test_no_level_shows_what_it_forbids(running: Millstream, level: str, whole: bool) -> None:
    count = 25 if whole else 15
    with running.connect() as client:
        client.execute("DROP TABLE IF EXISTS lists")
        client.execute("CREATE TABLE lists (k int PRIMARY KEY, v int[] NOT NULL)")
        client.execute(f"INSERT INTO lists SELECT k, '{{}}' FROM generate_series(0, {_KEYS - 1}) k".encode())
    workers = [Beside(lambda number=number: _work(running, level, number, count)) for number in range(5)]
    history = [each for worker in workers for each in worker.result(300)]
    with running.connect() as client:
        final = {key: tuple(values) for key, values in client.execute("SELECT k, v FROM lists").fetchall()}
    assert sum(each.committed is True for each in history) > count // 2
    found = phenomena(history, final)
    assert not found.keys() & FORBIDDEN[level], found


def _work(server: Millstream, level: str, number: int, transactions: int) -> list[Transaction]:
    """One client's transactions."""
    source, found = random.Random(number), list[Transaction]()
    with server.connect() as client:
        client.execute("SET lock_timeout = '20s'")
        for count in range(transactions):
            client.execute(f"BEGIN ISOLATION LEVEL {level}".encode())
            operations: list[Append | Read] = []
            committed: bool | None = False
            try:
                for step in range(source.randrange(1, 5)):
                    key = source.randrange(_KEYS)
                    if source.random() < 0.5:
                        value = number * 100_000 + count * 100 + step
                        client.execute(source.choice(_APPENDS).format(key=key, value=value).encode())
                        operations.append(Append(key, value))
                    else:
                        (values,) = client.execute(source.choice(_READS).format(key=key).encode()).fetchone() or ([],)
                        operations.append(Read(key, tuple(values)))
                if source.random() < 0.1:
                    client.execute("ROLLBACK")
                else:
                    client.execute("COMMIT")
                    committed = True
            except psycopg.Error as error:
                assert error.sqlstate in ("40001", "40P01"), error
                client.execute("ROLLBACK")
            found.append(Transaction(number * 1000 + count, tuple(operations), committed))
    return found


def _t(number: int, *operations: Append | Read, committed: bool | None = True) -> Transaction:
    return Transaction(number, operations, committed)


@pytest.mark.parametrize(
    ("name", "history", "final"),
    [
        ("G0", (_t(1, Append(1, 1), Append(2, 1)), _t(2, Append(1, 2), Append(2, 2))), {1: (1, 2), 2: (2, 1)}),
        ("G1a", (_t(1, Append(1, 1), committed=False), _t(2, Read(1, (1,)))), {1: ()}),
        ("G1b", (_t(1, Append(1, 1), Append(1, 2)), _t(2, Read(1, (1,)))), {1: (1, 2)}),
        ("G1c", (_t(1, Append(1, 1), Read(2, (2,))), _t(2, Append(2, 2), Read(1, (1,)))), {1: (1,), 2: (2,)}),
        ("G-single", (_t(1, Append(1, 1), Append(2, 2)), _t(2, Read(1, ()), Read(2, (2,)))), {1: (1,), 2: (2,)}),
        ("G2", (_t(1, Read(1, ()), Append(2, 2)), _t(2, Read(2, ()), Append(1, 1))), {1: (1,), 2: (2,)}),
        ("lost value", (_t(1, Append(1, 1)),), {1: ()}),
        ("non-repeatable read", (_t(1, Append(1, 1)), _t(2, Read(1, ()), Read(1, (1,)))), {1: (1,)}),
        ("different orders", (_t(1, Append(1, 1)), _t(2, Append(1, 2)), _t(3, Read(1, (2, 1)))), {1: (1, 2)}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_checker_finds(name: str, history: tuple[Transaction, ...], final: dict[int, tuple[int, ...]]) -> None:
    assert name in phenomena(history, final)


def test_the_checker_finds_nothing_in_a_serial_history() -> None:
    first = _t(1, Read(1, ()), Append(1, 1), Read(1, (1,)), Append(2, 1))
    second = _t(2, Read(1, (1,)), Append(1, 2), Append(2, 2), Read(2, (1, 2)))
    assert phenomena((first, second), {1: (1, 2), 2: (1, 2)}) == {}
