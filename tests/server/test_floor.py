"""Who has the floor: one client alone gets it after some statements, and loses it at the first sign of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from server.connection import Connection
from server.floor import LOOK, Floor


@dataclass(eq=False)
class _Client:
    is_busy: bool = False


def _heard(floor: Floor, client: _Client) -> None:
    """What a connection does when bytes come."""
    if floor.speaker is not cast(Connection, client):
        floor.give(cast(Connection, client))


def _asked(floor: Floor, client: _Client, times: int) -> list[bool]:
    found = []
    for _ in range(times):
        _heard(floor, client)
        found.append(floor.is_held())
    return found


def test_who_is_heard_alone_has_it_after_a_while_whoever_else_is_connected() -> None:
    client, idle = _Client(), _Client()
    floor = Floor(cast(list[Connection], [client, idle]))
    assert _asked(floor, client, 2 * LOOK) == [False] * (LOOK - 1) + [True] * (LOOK + 1)


def test_one_word_of_another_takes_it_away() -> None:
    client, other = _Client(), _Client()
    floor = Floor(cast(list[Connection], [client, other]))
    _asked(floor, client, LOOK)
    _heard(floor, other)
    assert _asked(floor, client, LOOK) == [False] * (LOOK - 1) + [True]
    assert not any(_asked(floor, each, 1)[0] for _ in range(2 * LOOK) for each in (other, client))


def test_nobody_has_it_while_something_runs_for_another() -> None:
    client, other = _Client(is_busy=True), _Client(is_busy=True)
    floor = Floor(cast(list[Connection], [client, other]))
    assert not any(_asked(floor, client, LOOK))
    other.is_busy = False
    assert _asked(floor, client, LOOK) == [False] * (LOOK - 1) + [True]
    other.is_busy = True  # it is seen at the next look
    assert _asked(floor, client, LOOK) == [True] * (LOOK - 1) + [False]
