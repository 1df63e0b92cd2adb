"""Interruptible code: an interrupt leaves it, at any place, once, and never affects code outside of it."""

from __future__ import annotations

import random
import subprocess
import sys
import threading

import pytest

from catalog.values.errors import SqlError
from planner.cancellation import Calls, Left, leave, to_the_end
from planner.parse.parser import parse
from tests.rig.beside import Beside
from tests.rig.server import ROOT


def test_a_loop_is_left() -> None:
    calls, begun = Calls(), threading.Event()

    def endless() -> None:
        begun.set()
        while True:
            pass

    running = Beside(calls.within, leave, endless)
    assert begun.wait(60)
    calls.interrupt()
    with pytest.raises(SqlError) as caught:
        running.result()
    assert caught.value.sqlstate == "57014"


def test_parsing_is_left() -> None:
    """A long text is parsed in another thread."""
    calls = Calls()
    running = Beside(calls.within, parse, "SELECT " + "+".join(["1"] * 200_000))
    while not running.is_over:
        calls.interrupt()
    error = running.error()
    assert isinstance(error, SqlError)
    assert error.sqlstate in ("57014", "54001")  # or before the first interrupt


def test_nothing_else_hears_an_interrupt() -> None:
    """Code between two interruptible stretches, code that must end, and another client's code are not interrupted."""
    calls, others, ended = Calls(), Calls(), threading.Event()

    def heard() -> int:
        return sum(range(random.randrange(3000)))

    def work(client: Calls, is_heard: bool) -> int:
        count = 0
        while not ended.is_set():
            try:
                client.within(leave, heard) if is_heard else client.within(to_the_end, leave, heard)
            except SqlError:
                count += 1
            sum(range(random.randrange(300)))  # Left would be raised here and fail the test
        return count

    clients = [Beside(work, calls, True), Beside(work, others, True), Beside(work, calls, False)]
    for _ in range(5_000):
        calls.interrupt()
    ended.set()
    left, *none = [client.result() for client in clients]
    assert none == [0, 0]
    print(f"left {left} times")


def test_what_keeps_an_interrupt_to_itself_hears_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.cancellation._AGAIN", 0.0)
    calls, heard = Calls(), list[int]()

    def stubborn() -> None:
        while len(heard) < 2:
            try:
                while True:
                    pass
            except Left:
                heard.append(1)
        while True:
            pass

    running = Beside(calls.within, leave, stubborn)
    while not running.is_over:
        calls.interrupt()
    assert isinstance(running.error(), SqlError)
    assert len(heard) == 2


_PROFILED = """
import sys, threading
from planner.cancellation import Calls, leave

calls = Calls()
for _ in range(100):
    calls.within(leave, sum, range(10))
running = threading.Thread(target=lambda: calls.within(leave, lambda: [None for _ in iter(int, 1)]))
threading.excepthook = lambda _: print("left")
running.start()
while running.is_alive():
    calls.interrupt()
sys.setprofile(lambda *_: None)
print(sum(number for number in range(10)))
"""


def test_nothing_is_on_its_way_behind_a_stretch() -> None:
    """CPython 3.11 never ends if a function is profiled while an exception is being withdrawn."""
    done = subprocess.run([sys.executable, "-c", _PROFILED], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["left", "45"], "")
