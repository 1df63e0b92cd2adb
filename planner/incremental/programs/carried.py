"""Another plan of a view over the traces that the view has.

A view whose options change gets another final relation, and its rows leave other states, while its states go on as they
are. That is right where the new plan reads no more than they hold::

    each trace of the new plan     has an equal one, but for when rows expire, among the old plan's
    each state of the new plan     loses its rows by the same rule as the old one, and not later

The traces keep their names, columns and statements, so that nothing that fills or stores them needs to know. A trace
that the new plan does not read is filled as before. A program that has such a trace has no point key, which is the
group key of the only state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from planner.algebra.nodes import Column, Snapshot
from planner.algebra.walk import transform
from planner.incremental.names import stored_name
from planner.incremental.programs.canonical import Named, Origin, contents
from planner.incremental.programs.program import Expiry, Mark, Program


class NotCarried(Exception):
    """The traces of a view lack what another plan reads; the argument says what, in words."""


_LACKS = "its states do not hold what the view would show"
_OLDER = "older rows have left its states"


def carried(old: Program, new: Program, origin: Origin) -> Program:
    """The new program over the traces of the old one. Raises NotCarried."""
    return _Carrying(old, new, origin).program()


class _Carrying:
    """One program's."""

    def __init__(self, old: Program, new: Program, origin: Origin) -> None:
        self._old, self._new = old, new
        self._held, self._wanted = contents(old, origin), contents(new, origin)
        self._old_expiries = {item.state: item for item in old.expiries}
        self._new_expiries = {item.state: item for item in new.expiries}
        #: The old traces by the new ones.
        names = [*(item.name for item in new.statics), *(item.name for item in new.states)]
        self._found = {name: self._same(name) for name in names}

    def program(self) -> Program:
        """The program."""
        new, used = self._new, set(self._found.values())
        if len(used) < len(self._found):
            raise NotCarried(_LACKS)  # two states would be one, whose rows expire by one rule
        unused = (item for item in self._old.expiries if item.state not in used)
        return replace(
            self._old,
            final=transform(new.final, self._reading),
            columns=new.columns,
            point_key=new.point_key if len(self._old.states) == len(new.states) else (),
            expiries=(*map(self._expiry, new.expiries), *unused),
            live=new.live,
        )

    def _same(self, name: str) -> str:
        """The old trace that holds all that a new one does."""
        wanted = self._wanted[name].name
        equal = [old for old, held in self._held.items() if held.name == wanted]
        lasting = [old for old in equal if self._lasts(old, name)]
        if not lasting:
            raise NotCarried(_OLDER if equal else _LACKS)
        expires = name in self._new_expiries
        return min(lasting, key=lambda old: (old in self._old_expiries) != expires)

    def _lasts(self, old: str, new: str) -> bool:
        """Whether rows leave an old state no earlier than a new one."""
        before, after = self._old_expiries.get(old), self._new_expiries.get(new)
        if before is None:
            return True
        if after is None or any(one.age < other.age for one, other in zip(before.marks, after.marks, strict=False)):
            return False
        if before.age < after.age:
            return False
        return _rule(before, self._held) == _rule(after, self._wanted)

    def _column(self, trace: str, column: Column) -> Column:
        """An old trace's column by that of the new one."""
        place = self._wanted[trace].columns[column].id
        old = self._held[self._found[trace]].columns
        return next(item for item, held in old.items() if held.id == place)

    def _reading(self, node: Any) -> Any:
        if not isinstance(node, Snapshot):
            return node
        columns = {stored_name(item): item for item in self._wanted[node.trace].columns}
        sources = (stored_name(self._column(node.trace, columns[source])) for source in node.sources)
        return Snapshot(self._found[node.trace], node.columns, tuple(sources))

    def _expiry(self, item: Expiry) -> Expiry:
        column = self._column(item.state, item.column)
        state = self._found[item.state]
        if item.by_clock:
            return replace(item, state=state, column=column, latest=column)
        return replace(
            item,
            state=state,
            column=column,
            watermark=self._found[item.watermark],
            latest=self._column(item.watermark, item.latest),
            others=tuple(self._column(item.state, other) for other in item.others),
            also=tuple(
                Mark(self._found[mark.watermark], self._column(mark.watermark, mark.latest), mark.age)
                for mark in item.also
            ),
        )


def _rule(item: Expiry, held: Mapping[str, Named]) -> object:
    """By what a row expires, but for its age."""
    columns = held[item.state].columns
    others = tuple(columns[column].id for column in item.others)
    if item.by_clock:
        return columns[item.column].id, (), item.gap, others
    marks = tuple((held[mark.watermark].name, held[mark.watermark].columns[mark.latest].id) for mark in item.marks)
    return columns[item.column].id, marks, item.gap, others
