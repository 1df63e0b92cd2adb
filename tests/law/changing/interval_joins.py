"""Random views of two to four streams whose times bound each other: late rows are left out, and others leave by
themselves. Outer joins have the rows without partners, too, and EXISTS each row with partners once. A table may be
joined to a stream first, or to the joined rows.

The judge reads the rows that are in time of each stream whose watermark lets the other one's rows leave
(``schemas`` has it tell which these are).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tests.law.changing.relations import From, Named, Select, named, under
from tests.law.changing.scalars import Ref, Scalars, Scope
from tests.law.changing.schemas import Table
from tests.law.changing.views import Queries

#: Bounds on both sides, between the streams x and y, with minutes m and n.
_BOTH: Final = (
    "y.at BETWEEN x.at - interval '{m} min' AND x.at + interval '{n} min'",
    "y.at >= x.at AND y.at < x.at + interval '{n} min'",
    "y.at - x.at BETWEEN interval '-{m} min' AND interval '{n} min'",
    "x.at > y.at - interval '{n} min' AND y.at + interval '{m} min' >= x.at",
    "x.at = y.at",
)
#: A bound on how long rows of x meet those of y.
_ONE: Final = ("y.at <= x.at + interval '{n} min'", "y.at - interval '{n} min' < x.at")
#: By kind, the streams whose watermarks say which rows have no partner: the right one's of those of the left one.
_KINDS: Final = {
    "JOIN": (),
    "LEFT JOIN": (0,),
    "RIGHT JOIN": (1,),
    "FULL JOIN": (0, 1),
    "NOT EXISTS": (0,),
    "EXISTS": (0,),
}
#: Those whose left stream may meet a table first.
_AFTER_TABLES: Final = ("JOIN", "LEFT JOIN", "NOT EXISTS", "EXISTS")
#: Where the joined rows stand in the view's text, and each stream in theirs.
_ROWS: Final = "<rows>"
_STREAMS: Final = ("<x>", "<y>", "<w>", "<z>")


class IntervalView(Struct, frozen=True):
    """A view's query in Millstream, and its equal in PostgreSQL."""

    query: Select
    judged: str


class IntervalJoins:
    """Draws such views; ``queries`` collects their constructs."""

    def __init__(self, source: random.Random, queries: Queries) -> None:
        self._source, self._queries = source, queries
        self._scalars = Scalars(source)

    def draw(self, streams: Sequence[Table], tables: Sequence[Named]) -> IntervalView | None:
        """A view of two of the streams, which may be one and the same; None where neither has a watermark."""
        drawn = [self._source.choice(streams) for _ in _STREAMS]
        left, right, *others = drawn
        by = {stream.name for stream in (left, right) if stream.delay is not None}
        if not by:
            return None
        form, place = self._source.choice(_BOTH), ""
        if left is right:
            place = " of a stream with itself"
        elif right.name in by and self._source.random() < 0.2:
            form, place, by = self._source.choice(_ONE), " bounded on one side", {right.name}
        kinds = [kind for kind, marked in _KINDS.items() if all((right, left)[place].name in by for place in marked)]
        kind = "JOIN" if self._source.random() < 0.4 else self._source.choice(kinds)
        self._queries.seen.append(f"interval {kind.lower()}{place}")
        bound = form.format(m=self._source.randint(0, 4), n=self._source.randint(1, 5))
        first = tables if kind in _AFTER_TABLES and self._source.random() < 0.3 else ()
        item = self._joined(named(left), named(right), bound, kind, first)
        if kind == "JOIN" and " bounded" not in place and self._source.random() < 0.3:
            item = self._of_three(item, named(others[0]))
            joined = drawn[:3]
            if self._source.random() < 0.4:
                item = self._of_three(item, named(others[1]), 3)
                joined = drawn
            marked = [stream.name for stream in joined if stream.delay is not None]
            by = set(marked) if len(marked) >= len(joined) - 1 else set()
        item = self._beside(item, tables)
        inner = self._rows(item)
        outer = self._queries.above(From(_ROWS, under("r", inner.columns), 14, item.reads))
        text = judged = outer.text.replace(_ROWS, f"({inner.text}) r")
        for place, stream in zip(_STREAMS, drawn, strict=True):
            in_time = f"(SELECT * FROM {stream.name} WHERE in_time)"
            text = text.replace(place, stream.name)
            judged = judged.replace(place, in_time if stream.name in by else stream.name)
        return IntervalView(Select(text, outer.columns, 14, item.reads, "filter"), judged)

    def _joined(self, left: Named, right: Named, bound: str, kind: str, tables: Sequence[Named]) -> From:
        """The joined rows; their left stream meets one of the ``tables`` first, if there are any."""
        scopes = under("x", left.columns), under("y", right.columns)
        on = [bound]
        if kind == "FULL JOIN":  # PostgreSQL asks for an equality
            on.append("x.k = y.k")
        elif self._source.random() < 0.8 and (pair := self._scalars.pair(*scopes, True)) is not None:
            on.append(pair)
        if self._source.random() < 0.2:
            on.append(self._scalars.condition(scopes[0] + scopes[1], 0))
        self._source.shuffle(on)
        reads = frozenset((left.name, right.name))
        rows, more = (f"{_STREAMS[0]} x", ()) if not tables else self._after(self._source.choice(tables), scopes[0])
        reads |= {table.name for table in tables if f" {table.name} " in rows}
        if kind.endswith("EXISTS"):
            asked = f"SELECT FROM {_STREAMS[1]} y WHERE {' AND '.join(on)}"
            return From(f"(SELECT * FROM {rows} WHERE {kind} ({asked})) x", scopes[0] + more, 14, reads)
        text = f"{rows} {kind} {_STREAMS[1]} y ON {' AND '.join(on)}"
        return From(text, scopes[0] + more + scopes[1], 14, reads)

    def _after(self, table: Named, scope: Scope) -> tuple[str, Scope]:
        """The left stream with a column of a table that it meets first."""
        kind, found = self._source.choice(("JOIN", "LEFT JOIN")), self._source.choice(table.columns)
        on = self._scalars.pair(under("t", table.columns), scope, True) or "true"
        self._queries.seen.append(f"{kind.lower()} of a table before an interval join")
        text = f"(SELECT x.*, t.{found.text} AS tc FROM {_STREAMS[0]} x {kind} {table.name} t ON {on}) x"
        return text, (Ref("x.tc", found.kind, found.exact),)

    def _of_three(self, item: From, third: Named, place: int = 2) -> From:
        """Joined rows beside a third stream, or a fourth by its ``place``, whose times are bounded by those of the one
        before."""
        before, own = ("y", "w") if place == 2 else ("w", "z")
        self._queries.seen.append(f"interval join of {('three', 'four')[place - 2]} streams")
        bound = self._source.choice(_BOTH).replace("y.", f"{own}.").replace("x.", f"{before}.")
        bound = bound.format(m=self._source.randint(0, 3), n=self._source.randint(1, 4))
        on, scope = [bound], under(own, third.columns)
        if self._source.random() < 0.9 and (pair := self._scalars.pair(scope, item.scope, True)) is not None:
            on.append(pair)
        text = f"{item.text} JOIN {_STREAMS[place]} {own} ON {' AND '.join(on)}"
        return From(text, item.scope + scope, 14, item.reads | {third.name})

    def _beside(self, item: From, tables: Sequence[Named]) -> From:
        """The joined rows, or these joined with a table."""
        if not tables or self._source.random() < 0.7:
            return item
        table, kind = self._source.choice(tables), self._source.choice(("JOIN", "LEFT JOIN"))
        other = under("t", table.columns)
        on = self._scalars.pair(other, item.scope, True) or "true"
        self._queries.seen.append(f"interval join and {kind.lower()} of a table")
        return From(f"{item.text} {kind} {table.name} t ON {on}", item.scope + other, 14, item.reads | {table.name})

    def _rows(self, item: From) -> Select:
        outputs = [self._scalars.any(item.scope) for _ in range(self._source.randint(1, 4))]
        listed = ", ".join(f"{output.text} AS c{place}" for place, output in enumerate(outputs))
        columns = tuple(Ref(f"c{place}", output.kind, output.exact) for place, output in enumerate(outputs))
        where = f" WHERE {self._scalars.condition(item.scope)}" if self._source.random() < 0.2 else ""
        return Select(f"SELECT {listed} FROM {item.text}{where}", columns, 14, item.reads, "filter")
