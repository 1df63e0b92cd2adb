"""Statements that do not react to interrupts: their callers continue, and so does the engine."""

from __future__ import annotations

import random
import threading

import pytest

from catalog.values.errors import SqlError
from executor.embedded import detached_statements
from executor.embedded.connection import Connection
from executor.embedded.detached_statements import Apart, is_long
from executor.embedded.instance import Instance
from planner.cancellation import LEFT_BEHIND, Calls
from tests.rig.beside import Beside
from tests.rig.process import wait_until


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached_statements, "HEARS", 0.01)


def hold(connection: Connection, begun: threading.Event, ended: threading.Event) -> None:
    """A call of the engine that ignores interrupts until ``ended``."""

    def call() -> None:
        begun.set()
        assert ended.wait(60)

    with connection:
        connection._heard(True, call)


def test_a_call_that_does_not_hear_is_left_with_its_connection(quick: None) -> None:
    instance, begun, ended = Instance(threads=1), threading.Event(), threading.Event()
    connection = instance.acquire()
    running = Beside(hold, connection, begun, ended)
    assert begun.wait(60)
    connection.interrupt()
    with pytest.raises(SqlError, match="57014"):
        running.result()
    assert connection.is_lost
    with pytest.raises(SqlError, match="57014"):
        connection.execute("SELECT 1")
    instance.release(connection)
    other = instance.acquire()
    assert other is not connection
    ended.set()
    instance.release(other)


def test_what_is_left_computes_for_the_client_no_more(quick: None) -> None:
    """Otherwise its memory would count as that of the client's next statement."""
    instance, begun, ended, calls = Instance(threads=1), threading.Event(), threading.Event(), Calls()
    connection = instance.acquire()
    running = Beside(calls.within, hold, connection, begun, ended)
    assert begun.wait(60)
    assert len(calls.clocks) == 2
    connection.interrupt()
    with pytest.raises(SqlError, match="57014"):
        running.result()
    assert not calls.clocks
    assert len(LEFT_BEHIND) == 1
    ended.set()
    wait_until(lambda: not LEFT_BEHIND, 60, "end of what was left")
    instance.release(connection)


def test_changes_are_not_left(quick: None) -> None:
    instance, begun, ended = Instance(threads=1), threading.Event(), threading.Event()
    connection = instance.acquire()
    connection.may_be_left = False
    running = Beside(hold, connection, begun, ended)
    assert begun.wait(60)
    connection.interrupt()
    assert not running.is_over
    ended.set()
    running.result()
    assert not connection.is_lost
    instance.release(connection)
    instance.close()


def test_so_many_are_left_and_no_more(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached_statements, "_left", threading.Semaphore(1))
    ended, left = threading.Event(), threading.Event()
    calls = [Apart(ended.wait, (60,), left.set) for _ in range(2)]
    running = [Beside(call.run, True) for call in calls]

    def is_left() -> bool:
        for call in calls:
            call.interrupt()
        return any(item.is_over for item in running)

    wait_until(is_left, 60, "call that is left")
    assert sorted(item.is_over for item in running) == [False, True]
    ended.set()
    assert left.wait(60)
    wait_until(lambda: all(item.is_over for item in running), 60, "end")


def test_long_texts_and_functions_that_make_long_values_are_apart() -> None:
    assert is_long("SELECT " + "1 + " * 8000 + "1")
    assert is_long("SELECT ms_repeat('x', 100)")
    assert not is_long("SELECT a, count(*) FROM t GROUP BY a")


def test_large_calls_are_found_as_one_expression_finds_them() -> None:
    names = "repeat ms_repeat list list_zip list_extract list_extract_ LIST_Transform list_transform x_list_transform"
    names += " li\u017ft_transform string_split string_splits re_ re_\u00e9 store_list _list a.list ms_array_z to_char"
    names += " to_chart doc_x xdoc_y sum"
    between = ["(", "(", "([{", "([", "( [", " ", "\n", ".", "'", '"', "", "\u00e9", "1", ")", ",", "((", "{"]
    chance = random.Random(1)
    found = {True: 0, False: 0}
    for _ in range(20_000):
        parts = (chance.choice((chance.choice(names.split()), chance.choice(between))) for _ in range(8))
        text = "".join(parts)
        expected = detached_statements._LARGE.search(text) is not None
        assert is_long(text) is expected, text
        found[expected] += 1
    assert min(found.values()) > 1000
