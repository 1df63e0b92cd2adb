"""Random transactions: single statements, blocks with savepoints, and several sessions at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from tests.law.changing.changes import Changes
from tests.law.changing.cursors import reads_by_cursor
from tests.law.changing.schemas import Table
from tests.law.changing.steps import SESSIONS, Step, control

#: A read of a random view, by a session; True: only of those that read no stream.
Read = Callable[[int, bool], Step]
#: A read in order of a random view, by a session; None if no view has an order.
OrderedRead = Callable[[int], Step | None]

_LEVELS: Final = ("", "", "", " ISOLATION LEVEL REPEATABLE READ", " ISOLATION LEVEL REPEATABLE READ")


class Transactions:
    """Draws transactions over tables, which read views in between."""

    def __init__(
        self, source: random.Random, tables: Sequence[Table], read: Read, in_order: OrderedRead, snapshots: bool
    ) -> None:
        """``snapshots``: whether transactions that write may read one moment."""
        self._source = source
        self._tables = tables
        self._changes = Changes(source, tables)
        self._read, self._in_order, self._snapshots = read, in_order, snapshots

    def draw(self) -> list[Step]:
        """One transaction, or several that belong together."""
        forms = (self._alone, self._block, self._several, self._repeatable, self._by_cursor)
        return list(self._source.choices(forms, (9, 5, 3, 1, 1))[0]())

    def _alone(self) -> Iterator[Step]:
        """Statements that are a transaction each. A change costs less than a read, and many change no view."""
        for _ in range(self._source.choice((1, 2, 2, 3))):
            yield self._changes.draw(self._source.choice(self._tables))

    def _block(self) -> Iterator[Step]:
        block = _Block(self._source, 0, "in a block", is_alone=True)
        yield block.begins("")
        for _ in range(self._source.randint(1, 5)):
            yield self._within(block, "read of own changes")
        yield block.ends()

    def _within(self, block: _Block, read: str) -> Step:
        """A statement of a block. It reads views of streams only while it has no rows of a stream of its own: those are
        visible once they are committed."""
        step = block.savepoint()
        if step is not None:
            return step
        if self._source.random() < 0.35:
            found = self._read(block.session, block.has_rows_of_streams)
            return replace(found, constructs=(*found.constructs, read))
        return self._change(block)

    def _change(self, block: _Block) -> Step:
        table = self._source.choice(self._tables)
        block.has_rows_of_streams |= table.is_stream
        found = self._changes.draw(table, block.session)
        return self._change(block) if "TRUNCATE" in found.constructs and not block.is_alone else found

    def _several(self) -> Iterator[Step]:
        """Blocks of two or three sessions, which begin and end in any order, beside statements that stand alone; a
        statement that waits for another session ends its block (``running``)."""
        number = self._source.choice((2, 2, SESSIONS))
        named = f"{'two' if number == 2 else 'three'} sessions"
        blocks: dict[int, _Block] = {}
        for _ in range(self._source.randint(4, 10)):
            session = self._source.randrange(number)
            block = blocks.get(session)
            if block is None and self._source.random() < 0.25:
                step = self._beside_snapshots(session)
                yield replace(step, constructs=(*step.constructs, f"{named}: a statement beside blocks"))
            elif block is None:
                blocks[session] = block = _Block(self._source, session, f"of {named}")
                level = self._source.choice(_LEVELS) if self._snapshots else ""
                yield replace(block.begins(level), constructs=(named,))
                block.read = f"{named}: read {'under REPEATABLE READ' if level else 'in a block'}"
            elif self._source.random() < 0.15:
                yield blocks.pop(session).ends()
            else:
                yield self._within(block, block.read)
        yield from self._shuffled(*(block.ends() for block in blocks.values()))

    def _repeatable(self) -> Iterator[Step]:
        """Reads of one moment, while another session commits."""
        yield control("BEGIN ISOLATION LEVEL REPEATABLE READ", session=1)
        for _ in range(self._source.randint(1, 3)):
            yield self._of_a_moment()
            yield self._beside_snapshots(0)
            yield self._of_a_moment()
        yield control("COMMIT", session=1)

    def _by_cursor(self) -> Iterator[Step]:
        """Reads of one moment by a cursor; its own session changes tables alone."""
        read, tables = self._in_order(1), [table for table in self._tables if not table.is_stream]
        if read is None:
            return self._repeatable()
        own = partial(self._beside_snapshots, 1, tables)
        return reads_by_cursor(self._source, read, partial(self._beside_snapshots, 0), own)

    def _beside_snapshots(self, session: int, tables: Sequence[Table] = ()) -> Step:
        """A change while others may read by older snapshots, to which PostgreSQL shows a truncated table as empty
        (manual, section 13.6)."""
        found = self._changes.draw(self._source.choice(tables or self._tables), session)
        return self._beside_snapshots(session, tables) if "TRUNCATE" in found.constructs else found

    def _of_a_moment(self) -> Step:
        found = self._read(1, False)
        return replace(found, constructs=(*found.constructs, "read under REPEATABLE READ"))

    def _shuffled(self, *steps: Step) -> Iterable[Step]:
        return self._source.sample(steps, len(steps))


class _Block:
    """A block of a session and its savepoints."""

    def __init__(self, source: random.Random, session: int, where: str, is_alone: bool = False) -> None:
        self._source, self.session, self._where, self.is_alone = source, session, where, is_alone
        self._savepoints: list[str] = []
        self.has_rows_of_streams = False
        self.read = ""

    def begins(self, level: str) -> Step:
        """Its BEGIN."""
        return control(f"BEGIN{level}", session=self.session)

    def savepoint(self) -> Step | None:
        """A statement about savepoints, or None for another one."""
        chance, known = self._source.random(), self._savepoints
        if chance < 0.2:
            known.append(f"p{len(known)}")
            return control(f"SAVEPOINT {known[-1]}", "savepoint", self.session)
        if chance < 0.38 and known:
            place = self._source.randrange(len(known))
            del known[place + 1 :]
            return control(f"ROLLBACK TO {known[place]}", "ROLLBACK TO a savepoint", self.session)
        if chance < 0.45 and known:
            return control(f"RELEASE {known.pop()}", "RELEASE", self.session)
        return None

    def ends(self) -> Step:
        """COMMIT or ROLLBACK."""
        word = "ROLLBACK" if self._source.random() < 0.25 else "COMMIT"
        return control(word, f"{word} {self._where}", self.session)
