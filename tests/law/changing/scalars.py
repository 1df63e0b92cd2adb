"""Random expressions over the columns of a scope, none of which fails for any row."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tests.law.changing import rows

#: Kinds of values that have an order and an equality that both databases decide alike. A sum of floats (``apx``) has
#: neither, since it depends on the order of the rows.
KINDS: Final = ("int", "big", "num", "dec", "text", "bool", "date", "ts", "flt", "arr")
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
        a, b, choose = one.text, two.text, self.source.choice
        forms: tuple[str, ...]
        number = self.of(scope, "int", 0).text
        match kind:
            case "int":
                text = self.of(scope, "text", 0).text
                forms = (
                    f"({a} + {b})", f"({a} - 1)", f"abs({a} - {b})", f"({a} % 3)", f"length({text})", f"(-{a})",
                    f"CASE WHEN {b} <> 0 THEN {a} / {b} END", f"greatest({a}, {b})",
                )  # fmt: skip
                return Ref(choose(forms), kind)
            case "big":
                return Ref(choose((f"({a} + 1)", f"({number})::bigint", f"least({a}, {b})")), kind)
            case "num":
                return Ref(choose((f"({a} + 0.50)", f"({a} * 2)", f"({a} - {b})", f"({number})::numeric")), kind, False)
            case "dec":
                return Ref(choose((f"({a} + {b})", f"({a} - 1.25)", f"(-{a})")), kind, one.exact and two.exact)
            case "text":
                forms = (f"({a} || '-')", f"upper({a})", f"({a} || {b})", f"substr({a}, 1, 1)", f"({number})::text")
                return Ref(choose(forms), kind)
            case "bool":
                return Ref(f"({self.condition(scope, 0)})", kind)
            case "date":
                return Ref(choose((f"({a} + 1)", f"({a} - 2)", f"least({a}, {b})")), kind)
            case "ts":
                forms = (f"({a} + interval '1 day')", f"date_trunc('day', {a})", f"greatest({a}, {b})")
                return Ref(choose(forms), kind)
            case "flt":
                return Ref(choose((f"({a} * 2)", f"({a} / 4)", f"({number})::float8", f"abs({a})")), kind)
            case _:
                return Ref(choose((f"({a} || {b})", f"array[{number}, 1]", f"array_append({a}, {number})")), "arr")

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
            case 3 if kind not in ("bool", "arr"):
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
