"""Random queries of groupings over joins of streams and tables, over groupings, and over set operations of these.

Relations ``s1`` and ``s2`` (d, site, v) are streams, ``t1`` and ``t2`` (item, n) are tables; all columns are integers.
Streams stand on either side of every kind of join, and each level groups plainly, by several sets or without keys.
"""

from __future__ import annotations

import random
from itertools import count
from typing import Final

STREAMS: Final = ("s1", "s2")
TABLES: Final = ("t1", "t2")
_LEAVES: Final = (
    "select d as a, site as b from s1",
    "select site as a, v as b from s1",
    "select d as a, v as b from s2",
    "select item as a, n as b from t1",
    "select item as a, n as b from t2",
)
_JOINS: Final = ("join", "left join", "right join", "full join")
_SETS: Final = ("union all", "union", "except", "intersect", "except all", "intersect all")
_AGGREGATES: Final = (
    "count(*)::int",
    "sum({})::int",
    "max({})",
    "min({})",
    "count(distinct {})::int",
    "count({})::int",
    "round(var_pop({}::float8)::numeric, 6)::int",
    "regr_count({}, {})::int",
)


def shape(seed: int, depth: int = 3) -> str:
    """A query of the columns a and b."""
    return _Shapes(random.Random(seed)).grouped(depth)


class _Shapes:
    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._names = (f"q{number}" for number in count())

    def grouped(self, depth: int) -> str:
        """A relation grouped."""
        below = f"({self._rows(depth - 1)}) {next(self._names)}"
        aggregate = self._source.choice(_AGGREGATES)
        of_b, of_a = (aggregate.replace("{}", column) for column in "ba")
        return self._source.choice(
            (
                f"select a, {of_b} as b from {below} group by a",
                f"select b as a, {of_a} as b from {below} group by b",
                f"select a, b from {below} group by a, b",
                f"select a, {of_b} as b from {below} group by rollup (a)",
                f"select a, {of_b} as b from {below} group by cube (a, b)",
                f"select a, {of_a} as b from {below} group by grouping sets ((a), (b), ())",
                f"select max(a) as a, {of_b} as b from {below}",
                f"select distinct a, b from {below}",
                f"select a, {of_b} as b from {below} group by a having count(*) > 1",
            )
        )

    def _rows(self, depth: int) -> str:
        chance = self._source.random()
        if depth <= 0 or chance < 0.3:
            return self._source.choice(_LEAVES)
        if chance < 0.7:
            return self._joined(depth)
        if chance < 0.9:
            return self.grouped(depth)
        one, other = (f"({self._rows(depth - 1)}) {next(self._names)}" for _ in range(2))
        return f"select * from {one} {self._source.choice(_SETS)} select * from {other}"

    def _joined(self, depth: int) -> str:
        one, other = next(self._names), next(self._names)
        outputs = self._source.choice(
            (
                f"{one}.a, {other}.b",
                f"{other}.b as a, {one}.b",
                f"{other}.a, {other}.b",
                f"{one}.b as a, {other}.a as b",
            )
        )
        operator = self._source.choice(("=", "=", "=", "=", "<", "is not distinct from"))
        more = self._source.choice(
            ("", "", "", f" and {one}.b > 1", f" and {other}.b < 3", f" and {one}.b = {other}.b")
        )
        return (
            f"select {outputs} from ({self._rows(depth - 1)}) {one} {self._source.choice(_JOINS)}"
            f" ({self._rows(depth - 1)}) {other} on {one}.a {operator} {other}.a{more}"
        )
