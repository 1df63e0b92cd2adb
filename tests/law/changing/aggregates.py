"""Random aggregates over the columns of a scope, whose results do not depend on the order of rows."""

from __future__ import annotations

import random

from tests.law.changing.scalars import Ref, Scalars, Scope

_SUMS = {"int": "big", "big": "num", "num": "num", "dec": "dec", "flt": "apx"}


class Aggregates:
    """Draws aggregates; ``seen`` collects their constructs."""

    def __init__(self, source: random.Random, scalars: Scalars, seen: list[str]) -> None:
        self._source = source
        self._scalars = scalars
        self._seen = seen

    def any(self, scope: Scope) -> Ref:
        """One aggregate, perhaps with FILTER."""
        found, name = self._call(scope)
        self._seen.append(name)
        if self._source.random() < 0.15:
            self._seen.append("FILTER")
            text = f"{found.text} FILTER (WHERE {self._scalars.condition(scope, 0)})"
            return Ref(text, found.kind, found.exact)
        return found

    def comparable(self, scope: Scope) -> Ref:
        """One whose value can be compared."""
        for _ in range(6):
            found = self.any(scope)
            if found.kind != "apx":
                return found
        return Ref("count(*)", "big")

    def _call(self, scope: Scope) -> tuple[Ref, str]:
        choice = self._source.randint(0, 11)
        value = self._scalars.any(scope)
        x, kind = value.text, value.kind
        match choice:
            case 2 | 3 if kind in _SUMS:
                exact = value.exact and kind != "num" and kind != "flt"
                return Ref(f"sum({x})", _SUMS[kind], exact), "sum"
            case 4 if kind in _SUMS:
                return Ref(f"avg({x})", "apx" if kind == "flt" else "num", False), "avg"
            case 5 | 6 if value.exact and kind not in ("bool", "apx"):
                name = self._source.choice(("min", "max"))
                return Ref(f"{name}({x})", kind), name
            case 7 if value.exact and kind != "apx":
                return Ref(f"count(DISTINCT {x})", "big"), "count(DISTINCT)"
            case 8:
                name = self._source.choice(("bool_or", "bool_and"))
                return Ref(f"{name}({self._scalars.condition(scope, 0)})", "bool"), "bool_or, bool_and"
            case 9:
                text = self._scalars.of(scope, "text", 0).text
                way = self._source.choice(("", " DESC"))
                return Ref(f"string_agg({text}, ',' ORDER BY {text}{way})", "text"), "string_agg with order"
            case 10:
                number = self._scalars.of(scope, "int", 0).text
                return Ref(f"array_agg({number} ORDER BY {number})", "arr"), "array_agg with order"
            case 11 if kind != "apx":
                return Ref(f"count({x})", "big"), "count"
            case _:
                return Ref("count(*)", "big"), "count"
