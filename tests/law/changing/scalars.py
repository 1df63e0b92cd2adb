"""Random expressions over the columns of a scope, none of which fails for any row."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tests.law.changing import rows

#: Kinds of values that have an order and an equality that both databases decide alike. A sum of floats (``apx``) has
#: neither, since it depends on the order of the rows.
KINDS: Final = tuple(rows.VALUES)
#: Kinds whose computed values may be equal and look different: 1.0 and 1.00, 1 day and 24 hours.
_UNLIKE: Final = ("num", "iv")
#: Expressions of each kind over two of it, ``a`` and ``b``, and over columns of other kinds.
_FORMS: Final[dict[str, tuple[str, ...]]] = {
    "int": (
        "({a} + {b})", "({a} - 1)", "abs({a} - {b})", "({a} % 3)", "length({text})", "(-{a})", "greatest({a}, {b})",
        "CASE WHEN {b} <> 0 THEN {a} / {b} END", "CASE {a} WHEN 1 THEN {b} WHEN 2 THEN 0 END", "cardinality({arr})",
        "extract(day FROM {date})::int", "({bool})::int", "({arr})[1]", "lower({range})",
    ),
    "big": ("({a} + 1)", "({int})::bigint", "least({a}, {b})", "({a} - {int})"),
    "num": ("({a} + 0.50)", "({a} * 2)", "({a} - {b})", "({int})::numeric", "round({a}, 1)", "extract(hour FROM {ts})"),
    "dec": ("({a} + {b})", "({a} - 1.25)", "(-{a})"),
    "text": (
        "({a} || '-')", "upper({a})", "({a} || {b})", "substr({a}, 1, 1)", "({int})::text", "({js} ->> 'a')",
        "to_char({date}, 'YYYY-MM')", "concat({a}, {int})", "({mood})::text", "replace({a}, 'a', 'é')",
        "({chr} || '|')",
    ),
    "bool": ("({a} AND {b})", "(NOT {a})", "({int} = ANY ({arr}))", "({range} @> {int})", "({text} LIKE 'a%')",
             "({js} ? 'a')", "(({int}, {text}) < (3, 'b'))",
             "(({int}, {text}) BETWEEN (1, 'a') AND (3, 'b'))", "(({int}, {big}) NOT BETWEEN (1, 2) AND ({big}, 3))",
             "({a} IS TRUE)", "({arr} @> array[{int}])"),
    "date": ("({a} + 1)", "({a} - 2)", "least({a}, {b})", "({ts})::date", "({a} + {int})"),
    "ts": ("({a} + interval '1 day')", "date_trunc('day', {a})", "greatest({a}, {b})", "({date})::timestamp"),
    "flt": ("({a} * 2)", "({a} / 4)", "({int})::float8", "abs({a})", "greatest({a}, {b})"),
    "arr": ("({a} || {b})", "array[{int}, 1]", "array_append({a}, {int})", "array_remove({a}, {int})"),
    "small": ("({a} + 1::smallint)", "({int} % 100)::smallint", "greatest({a}, {b})"),
    "tz": ("({a} + interval '90 minutes')", "date_trunc('day', {a})", "least({a}, {b})"),
    "iv": ("({a} * 2)", "(-{a})", "({ts} - timestamp '2024-02-29')"),
    "js": ("({a} -> 'a')", "to_jsonb({int})", "jsonb_build_array({a}, {int})", "jsonb_build_object('a', {b})"),
    "uuid": ("coalesce({a}, {b})", "nullif({a}, {b})"),
    "range": ("({a} * {b})", "int4range(1, abs({int}) + 2)"),
    "mood": ("greatest({a}, {b})", "least({a}, 'ok'::mood)"),
    "chr": ("least({a}, {b})", "({text})::character(3)"),
    "time": ("({a} + interval '90 minutes')", "greatest({a}, {b})", "({ts})::time"),
}  # fmt: skip
_COMPARED: Final = ("=", "<", "<=", ">", ">=", "<>", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


class Ref(Struct, frozen=True):
    """An expression's text and kind; ``exact`` if equal values also look equal, so that it may be a key."""

    text: str
    kind: str
    exact: bool = True


Scope = tuple[Ref, ...]


class Scalars:
    """Draws expressions."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

    def of(self, scope: Scope, kind: str, depth: int = 1) -> Ref:
        """An expression of a kind: a column, a constant, or one computed from others."""
        known = [item for item in scope if item.kind == kind]
        if depth > 0 and self.source.random() < 0.45:
            return self._computed(scope, kind, depth - 1)
        if known and self.source.random() < 0.85:
            return self.source.choice(known)
        return Ref(rows.literal(self.source, kind), kind)

    def exact(self, scope: Scope, kind: str, depth: int = 1) -> Ref:
        """An expression that may be a key."""
        for _ in range(4):
            found = self.of(scope, kind, depth)
            if found.exact:
                return found
        return Ref(rows.literal(self.source, kind), kind)

    def any(self, scope: Scope, depth: int = 1) -> Ref:
        """An expression of any kind, more often a column of the scope."""
        if scope and self.source.random() < 0.6:
            return self.source.choice(scope)
        kinds = [item.kind for item in scope if item.kind != "apx"] or list(KINDS)
        return self.of(scope, self.source.choice(kinds), depth)

    def _computed(self, scope: Scope, kind: str, depth: int) -> Ref:
        one, two = self.of(scope, kind, depth), self.of(scope, kind, depth)
        both = one.exact and two.exact
        match self.source.randint(0, 6):
            case 0:
                condition = self.condition(scope, depth)
                return Ref(f"CASE WHEN {condition} THEN {one.text} ELSE {two.text} END", kind, both)
            case 1:
                return Ref(f"coalesce({one.text}, {two.text})", kind, both)
            case 2:
                return Ref(f"nullif({one.text}, {two.text})", kind, one.exact)
            case _:
                return self._of_kind(scope, kind, one, two)

    def _of_kind(self, scope: Scope, kind: str, one: Ref, two: Ref) -> Ref:
        form = self.source.choice(_FORMS[kind])
        others = {other: self.of(scope, other, 0).text for other in KINDS if f"{{{other}}}" in form}
        exact = kind not in _UNLIKE and (kind != "dec" or (one.exact and two.exact))
        return Ref(form.format(a=one.text, b=two.text, **others), kind, exact)

    # -- conditions ------------------------------------------------------------------------------------------------

    def condition(self, scope: Scope, depth: int = 1) -> str:
        """A condition on the columns of a scope."""
        if depth > 0 and self.source.random() < 0.3:
            one, two = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
            return self.source.choice((f"({one} AND {two})", f"({one} OR {two})", f"NOT ({one})"))
        known = [item for item in scope if item.kind != "apx"]
        column = self.source.choice(known) if known else Ref("1", "int")
        kind = column.kind
        computed = self.of(scope, kind, depth - 1).text if self.source.random() < 0.25 else ""
        value = computed if column.text in computed else column.text
        match self.source.randint(0, 9):
            case 0:
                return f"{value} IS {self.source.choice(('', 'NOT ', 'NOT '))}NULL"
            case 1:
                listed = ", ".join(rows.literal(self.source, kind) for _ in range(2))
                return f"{value} {self.source.choice(('', 'NOT ', 'NOT '))}IN ({listed})"
            case 2 if kind == "text":
                return f"{value} LIKE 'a%'"
            case 3 if kind not in ("bool", "js"):
                low, high = (rows.literal(self.source, kind) for _ in range(2))
                return f"{value} BETWEEN {low} AND {high}"
            case 4 if kind == "bool":
                return value
            case _:
                other = self.of(scope, kind, 0).text if self.source.random() < 0.4 else rows.literal(self.source, kind)
                return f"{value} {self.source.choice(_COMPARED)} {other}"

    def pair(self, left: Scope, right: Scope, equal: bool) -> str | None:
        """A comparison of a column on the left with one on the right; None if no two have one kind."""
        pairs = [
            (one.text, other.text)
            for one in left
            for other in right
            if one.kind == other.kind and one.kind != "apx" and (one.kind != "bool" or not equal)
        ]
        if not pairs:
            return None
        one, other = self.source.choice(pairs)
        if equal:
            return f"{one} {self.source.choice(('=', '=', '=', '=', 'IS NOT DISTINCT FROM'))} {other}"
        return f"{one} {self.source.choice(('<', '>', '<=', '<>'))} {other}"


def only_exact(scope: Sequence[Ref]) -> Scope:
    """The columns that may be keys."""
    return tuple(item for item in scope if item.exact and item.kind != "apx")
