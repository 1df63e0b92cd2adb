"""The law for windows over an order, whose values follow a change as far as it reaches: moved values, frames of rows,
running functions and ranks, over partitions and over all rows, with NULLs, ties and texts that are too long for keys.

Where values depend on the order of rows that tie, a key ends the order. Some views read others, join or group them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

_LONG = "long " * 15
#: Columns beside the key with their possible values. NULL has the hash of one of the numbers of b.
_COLUMNS = {
    "g": ("integer", (1, 1, 1, 1, 1, 1, 1, 2, 2, 3, None)),
    "b": ("bigint", (-7046029254386353131, -7046029254386353131, 5, None)),
    "v": ("integer", (-2, -1, 0, 1, 2, 3, 4, 5, None)),
    "n": ("numeric(6, 2)", ("-1.50", "0.00", "2.00", "7.25", None)),
    "w": ("text", ("", "a", "B", "é", "ab", _LONG, f"{_LONG}a", f"{_LONG}b", None)),
    "f": ("double precision", (-1.5, -0.0, 0.0, float("inf"), float("-inf"), float("nan"), None)),
    "d": ("timestamp", ("1999-12-31 23:59:59.5", "2000-01-01 00:00:00", "infinity", "-infinity", None)),
    "c": ("boolean", ("true", "false", None)),
    "a": ("integer[]", ([], [1, 2], [None], None)),
}
_ORDERED = ("v", "n", "w", "f", "d", "c")
_WAYS = [" ".join(words) for words in product(("ASC", "DESC"), ("NULLS FIRST", "NULLS LAST"))]
_PARTITIONS = ("PARTITION BY g", "PARTITION BY g", "PARTITION BY b", "PARTITION BY g, v % 2", "")
_PARTED = _PARTITIONS[:-1]
#: Functions whose values depend on the order of rows that tie.
_NUMBERED = (
    "lag(v) OVER ({0})",
    "lead(w, 2) OVER ({0})",
    "lag(n, 1, 9) OVER ({0})",
    "lag(k, 0) OVER ({0})",
    "(lead(d, -2) OVER ({0}))::text",
    "sum(v) OVER ({0} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "avg(n) OVER ({0} ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING)",
    "array_agg(v) OVER ({0} ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    "first_value(k) OVER ({0} ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
    "nth_value(w, 2) OVER ({0} ROWS 2 PRECEDING)",
    "row_number() OVER ({0})",
    "sum(n) OVER ({0} ROWS UNBOUNDED PRECEDING)",
    "count(v) FILTER (WHERE v > 1) OVER ({0} ROWS UNBOUNDED PRECEDING)",
    "first_value(w) OVER ({0})",
    "last_value(k) OVER ({0})",
    "max(w) OVER ({0} ROWS UNBOUNDED PRECEDING)",
)
#: Functions up to the last row, whose values depend on the order of rows that tie.
_TO_THE_LAST = (
    "sum(v) OVER ({0} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "count(v) FILTER (WHERE v > 1) OVER ({0} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "max(w) OVER ({0} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "sum(f) OVER ({0} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "last_value(k) OVER ({0} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "last_value(n) OVER ({0} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "first_value(w) OVER ({0} GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    "first_value(w) OVER ({0} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
)
#: Functions of a whole partition.
_TOTALS = (
    "sum(v) OVER ({0} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "avg(n) OVER ({0} RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "max(w) OVER ({0} GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "(min(d) OVER ({0} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING))::text",
    "sum(f) OVER ({0} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "count(*) FILTER (WHERE c) OVER (PARTITION BY g, w)",
    "v - sum(v) OVER (PARTITION BY b)",
    "avg(f) OVER (PARTITION BY d)",
    "bool_or(c) OVER (PARTITION BY g)",
)
#: Functions that give rows that tie one value.
_SHARED = (
    "rank() OVER ({0})",
    "dense_rank() OVER ({0})",
    "count(*) OVER ({0})",
    "sum(v) OVER ({0})",
    "avg(v) OVER ({0})",
    "min(n) OVER ({0})",
    "(max(d) OVER ({0}))::text",
    "bool_and(c) OVER ({0})",
    "bool_or(v > 3) OVER ({0})",
    "var_pop(v) OVER ({0})",
    "sum(f) OVER ({0})",
    "avg(n::float8) OVER ({0})",
    "sum(n) OVER ({0} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "count(*) OVER ({0} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "avg(f) OVER ({0} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
)
#: Orders with the frames that they may have by a distance, and functions over these.
_DISTANCES = {
    "v": ("1 PRECEDING AND CURRENT ROW", "2 PRECEDING AND 1 FOLLOWING", "3 PRECEDING AND 2 PRECEDING",
          "1 FOLLOWING AND 2 FOLLOWING", "CURRENT ROW AND CURRENT ROW", "1 FOLLOWING AND 0 FOLLOWING"),
    "b": ("3 PRECEDING AND CURRENT ROW",),
    "k": ("10 PRECEDING AND CURRENT ROW", "5 PRECEDING AND 4 FOLLOWING"),
    "d": ("'1 s' PRECEDING AND CURRENT ROW", "'1 mon' PRECEDING AND '1 mon' FOLLOWING"),
    "(timestamp '2026-01-31' + k * interval '7 hours')": ("'1 day' PRECEDING AND CURRENT ROW",
          "'1 mon' PRECEDING AND '3 hours' FOLLOWING", "'2 days' FOLLOWING AND '2 days 12:00' FOLLOWING"),
    "(date '2026-01-31' + k)": ("'1 mon' PRECEDING AND CURRENT ROW", "'2 days 05:00' PRECEDING AND '1 day' FOLLOWING"),
    "(timestamptz '2026-03-27 00:00+00' + k * interval '5 hours')": ("'2 days' PRECEDING AND CURRENT ROW",
          "'01:00' PRECEDING AND '1 day' FOLLOWING"),
}  # fmt: skip
_WITHIN = (
    "count(*)",
    "sum(v)",
    "avg(n)",
    "max(w)",
    "min(n)",
    "bool_or(c)",
    "sum(f)",
    "sum(n) FILTER (WHERE v > 0)",
    "stddev(v)",
)
_OPTIONS = "WITH (maintained, method = 'incremental', refresh_policy = 'incremental')"


def _window(source: random.Random, is_total: bool, partitions: tuple[str, ...] = _PARTITIONS) -> str:
    names = source.sample(_ORDERED, source.randint(1, 2))
    order = [f"{name} {source.choice(_WAYS)}" for name in names] + ["k"] * is_total
    return f"{source.choice(partitions)} ORDER BY {', '.join(order)}"


def _calls(
    source: random.Random,
    functions: tuple[str, ...],
    is_total: bool,
    name: str,
    partitions: tuple[str, ...] = _PARTITIONS,
) -> str:
    window = _window(source, is_total, partitions)
    chosen = source.sample(functions, source.choice((1, 1, 2, 3)))
    return ", ".join(f"{call.format(window)} AS {name}{place}" for place, call in enumerate(chosen))


def _within(source: random.Random) -> str:
    """Calls over RANGE with distances, in one order."""
    order, frames = source.choice(list(_DISTANCES.items()))
    window = f"{source.choice(_PARTITIONS)} ORDER BY {order} {source.choice(_WAYS)}"
    chosen = (f"{call} OVER ({window} RANGE BETWEEN {source.choice(frames)})" for call in source.sample(_WITHIN, 2))
    return ", ".join(f"{call} AS r{place}" for place, call in enumerate(chosen))


def _queries(source: random.Random) -> list[str]:
    numbered = [f"SELECT k, a, {_calls(source, _NUMBERED, True, 'x')} FROM t" for _ in range(4)]
    shared = [f"SELECT k, {_calls(source, _SHARED, False, 'y')} FROM t" for _ in range(3)]
    both = _calls(source, _NUMBERED, True, "x"), _calls(source, _SHARED, False, "y")
    window = _window(source, True)
    return [
        *numbered,
        *shared,
        *(f"SELECT k, {_within(source)} FROM t" for _ in range(4)),
        f"SELECT k, {_within(source)}, {_calls(source, _SHARED, False, 'y')} FROM t",
        f"SELECT k, a, {_calls(source, _TO_THE_LAST, True, 'x')} FROM t",
        f"SELECT k, {_calls(source, (*_NUMBERED[13:15], *_TO_THE_LAST[4:]), True, 'x')} FROM t",
        f"SELECT k, v, {_calls(source, _TOTALS, False, 'x', _PARTED)}, {_calls(source, _NUMBERED, True, 'y')} FROM t",
        f"SELECT k, {_calls(source, _SHARED, False, 'x')}, {_calls(source, _SHARED, False, 'y')},"
        f" {_calls(source, _NUMBERED, True, 'z')} FROM t",
        f"SELECT k, {both[0]}, {both[1]} FROM t",
        f"SELECT k, {_NUMBERED[0].format(window)} AS x, {_SHARED[0].format(window)} AS y,"
        f" {_SHARED[3].format(window)} AS z FROM t",
        f"SELECT g, count(*) AS n, sum(x0::text::numeric) AS s FROM (SELECT g, {_SHARED[3].format(window)} AS x0"
        " FROM t) q GROUP BY g",
        f"SELECT q.k, u.m, q.r FROM (SELECT k, g, row_number() OVER ({window}) AS r FROM t) q JOIN u USING (g)"
        " WHERE q.r > u.m",
        f"SELECT g, c, rank() OVER (ORDER BY c DESC) AS r, sum(c) OVER (ORDER BY g {source.choice(_WAYS)}) AS s FROM"
        " (SELECT g, count(*) AS c FROM t GROUP BY g) q",
    ]


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"'{value}'".replace("[", "{").replace("]", "}").replace("None", "NULL")
    return str(value) if isinstance(value, int) else f"'{value}'"


class _Changes:
    """Random statements; keys count upwards."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._key = 0

    def insert(self, rows: int) -> str:
        first, self._key = self._key + 1, self._key + rows
        return f"INSERT INTO t VALUES {', '.join(map(self._row, range(first, self._key + 1)))}"

    def _row(self, key: int) -> str:
        values = [self._source.choice(values) for _, values in _COLUMNS.values()]
        return f"({', '.join(map(_literal, (key, *values)))})"

    def any(self) -> str:
        source = self._source
        name = source.choice(_ORDERED)
        few = f"SELECT k FROM t ORDER BY {name} {source.choice(_WAYS)}, k LIMIT {source.choice((1, 2, 9))}"
        changed = source.choice(("g", "b", *_ORDERED))
        match source.randint(0, 10):
            case 0 | 1:
                return self.insert(source.choice((1, 1, 2, 7)))
            case 2 | 3:
                return f"DELETE FROM t WHERE k IN ({few})"
            case 4:
                return f"DELETE FROM t WHERE k % {source.randint(9, 40)} = {source.randint(0, 8)}"
            case 5 | 6:
                return f"UPDATE t SET {changed} = {_literal(source.choice(_COLUMNS[changed][1]))} WHERE k IN ({few})"
            case 7:
                return f"UPDATE t SET a = {_literal(source.choice(_COLUMNS['a'][1]))} WHERE k IN ({few})"
            case 8 | 9:
                values = (value for value in dict.fromkeys(_COLUMNS[changed][1]) if value is not None)
                one, other = (f"{_literal(value)}::{_COLUMNS[changed][0]}" for value in source.sample([*values], 2))
                moved = f"CASE {changed} WHEN {one} THEN {other} ELSE {one} END"
                some = f"{changed} IN ({one}, {other}) AND k % {source.randint(1, 7)} = 0"
                return f"UPDATE t SET {changed} = {moved} WHERE {some}"
            case _:
                return f"UPDATE u SET m = m + {source.choice((-2, 1))} WHERE g = {source.randint(1, 3)}"


@pytest.fixture(scope="module")
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    with Millstream(settings={"spark_enabled": False}) as server, mirrored(server, postgres) as pair:
        pair.table("t", f"k integer, {', '.join(f'{name} {kind}' for name, (kind, _) in _COLUMNS.items())}")
        pair.table("u", "g integer, m integer")
        yield pair


@pytest.mark.parametrize("seed", sample(range(8), (0,)))
def test_windows_over_an_order(mirror: Mirror, seed: int, whole: bool) -> None:
    source = random.Random(seed)
    changes = _Changes(source)
    mirror.views.clear()
    for statement in ("TRUNCATE t", "TRUNCATE u", "INSERT INTO u VALUES (1, 1), (1, 4), (2, 2), (3, 3), (NULL, 5)"):
        mirror.both(statement)
    mirror.both(changes.insert(80))
    names = []
    for place, query in enumerate(_queries(source)):
        names.append(f"ordered{seed}_{place}")
        mirror.view(names[-1], query, options=_OPTIONS)
    below = "SELECT g, row_number() OVER (PARTITION BY g ORDER BY v, k) AS p, n FROM t"
    above = "SELECT g, p, n, sum(n) OVER (PARTITION BY g ORDER BY p ROWS 2 PRECEDING) AS s FROM {}"
    names += [f"below{seed}", f"above{seed}"]
    mirror.view(names[-2], below, options=_OPTIONS)
    mirror.view(names[-1], above.format(names[-2]), above.format(f"({below}) x"), _OPTIONS)
    for _ in range(40 if whole else 12):
        for _ in range(source.choice((1, 1, 2, 4))):
            mirror.both(changes.any())
        mirror.check()
    kept = (
        "SELECT DISTINCT view FROM millstream.paths WHERE rows IS NOT NULL AND method LIKE '%far as a change reaches%'"
    )
    assert {name for (name,) in mirror.client.execute(kept).fetchall()} == set(names)
    for name in reversed(names):
        mirror.both(f"DROP VIEW IF EXISTS {name}")
