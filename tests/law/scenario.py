"""Random scenarios for the law: a stream, a continuous view over it, and what happens in which order.

Owns: Hypothesis strategies for schemas, values, groupings with every supported aggregate, and steps (rows, reads,
restarts, engine switches, changes of a joined table). Knows nothing of servers. Floats are multiples of 1/8, so that
their sums are exact in any order; texts hold what quoting can break.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal

from hypothesis import strategies as st

VALUES: Final[dict[str, st.SearchStrategy[object]]] = {
    "smallint": st.integers(-9, 9),
    "integer": st.integers(-50, 50),
    "bigint": st.integers(-(10**12), 10**12),
    "numeric(12,2)": st.integers(-(10**6), 10**6).map(lambda cents: Decimal(cents).scaleb(-2)),
    "double precision": st.integers(-400, 400).map(lambda eighths: eighths / 8),
    "text": st.text(alphabet="aAbz ,'\"\\\n\té€𝄞", max_size=3),
    "boolean": st.booleans(),
    "date": st.integers(0, 20).map(lambda days: date(2024, 2, 20) + timedelta(days)),
    "timestamp": st.integers(0, 10**9).map(
        lambda micros: datetime(1999, 12, 31) + timedelta(microseconds=micros * 977)
    ),
}
KEYS: Final = ("smallint", "integer", "text", "boolean", "date", "numeric(12,2)")

_NUMBER: Final = ("sum({})", "avg({})", "stddev({})", "variance({})", "stddev_pop({})", "var_pop({})")
_ORDERED: Final = ("min({})", "max({})")
_ANY: Final = (
    "count({})",
    "count(distinct {})",
    "array_agg({})",
    "array_agg({0} order by {0})",
    "sum(1) filter (where {} is null)",
)
AGGREGATES: Final[dict[str, tuple[str, ...]]] = {
    "smallint": (*_NUMBER, *_ORDERED, *_ANY),
    "integer": (
        *_NUMBER,
        *_ORDERED,
        *_ANY,
        "sum({}) filter (where {} > 3)",
        "sum(distinct {})",
        "count(*) filter (where {} < 0)",
        "bit_xor({})",
        "bit_or({}) filter (where {} > 0)",
        "percentile_cont(0.4) within group (order by {})",
        "mode() within group (order by {} desc)",
        "rank(7) within group (order by {})",
    ),
    "bigint": ("sum({})", "avg({})", *_ORDERED, *_ANY),
    "numeric(12,2)": (*_NUMBER, *_ORDERED, *_ANY, "sum({0} * (1 - {0}))"),
    "double precision": ("sum({})", "avg({})", *_ORDERED, "count({})"),
    "text": (*_ORDERED, *_ANY, "string_agg({}, ',')", "string_agg({0}, '-' order by {0} desc)"),
    "boolean": ("bool_and({})", "bool_or({})", "every({})", "count({})", "count(distinct {})"),
    "date": (*_ORDERED, *_ANY),
    "timestamp": (*_ORDERED, "count({})", "count(distinct {})"),
}

#: "settle" waits until background maintenance has caught up, so that the next read is of committed runs alone.
Action = Literal["read", "restart", "crash", "spark", "embedded", "auto", "settle", "dimension"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``columns`` are the stream's types (named c0, c1, ...); a step is an action or rows to insert.

    ``shape`` says what stands around the grouping: nothing, a table joined below it, or a table or window functions
    above it; ``sets`` is what GROUP BY makes of its keys.
    """

    columns: tuple[str, ...]
    keys: tuple[int, ...]
    aggregates: tuple[str, ...]
    where: str
    having: str
    shape: Literal["plain", "below", "below_left", "above", "window"]
    sets: Literal["", "rollup", "cube"]
    dimension: tuple[tuple[int, str], ...]
    steps: tuple[Action | tuple[tuple[object, ...], ...], ...]

    @property
    def declaration(self) -> str:
        """The stream's columns as SQL; k joins the dimension table."""
        return ", ".join(["k integer", *(f"c{number} {name}" for number, name in enumerate(self.columns))])

    def query(self, stream: str, dimension: str, arrival: str = "") -> str:
        """The view's text. ``arrival`` names a column by which array_agg and string_agg shall order explicitly."""
        keys = [f"c{number}" for number in self.keys]
        if self.shape == "above":
            keys = ["k", *keys]
        calls = [_in_order(text, arrival) for text in self.aggregates] if arrival else self.aggregates
        outputs = [*keys, "count(*) as n", *(f"{text} as a{number}" for number, text in enumerate(calls))]
        source = stream
        if self.shape.startswith("below"):
            kind = "left join" if self.shape == "below_left" else "join"
            source = f"{stream} {kind} {dimension} on k = id"
            outputs.append("max(label) as label")
        text = f"select {', '.join(outputs)} from {source}"
        text += f" where {self.where}" if self.where else ""
        text += f" group by {self.sets} ({', '.join(keys)})" if keys else ""
        text += f" having {self.having}" if self.having else ""
        if self.shape == "above":
            text = f"with grouped as ({text}) select g.*, d.label from grouped g left join {dimension} d on g.k = d.id"
        if self.shape == "window":
            part = f"partition by {keys[0]}" if keys else ""
            text = f"select g.*, rank() over ({part} order by n desc) as place, sum(n) over () as rows from ({text}) g"
        return text


def _in_order(call: str, arrival: str) -> str:
    """array_agg(x) as array_agg(x order by arrival)."""
    keeps_arrival = call.startswith(("array_agg", "string_agg")) and "order by" not in call
    return f"{call[:-1]} order by {arrival})" if keeps_arrival else call


@st.composite
def scenarios(draw: st.DrawFn, actions: tuple[Action, ...]) -> Scenario:
    """A scenario of up to a few dozen rows whose steps use only the given actions besides rows."""
    columns = tuple(draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4)))
    usable = [number for number, name in enumerate(columns) if name in KEYS]
    keys = draw(st.lists(st.sampled_from(usable), unique=True, max_size=2)) if usable else []
    choices = sorted(
        text.format(*[f"c{number}"] * 2) for number, name in enumerate(columns) for text in AGGREGATES[name]
    )
    aggregates = draw(st.lists(st.sampled_from(choices), min_size=1, max_size=4, unique=True))
    row = st.tuples(st.integers(1, 5), *(st.none() | VALUES[name] for name in columns))
    rows = st.lists(row, min_size=1, max_size=12).map(tuple)
    steps = draw(st.lists(rows | st.sampled_from(actions), min_size=1, max_size=8)) if actions else [draw(rows)]
    return Scenario(
        columns,
        tuple(keys),
        tuple(aggregates),
        draw(st.sampled_from(("", "", "k > 2", "c0 is not null", "k <> 3 or c0 is null"))),
        draw(st.sampled_from(("", "", "count(*) > 1", "min(k) < 3"))),
        draw(st.sampled_from(("plain", "plain", "below", "below_left", "above", "window"))),
        draw(st.sampled_from(("", "", "", "rollup", "cube"))),
        tuple(enumerate(draw(st.lists(st.text("xyz", max_size=2), max_size=4)), start=1)),
        tuple(steps),
    )
