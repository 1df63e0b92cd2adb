"""Random transactions: single statements, blocks with savepoints, and two sessions at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from tests.law.changing.changes import Changes
from tests.law.changing.schemas import Table
from tests.law.changing.steps import Step

#: A read of a random view, by a session; True: only of those that read no stream.
Read = Callable[[int, bool], Step]


class Transactions:
    """Draws transactions over tables, which read views in between."""

    def __init__(self, source: random.Random, tables: Sequence[Table], read: Read) -> None:
        self._source = source
        self._tables = tables
        self._changes = Changes(source, tables)
        self._read = read

    def draw(self) -> list[Step]:
        """One transaction, or several that belong together."""
        forms = (self._alone, self._block, self._interleaved, self._repeatable)
        return list(self._source.choices(forms, (9, 5, 2, 1))[0]())

    def _alone(self) -> Iterator[Step]:
        yield self._changes.draw(self._source.choice(self._tables))

    def _block(self) -> Iterator[Step]:
        yield _control("BEGIN")
        savepoints: list[str] = []
        for _ in range(self._source.randint(1, 5)):
            match self._source.randint(0, 9):
                case 0 | 1:
                    savepoints.append(f"p{len(savepoints)}")
                    yield _control(f"SAVEPOINT {savepoints[-1]}", "savepoint")
                case 2 | 3 if savepoints:
                    place = self._source.randrange(len(savepoints))
                    yield _control(f"ROLLBACK TO {savepoints[place]}", "ROLLBACK TO a savepoint")
                    del savepoints[place + 1 :]
                case 4 if savepoints:
                    yield _control(f"RELEASE {savepoints.pop()}", "RELEASE")
                case 5 | 6:
                    # A stream's rows are visible once they are committed, so that a block does not see its own.
                    yield _named(self._read(0, True), "read of own changes")
                case _:
                    yield self._changes.draw(self._source.choice(self._tables))
        yield self._end(0, "in a block")

    def _interleaved(self) -> Iterator[Step]:
        """Two blocks; a statement that waits for the other session ends its block (``running``)."""
        yield _control("BEGIN", session=0)
        level = self._source.choice(("", "", " ISOLATION LEVEL REPEATABLE READ"))
        yield _control(f"BEGIN{level}", "two sessions", session=1)
        for _ in range(self._source.randint(2, 5)):
            session = self._source.randint(0, 1)
            if self._source.random() < 0.3:
                yield self._read(session, True)
            else:
                yield self._changes.draw(self._source.choice(self._tables), session)
        yield from self._shuffled(self._end(0, "in two blocks"), self._end(1, "in two blocks"))

    def _repeatable(self) -> Iterator[Step]:
        """Reads of one moment, while another session commits."""
        yield _control("BEGIN ISOLATION LEVEL REPEATABLE READ", session=1)
        for _ in range(self._source.randint(1, 3)):
            yield _named(self._read(1, True), "read under REPEATABLE READ")
            yield self._changes.draw(self._source.choice(self._tables))
            yield _named(self._read(1, True), "read under REPEATABLE READ")
        yield _control("COMMIT", session=1)

    def _end(self, session: int, where: str) -> Step:
        word = "ROLLBACK" if self._source.random() < 0.25 else "COMMIT"
        return _control(word, f"{word} {where}", session)

    def _shuffled(self, *steps: Step) -> Iterable[Step]:
        return self._source.sample(steps, len(steps))


def _control(text: str, construct: str = "", session: int = 0) -> Step:
    return Step("block", text, session, constructs=(construct,) if construct else ())


def _named(step: Step, construct: str) -> Step:
    return Step(
        step.role, step.text, step.session, step.rows, step.judged, step.name, (*step.constructs, construct), step.of,
        step.ordered,
    )  # fmt: skip
