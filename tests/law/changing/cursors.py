"""Reads through cursors: the rows of a view as of the DECLARE, while others write."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

from tests.law.changing.steps import Step, control

_FORWARD: Final = ("FETCH NEXT FROM c", "FETCH 2 FROM c", "FETCH 3 FROM c", "MOVE 1 IN c", "FETCH ALL FROM c")
_BOTH_WAYS: Final = (
    *_FORWARD,
    "FETCH PRIOR FROM c",
    "FETCH BACKWARD 2 FROM c",
    "FETCH ABSOLUTE 2 FROM c",
    "FETCH ABSOLUTE -1 FROM c",
    "FETCH RELATIVE 0 FROM c",
    "FETCH FIRST FROM c",
    "FETCH LAST FROM c",
    "MOVE BACKWARD ALL IN c",
)


def reads_by_cursor(
    source: random.Random, read: Step, beside: Callable[[], Step], own: Callable[[], Step]
) -> Iterator[Step]:
    """A block that reads by a cursor. ``read`` has an order; ``beside`` changes rows in another session, ``own`` in
    that of the cursor."""
    session, scrolls, held = read.session, source.random() < 0.5, source.random() < 0.25
    level = source.choice(("", "", " ISOLATION LEVEL REPEATABLE READ"))
    yield control(f"BEGIN{level}", session=session)
    way, hold = source.choice((" SCROLL", " SCROLL INSENSITIVE")) if scrolls else "", " WITH HOLD" if held else ""
    text = f"DECLARE c{way} CURSOR{hold} FOR {read.text}"
    yield Step("block", text, session, name=read.name, constructs=("DECLARE CURSOR",))
    for _ in range(source.randint(3, 7)):
        chance = source.random()
        if chance < 0.3:
            yield beside()
        elif chance < 0.4:
            yield own()
        else:
            yield _fetch(source, read, scrolls, "cursor: rows within its block")
    yield control(source.choice(("COMMIT", "COMMIT", "ROLLBACK")), session=session)
    if held:
        yield beside()
        yield _fetch(source, read, scrolls, "cursor WITH HOLD: rows after its block")
        yield control("CLOSE c", session=session)


def _fetch(source: random.Random, read: Step, scrolls: bool, construct: str) -> Step:
    text = source.choice(_BOTH_WAYS if scrolls else _FORWARD)
    return Step("read", text, read.session, name=read.name, constructs=(construct,), ordered=True)
