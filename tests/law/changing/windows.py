"""Random window functions, whose values do not depend on how rows that tie are numbered, or do so for equal rows only.

A window orders by all columns beside its partition where its function numbers rows.
"""

from __future__ import annotations

import random
from typing import Final

from tests.law.changing.scalars import Ref, Scalars, Scope

_ROWS: Final = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS 2 PRECEDING",
    "ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
)
#: Frames that rows with equal orders share.
_PEERS: Final = (
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE UNBOUNDED PRECEDING EXCLUDE GROUP",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
)


class Windows:
    """Draws window functions over a scope whose columns are all exact; ``seen`` collects their constructs."""

    def __init__(self, source: random.Random, scalars: Scalars, seen: list[str]) -> None:
        self._source, self._scalars, self._seen = source, scalars, seen

    def calls(self, scope: Scope) -> list[Ref]:
        """One or two; at most one of them numbers rows that tie: two could do it differently."""
        found = [self._call(scope, self._source.random() < 0.5)]
        if self._source.random() < 0.5:
            found.append(self._call(scope, numbers=False))
        return found

    def _call(self, scope: Scope, numbers: bool) -> Ref:
        part, *others = (item.text for item in scope)
        named = others or [part]
        order = ", ".join(f"{item}{self._source.choice(('', ' DESC', ' NULLS FIRST'))}" for item in named)
        parted = f"PARTITION BY {part} " if self._source.random() < 0.85 else ""
        forms = self._numbering(scope, parted, order) if numbers else self._equal(scope, parted, order, named[0])
        name, text, kind = self._source.choice(forms)
        self._seen.append(f"window: {name}")
        return Ref(text, kind, kind != "num")

    def _numbering(self, scope: Scope, parted: str, order: str) -> tuple[tuple[str, str, str], ...]:
        """Functions whose values differ between rows that tie: such rows are equal if all columns order them."""
        if not parted:
            order = ", ".join(item.text for item in scope)
        value, number = self._source.choice(scope), self._scalars.of(scope, "int", 0).text
        over = f"OVER ({parted}ORDER BY {order})"
        framed = f"OVER ({parted}ORDER BY {order} {self._source.choice(_ROWS)})"
        moved = self._source.choice(("lag({0})", "lead({0})", "lag({0}, 2)", "lead({0}, 1, {0})")).format(value.text)
        return (
            ("row_number", f"row_number() {over}", "big"),
            ("lag, lead", f"{moved} {over}", value.kind),
            ("ntile", f"ntile(3) {over}", "int"),
            ("ROWS frame", f"sum({number}) {framed}", "big"),
            ("ROWS frame", f"count(*) {framed}", "big"),
            ("ROWS frame", f"min({number}) {framed}", "int"),
            ("nth_value", f"nth_value({value.text}, 2) {framed}", value.kind),
        )

    def _equal(self, scope: Scope, parted: str, order: str, first: str) -> tuple[tuple[str, str, str], ...]:
        """Functions that give rows that tie one value. The order by one number has an interval."""
        if not parted:
            order = ", ".join(item.text for item in scope)
        value, number = self._source.choice(scope), self._scalars.of(scope, "int", 0).text
        by_first = f"OVER ({parted}ORDER BY {first})"
        peers = f"OVER ({parted}ORDER BY {first} {self._source.choice(_PEERS)})"
        filtered = f"FILTER (WHERE {self._scalars.condition(scope, 0)})"
        found = (
            ("rank", f"rank() {by_first}", "big"),
            ("dense_rank", f"dense_rank() {by_first}", "big"),
            ("cume_dist", f"cume_dist() {by_first}", "apx"),
            ("percent_rank", f"percent_rank() {by_first}", "apx"),
            ("sum over a partition", f"sum({number}) OVER ({parted.strip()})", "big"),
            ("count with FILTER", f"count(*) {filtered} OVER ({parted.strip()})", "big"),
            ("running sum", f"sum({number}) {by_first}", "big"),
            ("frame of peers", f"sum({number}) {peers}", "big"),
            ("frame of peers", f"count(*) {peers}", "big"),
            ("frame of peers", f"max({number}) {peers}", "int"),
            ("first_value", f"first_value({value.text}) OVER ({parted}ORDER BY {order})", value.kind),
        )
        numbers = [item.text for item in scope if item.kind in ("int", "big")]
        if not numbers:
            return found
        near = f"ORDER BY {numbers[0]} RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING"
        return (*found, ("RANGE by an interval", f"sum({number}) OVER ({parted}{near})", "big"))
