"""Random views of a stream with expressions that fail on some rows, and what they equal for each policy.

With ``null`` a view equals its query with each call that fails guarded by a CASE; with ``skip`` also over the rows on
which none fails. With ``fail`` the query itself raises the error.
"""

from __future__ import annotations

import random
from typing import Final, Literal

from msgspec import Struct

from tests.law.changing import rows
from tests.law.changing.relations import Named
from tests.law.changing.scalars import Ref, Scalars, Scope

Policy = Literal["fail", "null", "skip"]

#: Calls that fail with the condition on which they do not, and their kinds; NULL arguments never fail.
_CALLS: Final = (
    ("(12 / {int})", "{int} <> 0", "int"),
    ("({int} % ({int} - 1))", "{int} <> 1", "int"),
    ("({big})::int", "{big} BETWEEN -2147483648 AND 2147483647", "int"),
    ("({int} * 1000000000)", "{int} BETWEEN -2 AND 2", "int"),
    ("(2.5 / {num})", "{num} <> 0", "num"),
    ("(7 / {flt})", "{flt} <> 0", "flt"),
    ("substr({text}, 1, {int} - 1)", "{int} >= 1 OR {text} IS NULL", "text"),
    ("make_date(2024, {int}, 1)", "{int} BETWEEN 1 AND 12", "date"),
    ("('1' || {text})::int", "{text} = ''", "int"),
    ("(({text})::numeric)::int", "{text} IS NULL", "int"),
    ("(left({text}, 2) || '-02-29')::date", "{text} IS NULL", "date"),
    ("({dec} * 1000000)::numeric(8, 2)", "abs({dec}) < 1", "dec"),
)
#: What may stand around a call of a kind ``e``, and the condition on which the call is computed.
_AROUND: Final = (
    ("{e}", "true"),
    ("{e}", "true"),
    ("coalesce({e}, {literal})", "true"),
    ("CASE WHEN {condition} THEN {e} END", "{condition}"),
    ("CASE WHEN {condition} THEN {literal} ELSE {e} END", "({condition}) IS NOT TRUE"),
)
#: Queries over the source ``s``, under the name q, with an expression ``e`` and another one, ``f``.
_QUERIES: Final[dict[str, str]] = {
    "rows": "SELECT q.k AS c0, {e} AS c1 FROM {s}",
    "two expressions": "SELECT {e} AS c0, {f} AS c1 FROM {s}",
    "a filter": "SELECT q.k AS c0, q.v0 AS c1 FROM {s} WHERE {e} <> {literal}",
    "an aggregate": "SELECT q.k AS c0, count({e}) AS c1, max({e}) AS c2 FROM {s} GROUP BY q.k",
    "an aggregate without groups": "SELECT count(*) AS c0, min({e}) AS c1, count({f}) AS c2 FROM {s}",
    "an aggregate's filter": "SELECT q.k AS c0, count(*) FILTER (WHERE {e} <> {literal}) AS c1 FROM {s} GROUP BY q.k",
    "a key": "SELECT {e} AS c0, count(*) AS c1, max(q.k) AS c2 FROM {s} GROUP BY {e}",
    "a distinct aggregate": "SELECT q.k AS c0, count(DISTINCT {e}) AS c1 FROM {s} GROUP BY q.k",
    "an ordered aggregate": "SELECT q.k AS c0, array_agg(q.k ORDER BY {e}) AS c1, count({e}) AS c2 FROM {s}"
    " GROUP BY q.k",
    "DISTINCT": "SELECT DISTINCT {e} AS c0, q.k AS c1 FROM {s}",
    "DISTINCT ON": "SELECT DISTINCT ON (q.k) q.k AS c0, {e} AS c1 FROM {s} ORDER BY q.k, {e}",
    "first rows": "SELECT q.k AS c0, {e} AS c1 FROM {s} ORDER BY 1, 2 DESC LIMIT 3",
    "a set operation": "SELECT {e} AS c0, q.k AS c1 FROM {s} EXCEPT SELECT {e}, 1 FROM {s}",
    "two queries": "SELECT x.n AS c0, y.n AS c1 FROM (SELECT count({e}) AS n FROM {s}) x,"
    " (SELECT count(*) AS n FROM {s}) y",
    "a set-returning function": "SELECT e AS c0, count(*) AS c1 FROM {s} CROSS JOIN unnest(ARRAY[{e}]) e GROUP BY e",
    "ROLLUP": "SELECT q.k AS c0, {e} AS c1, count(*) AS c2 FROM {s} GROUP BY ROLLUP (q.k, {e})",
    "below a table": "SELECT t.a AS c0, g.n AS c1 FROM {t} t"
    " LEFT JOIN (SELECT q.k, count({e}) AS n FROM {s} GROUP BY q.k) g ON g.k = t.a",
    "IN": "SELECT t.a AS c0 FROM {t} t WHERE t.a IN (SELECT q.k FROM {s} WHERE {e} <> {literal})",
}
#: Kinds of the outputs that are not those of the expressions, by name: i is a number of rows, e and f the expressions.
_OUTPUTS: Final[dict[str, str]] = {
    "rows": "ke", "two expressions": "ef", "a filter": "k0", "an aggregate": "kie",
    "an aggregate without groups": "iei",
    "an aggregate's filter": "ki", "a key": "eik", "a distinct aggregate": "ki", "an ordered aggregate": "kai",
    "DISTINCT": "ek", "DISTINCT ON": "ke", "first rows": "ke", "a set operation": "ek", "two queries": "ii",
    "a set-returning function": "ei", "ROLLUP": "kei", "below a table": "ki", "IN": "k",
}  # fmt: skip


class Expression(Struct, frozen=True):
    """An expression that may fail, the same with NULL for the call that fails, and the condition on which none does."""

    text: str
    guarded: str
    fine: str
    kind: str


class FailingView(Struct, frozen=True):
    """A view's query in Millstream, its equal in PostgreSQL by policy, its columns and the stream's rows that fail."""

    text: str
    judged: dict[Policy, str]
    columns: Scope
    rejected: str
    reads: frozenset[str]
    place: str


class Failures:
    """Draws such views over streams, some with a table beside."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._scalars = Scalars(source)

    def draw(self, stream: Named, table: Named | None) -> FailingView:
        """A view of a stream."""
        place = self._source.choice([name for name, text in _QUERIES.items() if table is not None or "{t}" not in text])
        scope = tuple(Ref(f"q.{item.text}", item.kind, item.exact) for item in stream.columns)
        one, two = self._expression(scope), self._expression(scope)
        query = _QUERIES[place]
        fine = f"({one.fine}) IS NOT FALSE" + (f" AND ({two.fine}) IS NOT FALSE" if "{f}" in query else "")
        named = {"t": table.name if table is not None else "", "literal": rows.literal(self._source, one.kind)}
        every, kept = f"{stream.name} q", f"(SELECT * FROM {stream.name} q WHERE {fine}) q"
        text = query.format(s=every, e=one.text, f=two.text, **named)
        reads = {stream.name} | ({table.name} if table is not None and "{t}" in query else set())
        return FailingView(
            text,
            {
                "fail": text,
                "null": query.format(s=every, e=one.guarded, f=two.guarded, **named),
                "skip": query.format(s=kept, e=one.guarded, f=two.guarded, **named),
            },
            self._columns(_OUTPUTS[place], scope, one.kind, two.kind),
            f"SELECT count(*) FROM {stream.name} q WHERE NOT ({fine})",
            frozenset(reads),
            place,
        )

    def _columns(self, outputs: str, scope: Scope, one: str, two: str) -> Scope:
        first = next(item.kind for item in scope if item.text == "q.v0")
        kinds = {"k": "int", "i": "big", "a": "arr", "e": one, "f": two, "0": first}
        return tuple(Ref(f"c{at}", kinds[key], kinds[key] != "num") for at, key in enumerate(outputs))

    def _expression(self, scope: Scope) -> Expression:
        known = {item.kind: item.text for item in scope}
        calls = [
            (call.format(**known), fine.format(**known), kind)
            for call, fine, kind in _CALLS
            if all(f"{{{other}}}" not in call or other in known for other in rows.VALUES)
        ]
        call, fine, kind = self._source.choice(calls)
        parts = {"condition": self._scalars.condition(scope, 0), "literal": rows.literal(self._source, kind)}
        around, computed = self._source.choice(_AROUND)
        return Expression(
            around.format(e=call, **parts),
            around.format(e=f"(CASE WHEN {fine} THEN {call} END)", **parts),
            f"({computed.format(**parts)}) IS NOT TRUE OR ({fine})",
            kind,
        )
