"""Values of sequences: durable, never given twice, and no part of any transaction.

Owns: the present value of every sequence's state, the file that says how far they may have been given, and what one
session remembers for currval and lastval. As PostgreSQL does it, the file runs ahead: a line with a value 32 further
is on the disk before the next value is given, so that a crash skips values and repeats none; an orderly end writes the
true ones. A line that a crash cut off was never relied on. Knows nothing of SQL or of rows.

https://www.postgresql.org/docs/15/sql-createsequence.html
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from catalog.catalog import Catalog
from catalog.errors import SqlError
from catalog.objects import Sequence
from executor.commit.files import Files, disk_error, replace_file

#: Values that a line of the file is ahead (SEQ_LOG_VALS).
AHEAD: Final = 32
#: Bytes after which the file is written anew, one line for each state.
_LONG: Final = 1 << 20

Numbers = npt.NDArray[np.int64]


class _State(Struct):
    """``last`` was given where ``called``; ``logged`` may have been, as far as the disk knows; ``left`` up to there."""

    last: int
    called: bool
    logged: int | None = None
    left: int = 0


class SequenceStore:
    """All sequences' values. Methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = Files()
        self._lock = threading.Lock()
        self._states: dict[int, _State] = {}
        for line in _lines(path):
            self._states[line[0]] = _State(line[1], line[2])
        self._file = path.open("ab", buffering=0)

    def keep(self, states: Iterable[int]) -> None:
        """At the start, when the catalog is known: forgets all others."""
        wanted = set(states)
        with self._lock:
            self._states = {key: value for key, value in self._states.items() if key in wanted}
            self._rewrite()

    def close(self) -> None:
        """Writes the true values."""
        with self._lock, contextlib.suppress(SqlError):  # the file's older lines hold as well
            for state in self._states.values():
                state.logged = None
            self._rewrite()
        self._file.close()

    def current(self, sequence: Sequence) -> tuple[int, int, bool]:
        """last_value, log_cnt and is_called."""
        with self._lock:
            state = self._state(sequence)
            return state.last, state.left, state.called

    def take(self, sequence: Sequence, count: int) -> Numbers:
        """The next values. Raises 2200H where there are not so many; those before the end are then lost."""
        with self._lock:
            state = self._state(sequence)
            pieces: list[Numbers] = []
            while count:
                first = state.last + sequence.increment if state.called else state.last
                if not sequence.minimum <= first <= sequence.maximum:
                    first = self._again(sequence)
                limit = sequence.maximum if sequence.increment > 0 else sequence.minimum
                number = min(count, (limit - first) // sequence.increment + 1)
                last = first + sequence.increment * (number - 1)
                self._log_ahead(sequence, state, last, number)
                state.last, state.called = last, True
                pieces.append(first + sequence.increment * np.arange(number, dtype=np.int64))
                count -= number
            return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.int64), *pieces])

    def set(self, sequence: Sequence, value: int, called: bool) -> None:
        """setval(). Raises 22003."""
        if not sequence.minimum <= value <= sequence.maximum:
            bounds = f"({sequence.minimum}..{sequence.maximum})"
            raise SqlError("22003", f'setval: value {value} is out of bounds for sequence "{sequence.name}" {bounds}')
        with self._lock:
            state = self._state(sequence)
            self._append(sequence.state, value, called)
            state.last, state.called, state.logged, state.left = value, called, None, 0

    def _state(self, sequence: Sequence) -> _State:
        return self._states.setdefault(sequence.state, _State(sequence.last, sequence.called))

    def _again(self, sequence: Sequence) -> int:
        rises = sequence.increment > 0
        if not sequence.cycle:
            word, bound = ("maximum", sequence.maximum) if rises else ("minimum", sequence.minimum)
            raise SqlError("2200H", f'nextval: reached {word} value of sequence "{sequence.name}" ({bound})')
        return sequence.minimum if rises else sequence.maximum

    def _log_ahead(self, sequence: Sequence, state: _State, last: int, count: int) -> None:
        """Has the disk know that values up to ``last`` may have been given."""
        covered = state.logged is not None and state.called and count <= state.left
        if covered:
            state.left -= count
            return
        room = (sequence.maximum if sequence.increment > 0 else sequence.minimum) - last
        further = min(AHEAD, room // sequence.increment)
        logged = last + sequence.increment * further
        self._append(sequence.state, logged, True)
        state.logged, state.left = logged, further

    def _append(self, state: int, value: int, called: bool) -> None:
        """A line that is on the disk when this returns. Raises 53100 and 58030."""
        if self._path.stat().st_size > _LONG:
            self._rewrite()
        try:
            self._file.write(_line(state, value, called))
            self._files.sync(self._file.fileno())
        except OSError as error:
            raise disk_error(error, "write the sequences' values") from error

    def _rewrite(self) -> None:
        lines = [
            _line(key, state.last if state.logged is None else state.logged, state.called)
            for key, state in self._states.items()
        ]
        try:
            replace_file(self._path, b"".join(lines))
            self._file.close()
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise disk_error(error, "write the sequences' values") from error


def _line(state: int, value: int, called: bool) -> bytes:
    return json.dumps([state, value, called]).encode() + b"\n"


def _lines(path: Path) -> Iterator[tuple[int, int, bool]]:
    """The file's lines; what a crash left of one is none."""
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n")[:-1]:
        with contextlib.suppress(ValueError):
            state, value, called = json.loads(line)
            yield int(state), int(value), bool(called)


class SessionSequences(Struct):
    """What one session took: currval and lastval."""

    store: SequenceStore
    _last: dict[int, int] = field(default_factory=dict)
    _newest: int | None = None

    def nextval(self, sequence: Sequence, count: int) -> Numbers:
        """The next ``count`` values."""
        values = self.store.take(sequence, count)
        if count:
            self._last[sequence.oid], self._newest = int(values[-1]), sequence.oid
        return values

    def currval(self, sequence: Sequence) -> int:
        """The value that this session took last. Raises 55000."""
        if sequence.oid not in self._last:
            raise SqlError("55000", f'currval of sequence "{sequence.name}" is not yet defined in this session')
        return self._last[sequence.oid]

    def lastval(self, catalog: Catalog) -> int:
        """The value that this session took last of any sequence. Raises 55000."""
        if self._newest is None or self._newest not in catalog.objects:
            raise SqlError("55000", "lastval is not yet defined in this session")
        return self._last[self._newest]

    def setval(self, sequence: Sequence, value: int, called: bool = True) -> int:
        """Sets the value; the next one is given after it, or is it where not ``called``."""
        self.store.set(sequence, value, called)
        if called:
            self._last[sequence.oid] = value
        return value

    def discard(self) -> None:
        """DISCARD SEQUENCES."""
        self._last.clear()
        self._newest = None
