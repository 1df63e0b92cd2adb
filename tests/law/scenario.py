"""Random scenarios for the law: a stream, a continuous view over it, and a sequence of steps.

Owns: Hypothesis strategies for schemas, values, groupings with every supported aggregate and by windows of event time
with and without retention, and steps (rows, reads, restarts, engine switches, changes of a joined table). Knows nothing
of servers. Floats are multiples of 1/8, so that their sums are exact in any order; texts contain characters that need
quoting.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal

from hypothesis import strategies as st
from msgspec import Struct

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
    "int4range": st.sampled_from(("empty", "(,)", "[1,5)", "[1,4]", "(0,4]", "[3,)", "(,9]", "[5,7)")),
    "int4multirange": st.sampled_from(("{}", "{(,)}", "{[1,5)}", "{[1,3),[4,6)}", "{(0,2],[4,5]}", "{[3,)}", "{(,9]}")),
}
KEYS: Final = ("smallint", "integer", "text", "boolean", "date", "numeric(12,2)", "int4range", "int4multirange")

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
        "bit_and({}::bit(6))",
        "bit_xor({}::bit(40)) filter (where {} > 0)",
        "min(array[{}])",
        "max(array[-{0}, {0}])",
        "percentile_cont(0.4) within group (order by {})",
        "mode() within group (order by {} desc)",
        "rank(7) within group (order by {})",
    ),
    "bigint": ("sum({})", "avg({})", *_ORDERED, *_ANY),
    "numeric(12,2)": (*_NUMBER, *_ORDERED, *_ANY, "sum({0} * (1 - {0}))"),
    "double precision": ("sum({})", "avg({})", *_ORDERED, "count({})"),
    "text": (*_ORDERED, *_ANY, "string_agg({}, ',')", "string_agg({0}, '-' order by {0} desc)"),
    "int4range": (
        *(*_ANY, "range_intersect_agg({})", "range_agg({})", "bool_or({} @> 3)"),
        "sum(upper({})) filter (where {} && '[2,4)')",
    ),
    "int4multirange": (
        *(*_ANY, "range_intersect_agg({})", "range_agg({})", "bool_or({} @> 3)"),
        "range_agg({0} * '{{[2,4)}}') filter (where {0} && '{{[2,4)}}')",
    ),
    "boolean": ("bool_and({})", "bool_or({})", "every({})", "count({})", "count(distinct {})"),
    "date": (*_ORDERED, *_ANY),
    "timestamp": (*_ORDERED, "count({})", "count(distinct {})"),
}

SETS: Final[tuple[Literal["", "rollup", "cube"], ...]] = ("", "", "", "rollup", "cube")


class EventTime(Struct, frozen=True):
    """Windows of ``size`` hours, one beginning every ``slide`` hours, over a column; and the view's retention.

    Without a slide they are sessions, and ``size`` is the gap.
    """

    column: str
    slide: int
    size: int
    retention: int | None
    final: bool

    @property
    def are_plain(self) -> bool:
        """Whether the windows are an ordinary expression."""
        return self.slide == self.size and not self.options

    @property
    def start(self) -> str:
        """The begin of a row's window."""
        if not self.slide:
            return f"session({self.column}, '{self.size} hours')"
        if self.slide == self.size:
            return f"tumble({self.column}, '{self.size} hours')"
        return f"hop({self.column}, '{self.slide} hours', interval '{self.size} hours')"

    @property
    def judged(self) -> str:
        """The equivalent in PostgreSQL, where the relation ``hops`` numbers the windows of a row."""
        return f"date_bin('{self.slide} hours', {self.column}, '2001-01-01') - hops * interval '{self.slide} hours'"

    def sessions(self, source: str, keys: list[str]) -> str:
        """The rows in PostgreSQL with ``began``, the begin of each row's session."""
        over = (
            f"over (partition by {', '.join(keys)} order by {self.column})"
            if keys
            else f"over (order by {self.column})"
        )
        goes_on = f"{self.column} <= before + interval '{self.size} hours'"
        return (
            f"(select *, case when {self.column} is not null then max(case when {goes_on} then null else {self.column} "
            f"end) {over} end as began from (select *, lag({self.column}) {over} as before from {source}) as a) as b"
        )

    @property
    def ends(self) -> str:
        """The end of a window; for sessions, an aggregate over a group's rows."""
        begins = self.judged if self.slide else f"max({self.column})"
        return f"{begins} + interval '{self.size} hours'"

    def in_time(self, stream: str) -> str:
        """The stream's rows that count in PostgreSQL: for sessions with a retention, those that were not too late for
        the rows of earlier transactions. Column ``tx`` numbers the transactions."""
        if self.slide or self.retention is None:
            return stream
        before = f"(select max({self.column}) from {stream} as earlier where earlier.tx < {stream}.tx)"
        age = self.retention + 1
        counts = f"{self.column} is not null and coalesce({self.column} > {before} - interval '{age} hours', true)"
        return f"(select * from {stream} where {counts}) as {stream}"

    @property
    def hops(self) -> str:
        """The numbers of a row's windows."""
        return f"cross join generate_series(0, {-(-self.size // self.slide) - 1}) as hops"

    @property
    def holds(self) -> str:
        """The condition that a row is in a window; a row without a time is in one window."""
        return f"{self.column} < {self.ends} or ({self.column} is null and hops = 0)"

    @property
    def options(self) -> str:
        """The view's WITH options."""
        found = [f"retention = '{self.retention} hours'"] if self.retention is not None else []
        found += ["emit = 'final'"] if self.final else []
        return f"WITH ({', '.join(found)})" if found else ""

    def kept(self, stream: str) -> list[str]:
        """The conditions that the options imply, with a watermark one hour behind."""
        watermark = f"(select max({self.column}) from {stream}) - interval '1 hour'"
        found = [] if self.retention is None else [f"{self.ends} > {watermark} - interval '{self.retention} hours'"]
        return [*found, f"{self.ends} <= {watermark}"] if self.final else found


#: "settle" waits until background maintenance has finished, so that the next read uses committed runs only.
Action = Literal["read", "restart", "crash", "spark", "embedded", "auto", "settle", "dimension"]


class Scenario(Struct, frozen=True):
    """``columns`` are the stream's types (named c0, c1, ...); a step is an action, or rows to insert.

    ``shape`` says what surrounds the grouping: nothing, a table joined below it, or a table or window functions above
    it. ``sets`` is the form of GROUP BY's keys; ``windows`` are one more key.
    """

    columns: tuple[str, ...]
    keys: tuple[int, ...]
    aggregates: tuple[str, ...]
    where: str
    having: str
    shape: Literal["plain", "below", "below_left", "above", "window"]
    sets: Literal["", "rollup", "cube"]
    windows: EventTime | None
    dimension: tuple[tuple[int, str], ...]
    steps: tuple[Action | tuple[tuple[object, ...], ...], ...]

    @property
    def declaration(self) -> str:
        """The stream's columns in SQL; k joins the dimension table."""
        return ", ".join(["k integer", *(f"c{number} {name}" for number, name in enumerate(self.columns))])

    def query(self, stream: str, dimension: str, arrival: str = "") -> str:
        """The view's text. ``arrival`` names a column by which array_agg and string_agg are ordered explicitly."""
        keys = [f"c{number}" for number in self.keys]
        if self.shape == "above":
            keys = ["k", *keys]
        groups = [*keys, "w"] if self.windows else keys
        sessions = self.windows if self.windows and not self.windows.slide else None
        order = f"{sessions.column}, {arrival}" if sessions else arrival
        calls = [_in_order(text, order) for text in self.aggregates] if arrival else self.aggregates
        conditions, having = [self.where] if self.where else [], [self.having] if self.having else []
        outputs = [*keys, "count(*) as n", *(f"{text} as a{number}" for number, text in enumerate(calls))]
        source = self.windows.in_time(stream) if self.windows and arrival else stream
        if self.shape.startswith("below"):
            kind = "left join" if self.shape == "below_left" else "join"
            source = f"{source} {kind} {dimension} on k = id"
            outputs.append("max(label) as label")
        if self.windows:
            outputs.append(f"{self.windows.judged if arrival else self.windows.start} as w")
        if self.windows and arrival and not self.windows.slide:
            source = self.windows.sessions(f"{source} where {_all([*conditions, 'true'])}", keys)
            outputs[-1], conditions = "began as w", []
            having += self.windows.kept(stream)
        elif self.windows and arrival:
            source += f" {self.windows.hops}"
            conditions.append(self.windows.holds)
            having += self.windows.kept(stream)
        text = f"select {', '.join(outputs)} from {source}"
        text += f" where {_all(conditions)}" if conditions else ""
        text += f" group by {self.sets} ({', '.join(groups)})" if groups else ""
        text += f" having {_all(having)}" if having else ""
        if self.shape == "above":
            text = f"with grouped as ({text}) select g.*, d.label from grouped g left join {dimension} d on g.k = d.id"
        if self.shape == "window":
            part = f"partition by {keys[0]}" if keys else ""
            text = f"select g.*, rank() over ({part} order by n desc) as place, sum(n) over () as rows from ({text}) g"
        return text


def _all(conditions: list[str]) -> str:
    return " and ".join(f"({condition})" for condition in conditions)


def _in_order(call: str, arrival: str) -> str:
    """array_agg(x) as array_agg(x order by arrival)."""
    keeps_arrival = call.startswith(("array_agg", "string_agg")) and "order by" not in call
    return f"{call[:-1]} order by {arrival})" if keeps_arrival else call


@st.composite
def _windows(draw: st.DrawFn, columns: tuple[str, ...]) -> EventTime | None:
    """Windows over the first timestamp, if there is one."""
    if "timestamp" not in columns:
        return None
    size = draw(st.sampled_from((6, 24, 60)))
    retention, final = draw(st.sampled_from(((None, False), (48, False), (100, True), (None, True), (0, False))))
    if draw(st.integers(0, 3)) == 0:
        return EventTime(f"c{columns.index('timestamp')}", 0, size, retention, final)
    slide = draw(st.sampled_from((size, size, 24, 25)))
    return EventTime(f"c{columns.index('timestamp')}", min(slide, size), size, retention, final)


@st.composite
def scenarios(draw: st.DrawFn, actions: tuple[Action, ...]) -> Scenario:
    """A scenario of up to a few dozen rows, whose other steps are among the given actions."""
    columns = tuple(draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4)))
    usable = [number for number, name in enumerate(columns) if name in KEYS]
    keys = draw(st.lists(st.sampled_from(usable), unique=True, max_size=2)) if usable else []
    choices = sorted(
        text.format(*[f"c{number}"] * 2) for number, name in enumerate(columns) for text in AGGREGATES[name]
    )
    aggregates = draw(st.lists(st.sampled_from(choices), min_size=1, max_size=4, unique=True))
    windows = draw(_windows(columns))
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
        draw(st.sampled_from(SETS)) if windows is None or windows.are_plain else "",
        windows,
        tuple(enumerate(draw(st.lists(st.text("xyz", max_size=2), max_size=4)), start=1)),
        tuple(steps),
    )
