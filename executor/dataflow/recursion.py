"""The rows of a recursion (``planner.incremental.dataflow.recursion``), with their ranks.

Owns: the rounds through which a change goes, and what is kept to know which rows go with others: of UNION ALL the round
of each row, of UNION its rank and how many derivations it has. Used by one thread at a time; what is kept is of no use
after an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from executor.dataflow.rows.hashing import NO_HASHES, hashes_of
from executor.dataflow.rows.multiset import Multiset
from executor.dataflow.rows.weighted_rows import (
    WEIGHT,
    Consolidate,
    Inconsistent,
    Integers,
    negated,
    same_bits,
    weighted,
    weights_of,
)
from executor.small import table_of
from planner.algebra.nodes import Relation
from planner.cancellation import require_wanted
from planner.incremental.dataflow.graph import Recursive, names_of
from planner.incremental.names import stored_name

#: What changes of the step's rows by a change of the recursion's rows with their ranks, or of all else where that is
#: None: the rows, the ranks of those that they come from, and weights.
Step = Callable[[pa.Table | None], pa.Table]
#: Evaluates a relation over candidates.
Choose = Callable[[Relation, pa.Table], pa.Table]
#: Raises an error where what is kept, and as many bytes more, takes too much memory.
RequireRoom = Callable[[int], None]

#: Counts of derivations: of all, and of those from rows of lower ranks.
_ALL: Final = "__all"
_LOWER: Final = "__lower"
#: Rows of which the derivations are found at a time.
_PORTION: Final = 1 << 16
#: The rank of what the base's rows come from, and of rows that are not there.
_NONE: Final = -1


class Surroundings(Struct, frozen=True):
    """What the rounds of a recursion use: ``alike`` finds equal rows, ``merge`` consolidates rows of types that Arrow
    does not group, ``require_room`` ends what takes too much memory."""

    alike: Choose
    merge: Consolidate
    require_room: RequireRoom


class Rounds:
    """UNION ALL: rows of different rounds are different rows."""

    def __init__(self, node: Recursive, rows: pa.Schema, around: Surroundings) -> None:
        """``rows``: the types of the rows with their ranks."""
        self.rows = _empty(rows, names_of(node.ranked.columns), around.merge)
        self._require_room = around.require_room
        self._rank = stored_name(node.rank)
        self._names = [*rows.names, WEIGHT]

    def fill(self, rows: pa.Table, base: pa.Table, derived: Step) -> pa.Table:
        """Takes all rows with their ranks, and returns them with weights."""
        found = self.rows.consolidated(weighted(rows.rename_columns(self._names[:-1]), 1))
        self.rows.add(found)
        return found

    def change(self, base: pa.Table, step: Step) -> pa.Table:
        """Follows a change of the base's rows, and of what the step reads beside the recursion's. Returns how the rows
        change, with weights."""
        found = pa.concat_tables([_of_base(base, self._names), step(None).rename_columns(self._names)])
        changed = [found.slice(0, 0)]
        waiting: dict[int, list[pa.Table]] = {}
        while found.num_rows or waiting:
            self._await(found, waiting)
            delta = self.rows.consolidated(pa.concat_tables(waiting.pop(min(waiting))))
            found = delta
            if delta.num_rows:
                require_wanted()
                self._require_room(0)
                self.rows.change(delta)
                changed.append(delta)
                found = step(delta).rename_columns(self._names)
        return pa.concat_tables(changed).drop_columns([self._rank])

    def _await(self, rows: pa.Table, waiting: dict[int, list[pa.Table]]) -> None:
        """Rows that come from those of a round are of the next one."""
        ranks = rows.column(self._rank).to_numpy() + 1
        rows = _with(rows, self._rank, ranks)
        for rank in np.unique(ranks).tolist():
            waiting.setdefault(rank, []).append(rows.filter(pa.array(ranks == rank)))


class SupportedRows:
    """UNION: each row rests on one of a lower rank, or on the base."""

    def __init__(self, node: Recursive, rows: pa.Schema, around: Surroundings) -> None:
        """``rows``: the types of the rows with their ranks."""
        counts = [pa.field(name, pa.int64()) for name in (_ALL, _LOWER)]
        self.rows = _empty(pa.schema([*rows, *counts]), node.key, around.merge)
        self._node = node
        self._around = around
        self._rank = stored_name(node.rank)
        self._columns = names_of(node.shown)
        self._names = [*rows.names, WEIGHT]
        self._outside = pa.schema([*list(rows)[:-1], counts[0]])
        self._top = _NONE

    def fill(self, rows: pa.Table, base: pa.Table, derived: Step) -> pa.Table:
        """Takes all rows, of which those of the ``base``, with weights, are some, and ``derived`` tells what comes from
        them. Returns them with their ranks and weights."""
        rows = rows.rename_columns(self._columns)
        starts, times = self._places(rows, base.rename_columns([*self._columns, WEIGHT])), weights_of(base)
        sources, targets, weights = self._derivations(rows, derived)
        ranks = levels(rows.num_rows, np.unique(starts), sources, targets)
        if rows.num_rows and ranks.min() < 0:
            raise Inconsistent
        self._top = int(ranks.max(initial=_NONE))
        every = np.zeros(rows.num_rows, np.int64)
        np.add.at(every, starts, times)
        lower = every.copy()
        np.add.at(every, targets, weights)
        rises = ranks[sources] < ranks[targets]
        np.add.at(lower, targets[rises], weights[rises])
        ranked = rows.append_column(self._rank, pa.array(ranks))
        self.rows.add(weighted(ranked.append_column(_ALL, pa.array(every)).append_column(_LOWER, pa.array(lower)), 1))
        return weighted(ranked, 1)

    def _derivations(self, rows: pa.Table, derived: Step) -> tuple[Integers, Integers, Integers]:
        """The places of rows, of the rows that come from them, and how often."""
        ranked = rows.append_column(self._rank, pa.array(np.arange(rows.num_rows)))
        numbered = table_of(weighted(ranked, 1))
        parts, size = [np.empty((3, 0), np.int64)], 0
        for start in range(0, rows.num_rows, _PORTION):
            found = derived(numbered.slice(start, _PORTION)).rename_columns(self._names)
            parts.append(np.stack([_numbers(found, self._rank), self._places(rows, found), weights_of(found)]))
            size += parts[-1].nbytes
            self._around.require_room(2 * size)
        sources, targets, weights = np.concatenate(parts, axis=1)
        return sources, targets, weights

    def _places(self, rows: pa.Table, found: pa.Table) -> Integers:
        """Where rows are among all rows. Raises Inconsistent."""
        groups, first = self._groups(pa.concat_tables([rows, found.select(self._columns)]))
        places = first[groups[rows.num_rows :]]
        if first.size != rows.num_rows or (places.size and places.max() >= rows.num_rows):
            raise Inconsistent
        return places

    def change(self, base: pa.Table, step: Step) -> pa.Table:
        """Follows a change of the base's rows, and of what the step reads beside the recursion's. Returns how the rows
        change, with weights."""
        found = pa.concat_tables([_of_base(base, self._names), step(None).rename_columns(self._names)])
        changed = [found.slice(0, 0)]
        #: Rows that are not there, and have derivations.
        outside = _empty(self._outside, (), self._around.merge)
        while (gone := negated(self._counted(found, outside))).num_rows:
            require_wanted()
            self._around.require_room(0)
            changed.append(gone)
            found = step(gone).rename_columns(self._names)
        while (come := table_of(outside.take((), NO_HASHES))).num_rows:
            require_wanted()
            self._around.require_room(0)
            changed.append(self._added(come))
            found = step(changed[-1]).rename_columns(self._names)
            if self._counted(found, outside).num_rows:
                raise Inconsistent
        return pa.concat_tables(changed).drop_columns([self._rank])

    def _added(self, come: pa.Table) -> pa.Table:
        """Adds rows above all others. Returns them with their rank, and weights."""
        self._top += 1
        ranked = come.select(self._columns).append_column(
            self._rank, pa.array(np.full(come.num_rows, self._top, np.int64))
        )
        counts = come.column(_ALL)
        self.rows.add(weighted(ranked.append_column(_ALL, counts).append_column(_LOWER, counts), 1))
        return weighted(ranked, 1)

    def _counted(self, found: pa.Table, outside: Multiset) -> pa.Table:
        """Counts derivations that come and go. Returns the rows that have lost all of lower ranks, with their ranks and
        weights, which go: they are among those ``outside`` then, while they have others."""
        hashes = hashes_of(found, self._node.key)
        old, other = (table_of(kept.take(self._node.key, hashes)) for kept in (self.rows, outside))
        rows = pa.concat_tables([part.select(self._columns) for part in (old, other, found)])
        groups, first = self._groups(rows)
        ends = np.cumsum([old.num_rows, other.num_rows])
        inside, beyond, new = np.split(groups, ends)
        ranks, every, lower = (np.full(first.size, value, np.int64) for value in (_NONE, 0, 0))
        ranks[inside], every[inside], lower[inside] = (_numbers(old, name) for name in (self._rank, _ALL, _LOWER))
        every[beyond] = _numbers(other, _ALL)
        weights, counts = weights_of(found), _numbers(found, self._rank) < ranks[new]
        np.add.at(every, new, weights)
        np.add.at(lower, new[counts], weights[counts])
        if first.size and (every.min() < 0 or lower.min() < 0):
            raise Inconsistent
        rows = rows.take(pa.array(first))
        ranked = rows.append_column(self._rank, pa.array(ranks))
        stay, go = (ranks > _NONE) & (lower > 0), (ranks > _NONE) & (lower == 0)
        kept = ranked.append_column(_ALL, pa.array(every)).append_column(_LOWER, pa.array(lower))
        self.rows.add(weighted(kept.filter(pa.array(stay)), 1))
        left = ~stay & (every > 0)
        outside.add(weighted(rows.append_column(_ALL, pa.array(every)).filter(pa.array(left)), 1))
        return weighted(ranked.filter(pa.array(go)), 1)

    def _groups(self, rows: pa.Table) -> tuple[Integers, Integers]:
        """The number of the group of equal rows of each row, and where the first row of each group is."""
        if self._node.are_exact:
            _, first, groups = np.unique(hashes_of(rows, self._columns), return_index=True, return_inverse=True)
            if _are_alike(rows, first[groups]):
                return groups, first
        places = pa.array(np.arange(rows.num_rows))
        names = [stored_name(column) for column in (self._node.place, self._node.first)]
        found = self._around.alike(self._node.alike, rows.append_column(names[0], places))
        firsts = np.empty(rows.num_rows, np.int64)
        firsts[_numbers(found, names[0])] = _numbers(found, names[1])
        first, groups = np.unique(firsts, return_inverse=True)
        return groups, first


def levels(count: int, starts: Integers, sources: Integers, targets: Integers) -> Integers:
    """How many steps lead from one of the ``starts`` to each of the places of a graph at least, -1 where none do."""
    order = np.argsort(sources, kind="stable")
    ends, begins = targets[order], np.searchsorted(sources[order], np.arange(count + 1))
    found, level = np.full(count, _NONE, np.int64), 0
    while starts.size:
        found[starts] = level
        first, counts = begins[starts], begins[starts + 1] - begins[starts]
        steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        reached = ends[np.repeat(first, counts) + steps]
        starts, level = np.unique(reached[found[reached] < 0]), level + 1
    return found


def _are_alike(rows: pa.Table, others: Integers) -> bool:
    """Whether rows are equal to those at other places."""
    places = np.flatnonzero(others != np.arange(others.size))
    if not places.size:
        return True
    one, other = rows.take(pa.array(places)), rows.take(pa.array(others[places]))
    return all(bool(same_bits(one.column(name), other.column(name)).all()) for name in rows.column_names)


def _of_base(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Rows of the base with weights as rows of a step."""
    ranks = pa.array(np.full(rows.num_rows, _NONE, np.int64))
    return rows.add_column(rows.num_columns - 1, names[-2], ranks).rename_columns([*names])


def _with(rows: pa.Table, name: str, values: Integers) -> pa.Table:
    """Rows with other values in a column."""
    return rows.set_column(rows.schema.get_field_index(name), name, pa.array(values))


def _numbers(rows: pa.Table, name: str) -> Integers:
    found: Integers = rows.column(name).to_numpy()
    return found


def _empty(rows: pa.Schema, key: tuple[str, ...], merge: Consolidate) -> Multiset:
    """No rows, which will be found by a key."""
    return Multiset(weighted(rows.empty_table(), 1), (key,) if key else (), merge)
