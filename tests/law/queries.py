"""Random queries over streams and tables, for continuous views that meet tables which change.

Every relation has the columns a and b (integers) and c (text), so that any may stand where another does. Tables are
written in braces, ``{t1}``, so that the judge can be given others for them. The levels are those of the rules
(docs/continuous-views.md): ``of_tables`` reads no stream, ``rows`` reads a stream's rows, ``groups`` groups these, and
``above`` has operators above groupings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

Level = Callable[[int], str]

_EQUAL: Final = ("=", "=", "=", "is not distinct from")
_OPERATORS: Final = (*_EQUAL, "<", ">", "<=", "<>")
_SETS: Final = ("union", "union all", "intersect", "intersect all", "except", "except all")
_AGGREGATES: Final = (
    "count(*)::int",
    "max(b)",
    "min(a)",
    "sum(b)::int",
    "count(distinct b)::int",
    "coalesce(max(a), -1)",
)


class Queries:
    """Draws queries from a source of random numbers; ``depth`` limits the nesting of relations."""

    def __init__(self, source: random.Random, streams: Sequence[str], tables: Sequence[str]) -> None:
        self._source = source
        self._streams = streams
        self._tables = tables
        self._names = (f"q{number}" for number in count())

    # -- levels ----------------------------------------------------------------------------------------------------

    def of_tables(self, depth: int) -> str:
        """A relation that reads no stream."""
        if depth <= 0 or self._chance(0.5):
            return f"select id as a, n as b, label as c from {self._table()}"
        return self._one_of(
            lambda: self._joined(("join", "left join"), _OPERATORS, self.of_tables, self.of_tables, depth),
            lambda: f"select a, count(*)::int as b, max(c) as c from {self._from(self.of_tables, depth)} group by a",
            lambda: f"select max(a) as a, sum(b)::int as b, min(c) as c from {self._from(self.of_tables, depth)}",
            lambda: self._filtered(self.of_tables, self.of_tables, depth),
            lambda: self._combined(("union", "union all"), self.of_tables, self.of_tables, depth),
        )

    def rows(self, depth: int) -> str:
        """A stream's rows, possibly joined with tables."""
        if depth <= 0 or self._chance(0.3):
            return f"select k as a, v as b, t as c from {self._source.choice(self._streams)}"
        q = next(self._names)
        return self._one_of(
            lambda: self._joined(("join", "left join"), _OPERATORS, self.rows, self.of_tables, depth),
            lambda: self._joined(("left join", "full join"), ("=",), self.of_tables, self.rows, depth),
            lambda: self._filtered(self.rows, self.of_tables, depth),
            lambda: self._computed(self.rows, self.of_tables, depth),
            lambda: self._combined(("union all",), self.rows, self._source.choice((self.rows, self.groups)), depth),
            lambda: f"select {q}.a, e as b, {q}.c from ({self.rows(depth - 1)}) {q}, unnest(array[a, b]) e",
        )

    def groups(self, depth: int) -> str:
        """A stream's rows, grouped."""
        q, table = next(self._names), self._table()
        below = f"({self.rows(depth - 1)}) {q}"
        having = self._one_of(
            lambda: "count(*) > 1",
            lambda: f"count(*) > (select min(n) from {table})",
            lambda: f"a > (select 1 from {table} limit 1)",
            lambda: f"a in (select id from {table})",
            lambda: f"not exists (select from {table} h where h.id {self._operator()} a)",
        )
        return self._one_of(
            lambda: f"select a, {self._aggregate()} as b, max(c) as c from {below} group by a",
            lambda: f"select a, count(*)::int as b, max(c) as c from {below} group by a having {having}",
            lambda: f"select distinct a, b, c from {below}",
            lambda: f"select distinct on (a) a, b, c from {below} order by a, b, c",
            lambda: f"select a, b, min(c) as c from {below} group by {self._one('rollup', 'cube')} (a, b)",
            lambda: f"select max(a) as a, count(*)::int as b, min(c) as c from {below}",
            lambda: f"select a, b, string_agg(c, ',' order by c) as c from {below} group by a, b",
            lambda: self._combined(_SETS, self.rows, self.of_tables, depth, but="union all"),
        )

    def above(self, depth: int) -> str:
        """A relation above groupings."""
        if depth <= 0:
            return self.groups(1) if self._chance(0.7) else self.of_tables(0)
        any_level = self._source.choice((self.above, self.above, self.of_tables, self.rows))
        q, inner = next(self._names), depth - 1
        return self._one_of(
            lambda: self.groups(depth),
            lambda: self._joined(
                ("join", "left join", "right join", "full join"), ("=",), self.above, self.above, depth
            ),
            lambda: self._joined(("join", "left join"), ("<", ">=", "<>"), self.above, self.above, depth),
            lambda: self._filtered(self.above, any_level, depth),
            lambda: self._computed(self.above, any_level, depth),
            lambda: self._computed(self.of_tables, self.rows, depth),
            lambda: f"select a, (sum(b) over (partition by a))::int as b, c from ({self.above(inner)}) {q}",
            lambda: f"select distinct on (a) a, b, c from ({self.above(inner)}) {q} order by a, b, c",
            lambda: f"select * from ({self.above(inner)}) {q} order by a, b, c limit {self._source.randint(1, 5)}",
            lambda: f"select a, count(*)::int as b, max(c) as c from ({self.above(inner)}) {q} group by a",
            lambda: (
                f"select {q}.a, l.b, {q}.c from ({self.above(inner)}) {q}, lateral"
                f" ({self._correlated(q, any_level, inner)}) l"
            ),
            lambda: self._combined(_SETS, self.above, self.above, depth),
            lambda: self._named(depth),
        )

    # -- operators -------------------------------------------------------------------------------------------------

    def _joined(self, kinds: Sequence[str], operators: Sequence[str], left: Level, right: Level, depth: int) -> str:
        one, other = next(self._names), next(self._names)
        return (
            f"select {one}.a, {other}.b, {one}.c from ({left(depth - 1)}) {one} {self._one(*kinds)}"
            f" ({right(depth - 1)}) {other} on {one}.a {self._one(*operators)} {other}.a"
        )

    def _combined(self, sets: Sequence[str], left: Level, right: Level, depth: int, but: str = "") -> str:
        chosen = self._one(*(item for item in sets if item != but))
        return f"select * from {self._from(left, depth)} {chosen} select * from {self._from(right, depth)}"

    def _filtered(self, level: Level, asked: Level, depth: int) -> str:
        q = next(self._names)
        column = f"{q}.{self._column()}"
        asking = self._correlated(q, asked, depth - 1)
        predicate = self._one_of(
            lambda: f"exists ({asking})",
            lambda: f"not exists ({asking})",
            lambda: f"(exists ({asking}) or {column} > 2)",
            lambda: f"{column} {self._one('', 'not')} in (select b from ({asking}) x)",
            lambda: f"({column} in (select b from ({asking}) x)) is not true",
            lambda: f"{column} {self._operator()} (select {self._aggregate()} from ({asking}) x)",
        )
        return f"select * from ({level(depth - 1)}) {q} where {predicate}"

    def _computed(self, level: Level, asked: Level, depth: int) -> str:
        q = next(self._names)
        value = f"(select {self._aggregate()} from ({self._correlated(q, asked, depth - 1)}) x)"
        return f"select {q}.a, {value} as b, {q}.c from ({level(depth - 1)}) {q}"

    def _correlated(self, outer: str, level: Level, depth: int) -> str:
        """A relation that may use the columns of another one."""
        q = next(self._names)
        pair = f"{q}.{self._column()} {self._operator()} {outer}.{self._column()}"
        where = self._one("", f" where {pair}", f" where {pair}", f" where {pair} and {q}.b <= {outer}.b")
        return f"select * from ({level(depth - 1)}) {q}{where}"

    def _named(self, depth: int) -> str:
        """One relation that is read twice: above a grouping, and below it or ungrouped."""
        name, stream = f"named_{next(self._names)}", self._source.choice(self._streams)
        level = self._source.choice((self.of_tables, self.above))
        grouped = f"select {name}.a, count(*)::int as b from {stream} join {name} on k = {name}.a group by {name}.a"
        body = self._one(
            f"select {name}.a, g.b, {name}.c from {name} left join ({grouped}) g on g.a = {name}.a",
            f"select * from {name} where a in (select b from {name})",
            f"select a, (select count(*)::int from {stream} where v {self._operator()} b) as b, c from {name}",
        )
        return f"with {name} as ({level(depth - 1)}) {body}"

    # -- parts -----------------------------------------------------------------------------------------------------

    def _from(self, level: Level, depth: int) -> str:
        return f"({level(depth - 1)}) {next(self._names)}"

    def _table(self) -> str:
        return "{" + self._source.choice(self._tables) + "}"

    def _chance(self, share: float) -> bool:
        return self._source.random() < share

    def _one(self, *choices: str) -> str:
        return self._source.choice(choices)

    def _one_of(self, *choices: Callable[[], str]) -> str:
        return self._source.choice(choices)()

    def _column(self) -> str:
        return self._one("a", "b")

    def _operator(self) -> str:
        return self._one(*_OPERATORS)

    def _aggregate(self) -> str:
        return self._one(*_AGGREGATES)
