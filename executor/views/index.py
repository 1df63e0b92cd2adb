"""The key index of one continuous view's result, with a patch for what arrived since.

Owns: the index of one result of the view, in which the rows of just the groups that changed replace those of before.
When the changed groups are more than a share of the result, the whole result is indexed again. When that is done, and
for which version of the view, is ``executor.key_access.view_indexes``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from executor.traces.bookmark import Bookmark
from executor.traces.budget import Held
from executor.traces.keyed_rows import Columns, KeyedRows, keys_in
from executor.traces.state import is_few
from executor.views.runtime import ViewRuntime
from planner.incremental.names import stored_name

#: Evaluates a view's final relation over states.
Final = Callable[[Mapping[str, pa.Table]], pa.Table]


class ViewIndex:
    """Keeps a view's result by key up to date. Called with the view's lock held."""

    def __init__(self, runtime: ViewRuntime, key: Columns, held: Held) -> None:
        """``key``: names of the view's columns that are its program's point key; ``held`` counts the index's bytes."""
        self._runtime = runtime
        self.held = held
        self._key = key
        self._program = runtime.program  # whose final relation was indexed
        (self._state,) = runtime.states.values()
        self._state_key = tuple(map(stored_name, self._state.state.key))
        self._seen: Bookmark | None = None
        self._current: KeyedRows | None = None

    def is_of(self, runtime: ViewRuntime) -> bool:
        """Whether it is an index of this view, and not of one that was dropped."""
        return self._runtime is runtime

    def refresh(self, final: Final, lsn: int) -> KeyedRows:
        """The index at the LSN that the view has reached."""
        runs = None if self._seen is None else self._state.delta(self._seen.after, lsn)
        current, self._current = self._current, None  # what fails below leaves no index behind
        is_other = self._program is not self._runtime.program
        if current is None or runs is None or is_other or (runs and not is_few(current, runs)):
            current = self._index(final)
        elif runs:
            self._patch(current, runs, final, lsn)
        self._seen = self._state.bookmark(lsn)
        self._current = current
        return current

    def _index(self, final: Final) -> KeyedRows:
        self._program = self._runtime.program
        return KeyedRows(final(self._runtime.snapshots()), [self._key])

    def _patch(self, current: KeyedRows, runs: Sequence[pa.Table], final: Final, lsn: int) -> None:
        """Replaces the groups of some runs by what they are now."""
        keys = list(dict.fromkeys(key for run in runs for key in keys_in(run, self._state_key)))
        rows = self._state.lookup(keys, lsn)
        patch = final({**self._runtime.snapshots_of_statics(), f"s_{self._state.state.name}": rows})
        current.replace(self._key, keys, patch)
