"""Statements of one small table, as SQLite's own tests have them: each has a shape that no other one has.

``distinct_statements`` gives the same ones for the same seed.
"""

from __future__ import annotations

import random
from typing import Final

TABLE: Final = "CREATE TABLE t1 (a integer, b integer, c integer, d integer, e integer)"
_COLUMNS: Final = "abcde"


def distinct_statements(count: int, seed: int = 1) -> list[str]:
    """So many different SELECTs."""
    writer = _Writer(random.Random(seed))
    found: dict[str, None] = {}
    while len(found) < count:
        found[writer.statement()] = None
    return list(found)


class _Writer:
    """Writes statements, of which the parts nest twice at most."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def statement(self) -> str:
        """Rows with conditions and an order, groups, or a join."""
        write = self._chance.choice((self._rows, self._rows, self._groups, self._join))
        return write()

    def _rows(self) -> str:
        items = [self._number() for _ in range(self._chance.randint(1, 6))]
        text = f"SELECT {', '.join(items)} FROM t1"
        if self._chance.random() < 0.6:
            word = self._chance.choice((" AND ", " OR "))
            text += f" WHERE {word.join(self._condition() for _ in range(self._chance.randint(1, 3)))}"
        if self._chance.random() < 0.8:
            places = self._chance.sample(range(1, len(items) + 1), self._chance.randint(1, len(items)))
            text += f" ORDER BY {', '.join(map(str, places))}"
        return text

    def _groups(self) -> str:
        key = self._column()
        calls = ", ".join(self._aggregate() for _ in range(self._chance.randint(1, 3)))
        where = f" WHERE {self._condition()}" if self._chance.random() < 0.5 else ""
        having = f" HAVING count(*) > {self._chance.randint(0, 2)}" if self._chance.random() < 0.3 else ""
        return f"SELECT {key}, {calls} FROM t1{where} GROUP BY {key}{having}"

    def _join(self) -> str:
        kind = self._chance.choice(("JOIN", "LEFT JOIN", "CROSS JOIN"))
        on = "" if kind == "CROSS JOIN" else f" ON x.{self._column()} = y.{self._column()}"
        where = f"NOT x.{self._column()} IS NULL AND y.{self._column()} < {self._chance.randint(100, 300)}"
        items = f"x.{self._column()}, y.{self._column()} + {self._chance.randint(0, 99)}"
        return f"SELECT DISTINCT {items} FROM t1 x {kind} t1 y{on} WHERE {where}"

    def _aggregate(self) -> str:
        name = self._chance.choice(("count", "sum", "max", "min", "avg", "count(DISTINCT"))
        closing = "" if "(" in name else "("
        return f"{name}{closing or ' '}{self._number(2)})"

    def _column(self) -> str:
        return self._chance.choice(_COLUMNS)

    def _number(self, depth: int = 0) -> str:
        column, other = self._column(), self._column()
        plain = (
            column,
            f"{column} * {self._chance.randint(2, 11)}",
            f"abs({column} - {other})",
            " + ".join(f"{name} * {self._chance.randint(2, 5)}" for name in self._chance.sample(_COLUMNS, 3)),
        )
        if depth > 1 or self._chance.random() < 0.7:
            return self._chance.choice(plain)
        if depth == 0 and self._chance.random() < 0.3:
            return f"(SELECT count(*) FROM t1 AS x WHERE x.{column} < t1.{other})"
        if self._chance.random() < 0.5:
            return f"CASE WHEN {self._condition(depth + 1)} THEN {self._number(depth + 1)} ELSE {column} END"
        return (
            f"CASE {column} + 1 WHEN {other} THEN 111 WHEN {self._column()} THEN {self._number(depth + 1)} ELSE 444 END"
        )

    def _condition(self, depth: int = 0) -> str:
        column, other = self._column(), self._column()
        conditions = [
            f"{column} > {other}",
            f"{column} BETWEEN {other} - {self._chance.randint(1, 4)} AND {self._column()} + 4",
            f"({column} > {other} OR {self._column()} < {self._column()})",
            f"{column} IN ({self._chance.randint(100, 199)}, {self._chance.randint(100, 199)})",
            f"coalesce({column}, {other}) <> 0",
        ]
        if depth == 0:
            conditions.append(f"{column} > (SELECT avg({other}) FROM t1)")
            conditions.append(f"EXISTS (SELECT 1 FROM t1 AS x WHERE x.{column} < t1.{other})")
        return self._chance.choice(conditions)
