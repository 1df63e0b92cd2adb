"""Values of sequences: durable, never given out twice, and independent of transactions.

Owns: the present value of every sequence's state, the file that says how far they may have been given, and what one
session remembers for currval and lastval. As PostgreSQL does it, the file runs ahead: a line with a value 32 further
is on the disk before the next value is given, so that a crash skips values and repeats none; an orderly end writes the
true ones. A line that a crash cut off was never relied on; that no other is missing, the control file says, and where
one is, no value is given of a sequence until it is set. Knows nothing of SQL or of rows.

    sequences    a line each (executor/commit/checked_lines): [how often the file was written anew, how many lines it
                 had then],
                 and then [state, value, is_called] where a value may have been given; [state] where none is known

https://www.postgresql.org/docs/15/sql-createsequence.html
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from catalog.catalog import Catalog
from catalog.objects import Sequence
from catalog.values.errors import SqlError
from executor.commit.checked_lines import End, Lines, add_lines, read_lines
from executor.commit.control import Control, Mark
from executor.commit.files import Files, disk_error, replace_file

#: How many values a line of the file is ahead (SEQ_LOG_VALS).
AHEAD: Final = 32
#: The size in bytes from which on the file is rewritten with one line per state.
_LONG: Final = 1 << 20

_LOGGER: Final = logging.getLogger(__name__)

Numbers = npt.NDArray[np.int64]


class _State(Struct):
    """``last`` was given out if ``called``; values up to ``logged`` may have been, according to the disk; ``left`` are
    the values up to there."""

    last: int
    called: bool
    logged: int | None = None
    left: int = 0


class SequenceStore:
    """The values of all sequences. Methods may be called from any thread."""

    def __init__(self, path: Path, control: Control | None = None) -> None:
        """Reads the file; ``control`` knows how long it was, and is told of its new length."""
        self._path = path
        self._control = control
        self._files = Files()
        self._lock = threading.Lock()
        self._states: dict[int, _State] = {}
        #: States whose value is unknown.
        self._lost: set[int] = set()
        found = read_lines(path.read_bytes() if path.exists() else b"")
        confirmed = None if control is None else control.sequences.found
        #: What damage the file has, until it is rewritten.
        self._damage = _damage_of(path, found, confirmed or Mark())
        self._generation = max(confirmed.file if confirmed is not None else 0, _generation_of(found))
        for state, *value in found.documents if found.is_plain else found.documents[1:]:
            if value:
                self._states[state] = _State(*value)
                self._lost.discard(state)
            else:
                self._lost.add(state)
        self._end = found.end
        if self._damage is None and found.documents:
            os.truncate(path, found.end.length)  # the incomplete last line of a crash
        self._file = path.open("ab", buffering=0)
        if found.is_plain and self._damage is None:
            self._rewrite()

    def keep(self, states: Iterable[int]) -> None:
        """At start, once the catalog is known: forgets the states of all other sequences. A damaged file stays
        unchanged until a value is given out or set."""
        wanted = set(states)
        with self._lock:
            self._lost &= wanted
            if self._damage is not None:
                _LOGGER.error("%s: nextval of %d sequences fails until they are set", self._damage, len(wanted))
                self._states, self._lost = {}, wanted
                return
            self._states = {key: value for key, value in self._states.items() if key in wanted}
            self._rewrite()

    def close(self) -> None:
        """Writes the current values at an orderly end."""
        with self._lock, contextlib.suppress(SqlError):  # the file's older lines are valid as well
            for state in self._states.values():
                state.logged = None
            if self._damage is None:
                self._rewrite()
        self._file.close()

    def current(self, sequence: Sequence) -> tuple[int, int, bool]:
        """last_value, log_cnt and is_called."""
        with self._lock:
            state = self._state(sequence)
            return state.last, state.left, state.called

    def last(self, sequence: Sequence) -> int | None:
        """The last value given out; None if there is none or it is unknown."""
        with self._lock:
            if sequence.state in self._lost:
                return None
            state = self._state(sequence)
            return state.last if state.called else None

    def take(self, sequence: Sequence, count: int) -> Numbers:
        """The next values. Raises 2200H if there are fewer before the sequence's limit; these are then lost."""
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
            self._append(sequence.state, value, called)
            self._lost.discard(sequence.state)
            state = self._state(sequence)
            state.last, state.called, state.logged, state.left = value, called, None, 0

    def _state(self, sequence: Sequence) -> _State:
        if sequence.state in self._lost:
            hint = f"Restore the file, or set the value: SELECT setval('{sequence.name}', ...)."
            why = self._damage or f'"{self._path.name}" was damaged'
            raise SqlError("XX001", f'the value of sequence "{sequence.name}" is not known: {why}', hint=hint)
        return self._states.setdefault(sequence.state, _State(sequence.last, sequence.called))

    def _again(self, sequence: Sequence) -> int:
        rises = sequence.increment > 0
        if not sequence.cycle:
            word, bound = ("maximum", sequence.maximum) if rises else ("minimum", sequence.minimum)
            raise SqlError("2200H", f'nextval: reached {word} value of sequence "{sequence.name}" ({bound})')
        return sequence.minimum if rises else sequence.maximum

    def _log_ahead(self, sequence: Sequence, state: _State, last: int, count: int) -> None:
        """Writes to disk that values up to ``last`` may have been given out."""
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
        """Appends a line, which is on disk when this returns. Raises 53100 and 58030."""
        if self._damage is not None or not self._generation or self._end.length > _LONG:
            self._rewrite()
        data, (end,) = add_lines(self._end, [(state, value, called)])
        try:
            self._file.write(data)
            self._files.sync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):  # the next line must not follow an incomplete one
                os.truncate(self._path, self._end.length)
            raise disk_error(error, "write the sequences' values") from error
        self._confirm(end)

    def _rewrite(self) -> None:
        values = [
            (key, state.last if state.logged is None else state.logged, state.called)
            for key, state in self._states.items()
        ]
        generation = self._generation + 1
        lines = [*values, *((state,) for state in sorted(self._lost))]
        data, ends = add_lines(End(), [(generation, len(lines)), *lines])
        try:
            if self._damage is not None and self._path.exists():
                os.replace(self._path, self._path.with_name(self._path.name + ".damaged"))
            replace_file(self._path, data)
            self._file.close()
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise disk_error(error, "write the sequences' values") from error
        self._damage, self._generation = None, generation
        self._confirm(ends[-1])

    def _confirm(self, end: End) -> None:
        self._end = end
        if self._control is not None:
            self._control.sequences.put(self._generation, end.length, end.check)


def _generation_of(found: Lines) -> int:
    return 0 if found.is_plain or not found.documents else int(found.documents[0][0])


def _damage_of(path: Path, found: Lines, confirmed: Mark) -> str | None:
    """The damage of a file, or ''; ``confirmed`` has the generation, length and checksum that the file should have."""
    name = path.name
    if not path.exists():
        return f'"{name}" is missing' if confirmed.file else None
    generation = _generation_of(found)
    if generation < confirmed.file:
        return f'"{name}" is an older copy' if generation else f'"{name}" is damaged'
    is_whole = found.is_plain or not path.stat().st_size
    if not is_whole and found.documents:
        is_whole = len(found.documents) > found.documents[0][1]  # the lines with which the file was rewritten
    if not is_whole or (generation == confirmed.file and not found.confirms(End(confirmed.end, confirmed.check))):
        return f'"{name}" is damaged: the line at offset {found.end.length} is damaged or missing'
    return None


class SessionSequences(Struct):
    """What one session has taken, for currval and lastval."""

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
        """The value that this session took last of a sequence. Raises 55000."""
        if sequence.oid not in self._last:
            raise SqlError("55000", f'currval of sequence "{sequence.name}" is not yet defined in this session')
        return self._last[sequence.oid]

    def lastval(self, catalog: Catalog) -> int:
        """The value that this session took last of any sequence. Raises 55000."""
        if self._newest is None or self._newest not in catalog.objects:
            raise SqlError("55000", "lastval is not yet defined in this session")
        return self._last[self._newest]

    def setval(self, sequence: Sequence, value: int, called: bool = True) -> int:
        """Sets the value. The next value is the one after it or, if not ``called``, the value itself."""
        self.store.set(sequence, value, called)
        if called:
            self._last[sequence.oid] = value
        return value

    def discard(self) -> None:
        """DISCARD SEQUENCES: forgets the session's values."""
        self._last.clear()
        self._newest = None
