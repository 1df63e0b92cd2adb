"""Random aggregates over the columns of a scope, whose results do not depend on the order of rows."""

from __future__ import annotations

import random

from tests.law.changing.scalars import Ref, Scalars, Scope

_SUMS = {"small": "big", "int": "big", "big": "num", "num": "num", "dec": "dec", "flt": "apx", "iv": "iv"}
#: Kinds without min and max.
_WITHOUT_LEAST = ("bool", "js", "uuid", "range")


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
        value = self._scalars.any(scope)
        x, kind = value.text, value.kind
        is_key = value.exact and kind != "apx"
        match self._source.randint(0, 18):
            case 2 | 3 if kind in _SUMS:
                exact = value.exact and kind not in ("num", "flt", "iv")
                return Ref(f"sum({x})", _SUMS[kind], exact), "sum"
            case 4 if kind in _SUMS:
                average = {"flt": "apx", "iv": "iv"}.get(kind, "num")
                return Ref(f"avg({x})", average, False), "avg"
            case 5 | 6 if is_key and kind not in _WITHOUT_LEAST:
                name = self._source.choice(("min", "max"))
                return Ref(f"{name}({x})", kind), name
            case 7 | 17 if is_key:
                return Ref(f"count(DISTINCT {x})", "big"), "count(DISTINCT)"
            case 8:
                name = self._source.choice(("bool_or", "bool_and", "every"))
                return Ref(f"{name}({self._scalars.condition(scope, 0)})", "bool"), "bool_or, bool_and"
            case 9:
                return self._text(self._scalars.of(scope, "text", 0).text)
            case 10:
                return self._list(self._scalars.of(scope, "int", 0).text)
            case 11 if kind != "apx":
                return Ref(f"count({x})", "big"), "count"
            case 12 if is_key and kind not in ("arr", "js"):
                share = self._source.choice(("0.5", "0.25", "0", "1"))
                return Ref(f"percentile_disc({share}) WITHIN GROUP (ORDER BY {x})", kind), "percentile_disc"
            case 13:
                number = self._scalars.of(scope, "int", 0).text
                share = self._source.choice(("0.5", "0.3"))
                return Ref(f"percentile_cont({share}) WITHIN GROUP (ORDER BY {number})", "apx"), "percentile_cont"
            case 14 if is_key:
                return Ref(f"mode() WITHIN GROUP (ORDER BY {x})", kind), "mode"
            case 15:
                return self._of_numbers(self._scalars.of(scope, "int", 0).text)
            case 16:
                number = self._scalars.of(scope, "int", 0).text
                name = self._source.choice(("rank", "dense_rank"))
                return Ref(f"{name}(2) WITHIN GROUP (ORDER BY {number})", "big"), f"{name} within group"
            case _:
                return Ref("count(*)", "big"), "count"

    def _text(self, text: str) -> tuple[Ref, str]:
        way = self._source.choice(("", " DESC"))
        if self._source.random() < 0.3 and not text.startswith("'"):  # PostgreSQL: an untyped constant is another one
            return Ref(f"string_agg(DISTINCT {text}, '-' ORDER BY {text}{way})", "text"), "string_agg(DISTINCT)"
        return Ref(f"string_agg({text}, ',' ORDER BY {text}{way})", "text"), "string_agg with order"

    def _list(self, number: str) -> tuple[Ref, str]:
        forms = (
            (f"array_agg({number} ORDER BY {number})", "arr", "array_agg with order"),
            (f"array_agg({number} ORDER BY {number} DESC NULLS LAST)", "arr", "array_agg with order"),
            (f"array_agg(DISTINCT {number} ORDER BY {number})", "arr", "array_agg(DISTINCT)"),
            (f"jsonb_agg({number} ORDER BY {number})", "js", "jsonb_agg with order"),
        )
        text, kind, name = self._source.choice(forms)
        return Ref(text, kind), name

    def _of_numbers(self, number: str) -> tuple[Ref, str]:
        forms = (
            (f"stddev({number})", "apx", "variances"),  # in groups of 100 rows its value does not tell its decimals
            (f"var_pop({number})", "apx", "variances"),
            (f"bit_or({number})", "int", "bit aggregates"),
            (f"bit_xor({number})", "int", "bit aggregates"),
            (f"sum(DISTINCT {number})", "big", "sum(DISTINCT)"),
            (f"avg(DISTINCT {number})", "num", "avg(DISTINCT)"),
            (f"regr_count({number}, {number} + 1)", "big", "regr_count"),
            ("sum(2)", "big", "aggregates of constants"),
            ("max('x'::text)", "text", "aggregates of constants"),
            ("count(NULL)", "big", "aggregates of constants"),
        )
        text, kind, name = self._source.choice(forms)
        return Ref(text, kind, kind != "num"), name
