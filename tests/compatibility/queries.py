"""Generates queries over the tables ``a``, ``b``, ``c``: one construct each, with expressions that never fail.

Owns: ``Query`` (its construct, its text, and whether the order of its rows is determined) and ``Queries``, which draws
them. The values are small, so that a difference comes from the construct and not from an overflow.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.compatibility.tables import JOINED

#: The types of expressions: those whose operators never fail on small values.
_KINDS: Final = ("int", "numeric", "text", "date", "bool")
_KIND: Final = {
    "int4": "int", "int8": "int", "int2": "int", "numeric(8,2)": "numeric", "numeric": "numeric", "text": "text",
    "varchar(4)": "text", "date": "date", "timestamp": "date", "bool": "bool", "float8": "float",
}  # fmt: skip
_LITERALS: Final = {
    "int": ("0", "1", "2", "-1"),
    "numeric": ("1.5", "0.0", "-2.25"),
    "text": ("'a'", "'b'", "''"),
    "date": ("date '2024-01-31'", "date '2023-12-31'"),
    "bool": ("true", "false", "NULL::bool"),
    "float": ("0.5::float8",),
}
_AGGREGATES: Final = ("count(*)", "count({x})", "sum({x})", "min({x})", "max({x})", "avg({x})", "count(DISTINCT {x})",
                      "sum(DISTINCT {x})", "min({x}) FILTER (WHERE {p})", "count(*) FILTER (WHERE {p})",
                      "bool_and({p})", "bool_or({p})", "string_agg({s}, ',' ORDER BY {s}, id)", "stddev_pop({x})",
                      "array_agg({x} ORDER BY {x}, id)", "var_samp({x})", "every({p})")  # fmt: skip
_FRAMES: Final = ("", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
                  "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                  "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
                  "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING")  # fmt: skip
_WINDOWED: Final = ("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)", "lag({x})",
                    "lead({x}, 2, {x})", "first_value({x})", "last_value({x})", "nth_value({x}, 2)", "sum({x})",
                    "count(*)", "avg({x})", "min({s})", "count({x}) FILTER (WHERE {p})")  # fmt: skip


#: Statements about names, types and errors, one per line.
_STATEMENTS: Final = Path(__file__).with_name("statements.txt").read_text().splitlines()


class Query(Struct, frozen=True):
    """A statement to be compared."""

    construct: str
    text: str
    ordered: bool = False


class Scope(Struct, frozen=True):
    """The columns that an expression may use, with their kinds."""

    columns: tuple[tuple[str, str], ...]

    def of(self, kind: str) -> tuple[str, ...]:
        """The columns of a kind."""
        return tuple(name for name, found in self.columns if found == kind)

    def __add__(self, other: Scope) -> Scope:
        return Scope(self.columns + other.columns)


def scope(table: str, alias: str) -> Scope:
    """A table's columns under an alias."""
    return Scope(tuple((f"{alias}.{item.name}", _KIND[item.type]) for item in JOINED[table]))


class Queries:
    """Draws queries, ``constructs`` by name."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self.constructs: Final[dict[str, Callable[[], Query]]] = {
            "joins": self._joins,
            "JOIN USING, NATURAL JOIN": self._using,
            "LATERAL": self._lateral,
            "scalar subqueries": self._scalar_subquery,
            "IN (subquery)": self._in_subquery,
            "EXISTS": self._exists,
            "ANY, ALL (subquery)": self._quantified,
            "correlated subqueries": self._correlated,
            "subqueries in FROM": self._derived,
            "GROUP BY, HAVING": self._grouped,
            "grouping sets": self._grouping_sets,
            "aggregates without GROUP BY": self._ungrouped,
            "ordered-set aggregates": self._ordered_set,
            "window functions": self._windows,
            "UNION, INTERSECT, EXCEPT": self._set_operation,
            "DISTINCT": self._distinct,
            "DISTINCT ON": self._distinct_on,
            "ORDER BY, LIMIT, OFFSET": self._limited,
            "VALUES": self._values,
            "WITH": self._with,
            "WITH RECURSIVE": self._recursive,
            "set-returning functions": self._series,
            "names and errors": self._erroneous,
        }

    def query(self, construct: str) -> Query:
        """A query of a construct."""
        return self.constructs[construct]()

    def _pick(self, items: tuple[str, ...] | list[str]) -> str:
        return self._source.choice(items)

    def value(self, around: Scope, kind: str, depth: int = 2) -> str:
        """An expression of a kind."""
        leaves = around.of(kind) * 3 or _LITERALS[kind]
        if depth == 0 or self._source.random() < 0.35:
            return self._pick(leaves if self._source.random() < 0.85 else _LITERALS[kind])

        def inner(of: str) -> str:
            return self.value(around, of, depth - 1)

        forms: dict[str, tuple[str, ...]] = {
            "int": (
                f"({inner('int')} + {inner('int')})",
                f"({inner('int')} - {inner('int')})",
                f"({inner('int')} * {inner('int')})",
                f"abs({inner('int')})",
                f"length({inner('text')})",
                f"coalesce({inner('int')}, {inner('int')})",
                f"CASE WHEN {inner('bool')} THEN {inner('int')} END",
                f"({inner('int')} / 2)",
            ),
            "numeric": (
                f"({inner('numeric')} + {inner('int')})",
                f"({inner('numeric')} * {inner('numeric')})",
                f"round({inner('numeric')}, 1)",
                f"CASE WHEN {inner('bool')} THEN {inner('numeric')} ELSE {inner('int')} END",
            ),
            "text": (
                f"({inner('text')} || {inner('text')})",
                f"upper({inner('text')})",
                f"({inner('int')})::text",
                f"coalesce({inner('text')}, 'none')",
                f"left({inner('text')}, 1)",
            ),
            "date": (f"least({inner('date')}, {inner('date')})", f"coalesce({inner('date')}, date '2024-01-01')"),
            "bool": (self._condition(around, depth - 1), self._condition(around, depth - 1)),
            "float": (f"({inner('int')})::float8",),
        }
        return self._pick(forms[kind])

    def _condition(self, around: Scope, depth: int) -> str:
        kind = self._pick(("int", "int", "numeric", "text", "date"))
        left, right = (self.value(around, kind, max(depth, 0)) for _ in range(2))
        forms = (
            f"{left} {self._pick(('=', '<>', '<', '<=', '>', '>='))} {right}",
            f"{left} IS NOT DISTINCT FROM {right}",
            f"{left} IS NULL",
            f"{left} IN ({right}, {self._pick(_LITERALS[kind])})",
            f"NOT ({left} = {right})",
            f"({left} = {right} OR {left} IS NULL)",
        )
        return f"({self._pick(forms)})"

    def predicate(self, around: Scope) -> str:
        """A condition."""
        found = self._condition(around, 1)
        return f"({found} {self._pick(('AND', 'OR'))} {self._condition(around, 1)})" if self._chance(0.3) else found

    def _chance(self, share: float) -> bool:
        return self._source.random() < share

    def _kind(self) -> str:
        return self._pick(_KINDS)

    def _targets(self, around: Scope, count: int = 0) -> str:
        return ", ".join(self.value(around, self._kind()) for _ in range(count or self._source.randint(1, 4)))

    def _where(self, around: Scope) -> str:
        return f" WHERE {self.predicate(around)}" if self._chance(0.6) else ""

    def _numbers(self, around: Scope) -> str:
        return self._pick(around.of("int") + around.of("numeric"))

    def _filled(self, pattern: str, around: Scope) -> str:
        return pattern.format(x=self._numbers(around), p=self.predicate(around), s=self._pick(around.of("text")))

    def _joins(self) -> Query:
        around = scope("a", "x") + scope("b", "y")
        kind = self._pick(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"))
        equal = f"x.{self._pick(('g', 'i'))} = y.{self._pick(('g', 'j'))}"
        condition = "" if kind == "CROSS JOIN" else f" ON {equal}"
        if condition and kind != "FULL JOIN" and self._chance(0.4):
            condition += f" AND {self.predicate(around)}"
        source = f"a x {kind} b y{condition}"
        if self._chance(0.3):
            source += f" {self._pick(('JOIN', 'LEFT JOIN'))} c z ON z.k = x.i"
            around += scope("c", "z")
        return Query("joins", f"SELECT {self._targets(around)} FROM {source}{self._where(around)}")

    def _using(self) -> Query:
        kind = self._pick(("", "LEFT ", "RIGHT ", "FULL "))
        join, columns = self._pick(
            ("JOIN b USING (g)|g, a.id, b.id", "JOIN b USING (g, t)|*", "JOIN b USING (g)|*")
        ).split("|")
        if self._chance(0.3):
            join, columns = ["NATURAL", "*"]
            return Query(
                "JOIN USING, NATURAL JOIN",
                f"SELECT * FROM (SELECT g, i FROM a) x NATURAL {kind}JOIN (SELECT g, j FROM b) y",
            )
        return Query("JOIN USING, NATURAL JOIN", f"SELECT {columns} FROM a {kind}{join}")

    def _lateral(self) -> Query:
        inner = scope("b", "y") + scope("a", "x")
        limited = f" ORDER BY y.id LIMIT {self._pick(('1', '2'))}" if self._chance(0.5) else ""
        body = f"SELECT {self._pick(inner.of('int'))} AS v, y.id AS w FROM b y WHERE {self.predicate(inner)}{limited}"
        if self._chance(0.3):
            body = f"SELECT count(*) AS v, max(y.j) AS w FROM b y WHERE y.g = x.g AND {self.predicate(inner)}"
        join = self._pick((", LATERAL ({}) l", " CROSS JOIN LATERAL ({}) l", " LEFT JOIN LATERAL ({}) l ON true"))
        return Query("LATERAL", f"SELECT x.id, l.v, l.w FROM a x{join.format(body)}")

    def _scalar_subquery(self) -> Query:
        around = scope("a", "x")
        aggregate = self._filled(self._pick(_AGGREGATES[:8]), scope("b", "y"))
        inner = f"(SELECT {aggregate} FROM b y{self._where(scope('b', 'y'))})"
        if self._chance(0.5):
            return Query("scalar subqueries", f"SELECT x.id, {inner} FROM a x{self._where(around)}")
        compared = f"{self._numbers(around)} {self._pick(('<', '>', '='))} {inner}"
        return Query("scalar subqueries", f"SELECT {self._targets(around)} FROM a x WHERE {compared}")

    def _in_subquery(self) -> Query:
        around, inner = scope("a", "x"), scope("b", "y")
        kind = self._pick(("int", "text", "numeric"))
        sub = f"SELECT {self.value(inner, kind, 1)} FROM b y{self._where(inner + around)}"
        condition = f"{self.value(around, kind, 1)} {self._pick(('IN', 'NOT IN'))} ({sub})"
        if self._chance(0.3):
            return Query("IN (subquery)", f"SELECT x.id, {condition} FROM a x")
        return Query("IN (subquery)", f"SELECT {self._targets(around)} FROM a x WHERE {condition}")

    def _exists(self) -> Query:
        around, inner = scope("a", "x"), scope("b", "y")
        condition = f"{self._pick(('', 'NOT '))}EXISTS (SELECT 1 FROM b y WHERE {self.predicate(inner + around)})"
        if self._chance(0.3):
            return Query("EXISTS", f"SELECT x.id, {condition} FROM a x")
        return Query("EXISTS", f"SELECT {self._targets(around)} FROM a x WHERE {condition} OR {self.predicate(around)}")

    def _quantified(self) -> Query:
        around, inner = scope("a", "x"), scope("b", "y")
        kind = self._pick(("int", "text", "numeric"))
        sub = f"SELECT {self.value(inner, kind, 1)} FROM b y{self._where(inner)}"
        symbol = self._pick(("=", "<>", "<", ">=", ">"))
        condition = f"{self.value(around, kind, 1)} {symbol} {self._pick(('ANY', 'ALL', 'SOME'))} ({sub})"
        if self._chance(0.4):
            return Query("ANY, ALL (subquery)", f"SELECT x.id, {condition} FROM a x")
        return Query("ANY, ALL (subquery)", f"SELECT {self._targets(around)} FROM a x WHERE {condition}")

    def _correlated(self) -> Query:
        around, inner = scope("a", "x"), scope("b", "y")
        both = inner + around
        aggregate = self._filled(self._pick(_AGGREGATES[:10]), inner)
        deep = f" AND EXISTS (SELECT 1 FROM c z WHERE z.k = y.j AND {self.predicate(scope('c', 'z') + both)})"
        condition = self._pick(("y.g = x.g", "y.g < x.i", "y.t = x.t", self.predicate(both)))
        body = f"(SELECT {aggregate} FROM b y WHERE {condition}{deep if self._chance(0.3) else ''})"
        if self._chance(0.5):
            return Query("correlated subqueries", f"SELECT x.id, {body} FROM a x")
        return Query(
            "correlated subqueries",
            f"SELECT x.id FROM a x WHERE {body} IS NOT DISTINCT FROM {self._pick(('0', '1', 'NULL'))}",
        )

    def _derived(self) -> Query:
        inner = scope("a", "x")
        targets = f"x.g, {self.value(inner, 'int')} AS p, {self.value(inner, 'text')} AS q"
        body = f"SELECT {targets} FROM a x{self._where(inner)}"
        outer = Scope((("s.g", "int"), ("s.p", "int"), ("s.q", "text")))
        return Query("subqueries in FROM", f"SELECT {self._targets(outer)} FROM ({body}) s{self._where(outer)}")

    def _grouped(self) -> Query:
        around = scope("a", "x")
        key = self._pick(("x.g", "x.t", "x.o", self.value(around, self._kind(), 1)))
        while key in _LITERALS["int"]:
            key = self.value(around, "text", 1)
        found = ", ".join(self._filled(self._pick(_AGGREGATES), around) for _ in range(self._source.randint(1, 3)))
        having = f" HAVING {self._filled(self._pick(('count(*) > 2', 'min({x}) < 2', 'sum({x}) IS NOT NULL')), around)}"
        return Query(
            "GROUP BY, HAVING",
            f"SELECT {key}, {found} FROM a x{self._where(around)} GROUP BY {key}{having if self._chance(0.4) else ''}",
        )

    def _grouping_sets(self) -> Query:
        around = scope("a", "x")
        sets = self._pick(
            (
                "ROLLUP (g, t)",
                "CUBE (g, o)",
                "GROUPING SETS ((g), (t), ())",
                "g, ROLLUP (t, o)",
                "GROUPING SETS ((g, t), (g), (g))",
            )
        )
        keys = [
            name
            for name in ("g", "t", "o")
            if name in sets.replace("GROUPING", "").replace("SETS", "").split("(", 1)[-1] + sets[:1]
        ]
        found, listed = self._filled(self._pick(_AGGREGATES), around), ", ".join(keys)
        return Query(
            "grouping sets",
            f"SELECT {listed}, GROUPING({listed}), {found} FROM a x{self._where(around)} GROUP BY {sets}",
        )

    def _ungrouped(self) -> Query:
        around = scope("a", "x")
        found = ", ".join(self._filled(self._pick(_AGGREGATES), around) for _ in range(self._source.randint(1, 4)))
        return Query("aggregates without GROUP BY", f"SELECT {found} FROM a x{self._where(around)}")

    def _ordered_set(self) -> Query:
        pattern = self._pick(
            (
                "percentile_cont(0.5) WITHIN GROUP (ORDER BY x.f)",
                "percentile_disc(0.25) WITHIN GROUP (ORDER BY x.i)",
                "mode() WITHIN GROUP (ORDER BY x.g)",
                "percentile_cont(0.9) WITHIN GROUP (ORDER BY x.i DESC)",
            )
        )
        grouping = self._pick(("", " GROUP BY x.g", " GROUP BY x.t"))
        key = f"{grouping.rpartition(' ')[2]}, " if grouping else ""
        return Query("ordered-set aggregates", f"SELECT {key}{pattern} FROM a x{grouping}")

    def _windows(self) -> Query:
        around = scope("a", "x")
        partition = self._pick(("", f"PARTITION BY {self._pick(('x.g', 'x.t', 'x.o'))} "))
        order = f"ORDER BY {self._pick(('x.i', 'x.n DESC', 'x.t', 'x.d NULLS FIRST'))}, x.id "
        frame = self._pick(_FRAMES)
        found = self._filled(self._pick(_WINDOWED), around)
        if found.startswith(("row_number", "rank", "dense", "percent", "cume", "ntile", "lag", "lead")):
            frame = ""
        filtered = self._where(around)
        return Query("window functions", f"SELECT x.id, {found} OVER ({partition}{order}{frame}) FROM a x{filtered}")

    def _set_operation(self) -> Query:
        operator = self._pick(("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"))
        kinds = [self._kind() for _ in range(self._source.randint(1, 2))]
        sides = []
        for table, alias in (("a", "x"), ("b", "y")):
            around = scope(table, alias)
            mixed = ["numeric" if kind == "int" and self._chance(0.2) else kind for kind in kinds]
            targets = ", ".join(self.value(around, kind, 1) for kind in mixed)
            sides.append(f"SELECT {targets} FROM {table} {alias}{self._where(around)}")
        text = f" {operator} ".join(sides)
        return Query("UNION, INTERSECT, EXCEPT", text)

    def _distinct(self) -> Query:
        around = scope("a", "x")
        return Query("DISTINCT", f"SELECT DISTINCT {self._targets(around, 2)} FROM a x{self._where(around)}")

    def _distinct_on(self) -> Query:
        around = scope("a", "x")
        key = self._pick(("x.g", "x.t", "x.i", "x.o"))
        tail = f" ORDER BY {key}{self._pick(('', ' DESC', ' NULLS FIRST'))}, x.id"
        return Query(
            "DISTINCT ON",
            f"SELECT DISTINCT ON ({key}) x.id, {self._targets(around)} FROM a x{self._where(around)}{tail}",
            True,
        )

    def _limited(self) -> Query:
        around = scope("a", "x")
        key = self._pick(
            ("x.i", "x.n DESC", "x.t NULLS FIRST", "x.d DESC NULLS LAST", "x.f", "x.o", "2", self.value(around, "text"))
        )
        if key in _LITERALS["text"]:
            key = "upper(x.t)"
        limit = self._pick(
            ("", " LIMIT 5", " LIMIT 3 OFFSET 2", " OFFSET 20", " FETCH FIRST 4 ROWS ONLY", " LIMIT 0", " LIMIT NULL")
        )
        return Query(
            "ORDER BY, LIMIT, OFFSET",
            f"SELECT x.id, {self.value(around, 'int')} FROM a x{self._where(around)} ORDER BY {key}, x.id{limit}",
            True,
        )

    def _values(self) -> Query:
        kinds = [self._kind() for _ in range(2)]
        rows = ", ".join(f"({', '.join(self._pick((*_LITERALS[kind], 'NULL')) for kind in kinds)})" for _ in range(3))
        if self._chance(0.5):
            return Query("VALUES", f"VALUES {rows}")
        return Query("VALUES", f"SELECT v.p, v.q, x.id FROM (VALUES {rows}) AS v (p, q), a x WHERE x.id < 2")

    def _with(self) -> Query:
        inner, outer = scope("a", "x"), Scope((("s.g", "int"), ("s.p", "int"), ("r.g", "int"), ("r.p", "int")))
        materialized = self._pick(("", "MATERIALIZED ", "NOT MATERIALIZED "))
        body = f"SELECT x.g, {self.value(inner, 'int')} AS p FROM a x{self._where(inner)}"
        return Query(
            "WITH", f"WITH t AS {materialized}({body}) SELECT {self._targets(outer)} FROM t s JOIN t r ON s.g = r.p"
        )

    def _recursive(self) -> Query:
        union = self._pick(("UNION", "UNION ALL"))
        step = self._pick(("n + 1", "n + 2", "n * 2 + 1"))
        body = f"SELECT {self._pick(('0', '1'))} {union} SELECT {step} FROM t WHERE n < {self._pick(('5', '12'))}"
        tail = self._pick(
            ("SELECT n FROM t", "SELECT sum(n), count(*) FROM t", "SELECT t.n, a.id FROM t JOIN a ON a.i = t.n")
        )
        return Query("WITH RECURSIVE", f"WITH RECURSIVE t(n) AS ({body}) {tail}")

    def _series(self) -> Query:
        text = self._pick(
            (
                "SELECT * FROM generate_series(1, 5)",
                "SELECT g FROM generate_series(-1, 9, 3) g",
                "SELECT unnest(ARRAY[1, 2])",
                "SELECT x.id, s FROM a x, generate_series(1, x.g) s",
                "SELECT generate_series(1, 3)",
                "SELECT * FROM generate_series(1, 3) WITH ORDINALITY",
                "SELECT * FROM generate_series(date '2024-01-01', date '2024-01-03', '1 day')",
            )
        )
        return Query("set-returning functions", text)

    def _erroneous(self) -> Query:
        return Query("names and errors", self._pick(_STATEMENTS))
