"""A case from a seed: a schema, views, and transactions with reads of the views in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.law.changing.arrivals import Arrivals
from tests.law.changing.definitions import TableDefinitions, ViewDefinitions, first_definition
from tests.law.changing.failures import FailingView, Failures, Policy
from tests.law.changing.interval_joins import IntervalJoins
from tests.law.changing.relations import Named, Select, named
from tests.law.changing.rows import as_values, first_rows, literal
from tests.law.changing.scalars import only_exact
from tests.law.changing.schemas import ENUM, Table, draw_tables
from tests.law.changing.steps import Case, Step, control
from tests.law.changing.transactions import Transactions
from tests.law.changing.views import Queries

#: The share of cases whose views join the same relations.
ALIKE: Final = 0.2
#: Options that say when a view follows changes.
PACES: Final = (
    ", latency_goal = '1 ms'",
    ", final_work = 0.1",
    ", total_work = 2",
    ", trigger = 'rows 3'",
    ", trigger = 'every 20 ms'",
    ", trigger = 'on read'",
)


class Size(Struct, frozen=True):
    """How many views and transactions a case may have, and how often the views are a chain, each above the one
    before."""

    views: tuple[int, ...]
    transactions: tuple[int, ...]
    chains: float
    chain: tuple[int, ...]


#: With their weights: most faults need one view and few transactions, and some need many of both.
SIZES: Final = {
    Size((1, 1, 1, 2), (1, 2, 2, 3), 0.12, (2,)): 16,
    Size((1, 2, 2, 3), (2, 3, 3, 4), 0.3, (2, 3, 3)): 3,
    Size((1, 2, 2, 3, 4), (3, 4, 5, 8, 12), 0.3, (3, 4, 5)): 1,
}
#: How often a view is read before the first transaction, so that its rows are kept and follow what comes.
FIRST_READS: Final = 0.9


def draw_case(seed: int) -> Case:
    """The case of a seed."""
    steps = tuple(_Drawing(seed).steps())
    uses_enum = any("mood" in step.text for step in steps)
    return Case(seed, (Step("table", ENUM, name="mood"), *steps) if uses_enum else steps)


class _Drawing:
    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)
        (self._size,) = self._source.choices(list(SIZES), list(SIZES.values()))
        self._tables = draw_tables(self._source)
        self._named = [named(table) for table in self._tables]
        self._queries = Queries(self._source, self._named)
        self._views: dict[str, Select] = {}
        #: 1 for a view that reads no other, 2 for one above it, and so on.
        self._depths: dict[str, int] = {}
        self._of_streams = {table.name for table in self._tables if table.is_stream}
        #: A view that is created later has the rows of before, too.
        self._keeps_rows = all(table.keeps_rows for table in self._tables if table.is_stream)
        self._failures = Failures(self._source)
        self._failing: dict[str, FailingView] = {}
        self._policies: dict[str, Policy] = {}
        #: Views that are on another server, and those that have ever been.
        self._away: set[str] = set()
        self._left: set[str] = set()
        #: The steps of views that can be defined anew, in the order of their creation.
        self._steps: dict[str, Step] = {}
        self._table_definitions = TableDefinitions(self._source, self._tables, self._named)
        self._view_definitions = ViewDefinitions(self._source)
        self._arrivals = Arrivals(self._source, self._queries)
        self._has_arrivals = bool(self._of_streams) and self._source.random() < 0.3
        self._interval_joins = IntervalJoins(self._source, self._queries)
        #: Whether the judge says at a transaction's end what its rows meet, so that it must see what is there then.
        self._judged_at_commit = self._has_arrivals or any(table.delay is not None for table in self._tables)
        self._is_begun = False
        self._indexes: list[str] = []
        self._transactions = Transactions(
            self._source, self._tables, self._read, self._in_order, snapshots=not self._judged_at_commit
        )

    def steps(self) -> Iterator[Step]:
        """All steps in their order."""
        source = self._source
        views = list(self._first_views())
        self._is_begun = True
        self._keep_tables(frozenset[str]().union(*(view.of for view in views)))
        yield from self._schema()
        yield from views
        yield from (self._whole(view.name) for view in views if source.random() < FIRST_READS)
        for _ in range(source.choice(self._size.transactions)):
            yield from self._transactions.draw()
            if self._of_streams & self._views.keys() and source.random() < 0.25:  # else readers compute what is new
                yield Step("maintain", "")
            yield from (self._read(0, False) for _ in range(source.choice((0, 0, 1))))
            if source.random() < 0.004:
                yield Step("restart", "", server=source.choice(("", "", "b")))
            if source.random() < (0.2 if self._of_streams & self._views.keys() else 0.1):
                yield from self._between()
            if source.random() < 0.1:
                yield from self._defined()
            yield from self._on_the_other()
        for name in self._views:
            yield self._whole(name)
        yield from self._on_the_other()
        yield from self._rejected()
        for table in self._tables:
            if not table.is_stream and source.random() < 0.2:
                yield Step("read", f"SELECT * FROM {table.name}", name=table.name)

    def _first_views(self) -> Iterator[Step]:
        """The views that are there before the first transaction."""
        in_a_chain = self._source.random() < self._size.chains
        are_alike = not in_a_chain and self._source.random() < ALIKE
        if are_alike:
            self._queries.join_alike()
        numbers = self._size.chain if in_a_chain else (2, 3, 4) if are_alike else self._size.views
        for _ in range(self._source.choice(numbers)):
            yield self._view(allow_stream=True)
            if in_a_chain:
                self._queries.prefer(self._named[-1])

    def _keep_tables(self, read: frozenset[str]) -> None:
        """The tables that views read stay, with those to which they refer, and at least one that is no stream."""
        tables = [table.name for table in self._tables if not table.is_stream]
        kept = {*read} if read.intersection(tables) else {*read, self._source.choice(tables)}
        for table in reversed(self._tables):  # each refers to earlier ones
            if table.name in kept:
                kept |= {column.references for column in table.columns}
        self._tables[:] = [table for table in self._tables if table.name in kept]
        self._named[:] = [item for item in self._named if item.name in kept or item.name in self._views]

    def _schema(self) -> Iterator[Step]:
        """The tables with their first rows, mostly in one transaction."""
        together = self._source.random() < 0.8
        if together:
            yield control("BEGIN")
        for table in self._tables:
            yield Step("table", table.definition(False), judged=_other(table), name=table.name)
        known: dict[str, list[str]] = {}
        for table in self._tables:
            rows = () if table.is_stream else first_rows(self._source, table, known)
            if rows:
                filled = tuple(as_values(table.columns, item) for item in rows)
                yield Step("change", f"INSERT INTO {table.name} VALUES {{rows}}", rows=filled, name=table.name)
        if together:
            yield control("COMMIT")

    def _view(self, allow_stream: bool) -> Step:
        """A view of tables, or of a stream where it is allowed: rows of a stream that keeps none count from the view's
        creation on."""
        streams = [table for table in self._tables if table.is_stream]
        if not self._is_begun and (found := self._of_intervals(streams)) is not None:
            return found
        if streams and allow_stream and self._source.random() < 0.25:
            return self._with_failures(self._source.choice(streams))
        if streams and allow_stream and self._has_arrivals and self._source.random() < 0.4:
            return self._as_rows_arrive(self._source.choice(streams))
        name = f"v{len(self._views)}"
        self._queries.seen.clear()
        query = self._queries.failing() if self._source.random() < 0.03 else None
        while query is None or (not allow_stream and query.reads & self._of_streams):
            self._queries.seen.clear()
            query = self._queries.draw(self._source.choice((0, 0, 1, 1, 2)))
        streaming = bool(query.reads & self._of_streams)
        kind = "VIEW" if streaming or self._source.random() < 0.1 else "MATERIALIZED VIEW"
        constructs = [*self._queries.seen, f"CREATE {kind}{self._of_a_stream if streaming else ''}"]
        option = ""
        if self._source.random() < 0.8:  # few rows are computed too quickly to be kept else
            is_continuous = any(table.is_stream and table.name in query.reads for table in self._tables)
            maintained = "maintained, " if kind == "VIEW" and not is_continuous else ""
            method = self._source.choice(("incremental", "incremental", "higher_order", "delta"))
            pace = self._source.choice(("", "", *PACES))
            option = f" WITH ({maintained}method = '{method}'{pace})"
            constructs.append("rows that follow changes")
            constructs += ["higher-order views"] if method == "higher_order" else []
        head = f"CREATE {kind} {name}{option}"
        return self._defined_anew(
            self._made(name, head, query, "expression that fails" not in self._queries.seen, constructs)
        )

    def _defined_anew(self, step: Step) -> Step:
        """A view that may be, since the judge has a query of the same rows later, too."""
        if self._keeps_rows or not step.of & self._of_streams:
            self._steps[step.name] = step
        return step

    def _as_rows_arrive(self, stream: Table) -> Step:
        """A view of a stream's rows with what tables say when they arrive."""
        name, tables = f"v{len(self._views)}", [named(table) for table in self._tables if not table.is_stream]
        self._queries.seen.clear()
        found = self._arrivals.draw(name, named(stream), tables, stream.keeps_rows)
        more = ", method = 'incremental'" if self._source.random() < 0.5 else ""
        head = f"CREATE VIEW {name} WITH (tables = 'arrival'{more})"
        constructs = [*self._queries.seen, f"CREATE VIEW{self._of_a_stream} with tables as rows arrive"]
        query = Select(found.text, found.columns, 14, found.reads, "filter")
        return replace(self._made(name, head, query, True, constructs), judged=found.judged)

    def _of_intervals(self, streams: list[Table]) -> Step | None:
        """A view of streams whose times bound each other; None for another one. It has all rows that come."""
        times = [table for table in streams if any(column.is_time for column in table.columns)]
        if not times or self._source.random() < 0.4:
            return None
        self._queries.seen.clear()
        name, tables = f"v{len(self._views)}", [named(table) for table in self._tables if not table.is_stream]
        found = self._interval_joins.draw(times, tables)
        if found is None:
            return None
        option = " WITH (method = 'incremental')" if self._source.random() < 0.5 else ""
        constructs = [*self._queries.seen, f"CREATE VIEW{self._of_a_stream}"]
        return self._made(name, f"CREATE VIEW {name}{option}", found.query, True, constructs, found.judged)

    def _with_failures(self, stream: Table) -> Step:
        """A view of a stream whose expressions fail on some rows."""
        name = f"v{len(self._views)}"
        tables = [item for item in self._named if any(column.text == "a" for column in item.columns)]
        tables = [item for item in tables if item.name not in self._of_streams]
        policy: Policy = self._source.choice(("null", "null", "skip", "skip", "fail"))
        # PostgreSQL need not compute what fails beside an empty table
        table = self._source.choice(tables) if tables and policy != "fail" else None
        found = self._failures.draw(named(stream), table)
        options = [] if policy == "fail" else [f"on_error = '{policy}'"]
        options += ["method = 'incremental'"] if self._source.random() < 0.5 else []
        head = f"CREATE VIEW {name}" + (f" WITH ({', '.join(options)})" if options else "")
        construct = f"rows that fail in {found.place}: {policy}"
        query = Select(found.text, found.columns, 14, found.reads, "filter" if policy != "fail" else "failing")
        self._failing[name] = found
        self._policies[name] = policy
        constructs = [construct, f"CREATE VIEW{self._of_a_stream}"]
        return self._made(name, head, query, policy != "fail", constructs, found.judged[policy])

    @property
    def _of_a_stream(self) -> str:
        return f" of a stream{' that keeps its rows' if self._keeps_rows else ''}"

    def _made(
        self, name: str, head: str, query: Select, may_be_read: bool, constructs: list[str], judged: str | None = None
    ) -> Step:
        """A view that others may read, unless one of its expressions fails."""
        streaming = bool(query.reads & self._of_streams)
        self._depths[name] = 1 + max((self._depths.get(other, 0) for other in query.reads), default=0)
        if self._depths[name] > 1:
            below = " of streams" if streaming else ""
            constructs.append(f"view over views{below}, depth {min(self._depths[name], 5)}")
        self._views[name] = query
        if streaming:
            self._of_streams.add(name)
        if may_be_read:
            self._named.append(Named(name, query.columns, min(query.size, 60)))
        return Step(
            "view",
            f"{head} AS {query.text}",
            judged=f"CREATE VIEW {name} AS {judged or query.text}",
            name=name,
            constructs=tuple(dict.fromkeys(constructs)),
            of=query.reads,
        )

    def _between(self) -> Iterator[Step]:
        """A view more, REFRESH, EXPLAIN, an index of a view, another method, engine or policy, or another server."""
        name = self._source.choice(list(self._views))
        streaming = [view for view in self._views if view in self._of_streams]
        match self._source.randint(0, 5 if not streaming else 11):
            case 0:
                yield self._view(allow_stream=self._keeps_rows)
            case 1:
                yield Step("own", f"REFRESH MATERIALIZED VIEW {name}", constructs=("REFRESH",), name=name)
            case 2:
                method = self._source.choice(("auto", "incremental", "higher_order", "delta", "recompute"))
                pace = "" if self._source.random() < 0.7 else self._source.choice(PACES)
                words = f"ALTER VIEW {name} SET (method = '{method}'{pace})"
                yield Step("own", words, constructs=("ALTER VIEW SET (method)",), name=name)
            case 3:
                yield self._index(name)
            case 4:
                option = self._source.choice(("SET (refresh_policy = 'incremental')", "RESET (refresh_policy)",
                                              "RESET (method)"))  # fmt: skip
                yield Step("own", f"ALTER VIEW {name} {option}", constructs=(f"ALTER VIEW {option}",), name=name)
            case 5:
                yield Step("own", f"EXPLAIN SELECT * FROM {name}", constructs=("EXPLAIN",), name=name)
            case 6:
                name, engine = self._source.choice(streaming), self._source.choice(("auto", "spark", "embedded"))
                words = f"ALTER VIEW {name} SET (maintenance_engine = '{engine}')"
                yield Step("own", words, constructs=(f"another engine: {engine}",), name=name)
            case 7 | 8:
                yield from self._healed()
            case _:
                name = self._source.choice(streaming)
                self._left.add(name)
                yield from self._moved(name, "" if name in self._away else "b")

    def _index(self, view: str) -> Step:
        """A view gets an index, or one goes."""
        if self._indexes and self._source.random() < 0.4:
            index = self._indexes.pop()
            return Step("own", f"DROP INDEX {index}", constructs=("DROP INDEX",), name=view)
        columns = [item.text for item in self._views[view].columns]
        chosen = self._source.sample(columns, min(len(columns), self._source.choice((1, 1, 2))))
        self._indexes.append(index := f"i{len(self._indexes)}_{view}")
        words = f"CREATE INDEX {index} ON {view} ({', '.join(chosen)})"
        return Step("own", words, constructs=("CREATE INDEX",), name=view)

    def _defined(self) -> Iterator[Step]:
        """A table or a view has another definition; then all views are read."""
        names = [name for name in self._steps if name not in self._left]
        way = self._source.random()
        if self._away:  # tables of a view that is elsewhere stay as they are (55000)
            return
        if not names or way < 0.55:
            renamed = self._table_definitions.renamed
            yield from self._table_definitions.draw(may_rename=not self._has_arrivals)
            if renamed != self._table_definitions.renamed:
                self._steps.clear()  # their texts have other names
        elif way < 0.8:
            name = self._source.choice(names)
            above = self._above(name)
            if not above & self._left:
                again = [step for other, step in self._steps.items() if other in above]
                yield from self._view_definitions.created_again(name, again)
        else:
            name = self._source.choice(names)
            step = self._view_definitions.replaced(name, self._steps[name], self._views[name].columns)
            if step is not None:
                self._steps[name] = first_definition(step)
                yield step
        yield from (self._whole(name) for name in self._views if name not in self._away)

    def _above(self, name: str) -> set[str]:
        """A view and all that stand on it."""
        found = {name}
        for other, view in self._views.items():
            if view.reads & found:
                found.add(other)
        return found

    def _on_the_other(self) -> Iterator[Step]:
        """Reads on the server to which views have gone; some come back."""
        for name in sorted(self._away):
            if self._source.random() < 0.5:
                yield replace(self._whole(name), server="b")
            if self._source.random() < 0.2:
                yield from self._moved(name, "")

    def _moved(self, name: str, server: str) -> Iterator[Step]:
        """A view that goes to a server, with reads there and at home."""
        (self._away.add if server else self._away.discard)(name)
        yield Step("migrate", "", name=name, server=server)
        for where in ("", "b"):
            yield replace(self._whole(name), server=where)

    def _healed(self) -> Iterator[Step]:
        """A view that fails, or may fail, gets another policy."""
        failing = [name for name, policy in self._policies.items() if policy == "fail" and name not in self._left]
        if not failing:
            return
        name, policy = self._source.choice(failing), self._source.choice(("null", "skip"))
        self._policies[name] = policy
        yield Step(
            "alter",
            f"ALTER VIEW {name} SET (on_error = '{policy}')",
            judged=f"CREATE OR REPLACE VIEW {name} AS {self._failing[name].judged[policy]}",
            constructs=(f"ALTER VIEW SET (on_error = '{policy}')",),
            name=name,
        )
        yield self._whole(name)

    def _whole(self, name: str) -> Step:
        """A read of all of a view's rows."""
        return Step("read", f"SELECT * FROM {name}", name=name, constructs=("read",))

    def _rejected(self) -> Iterator[Step]:
        """The number of rows that views have left out. Views that move leave these behind."""
        for name, policy in self._policies.items():
            if policy == "skip" and name not in self._left:
                counted = f"SELECT count(*) FROM millstream.rejected WHERE view LIKE '%.{name}'"
                yield Step("read", counted, judged=self._failing[name].rejected, name=name, constructs=("rejected",))

    def _read(self, session: int, only_tables: bool) -> Step:
        """A read of a view: all rows, in order, some by a column, or grouped."""
        names = [name for name in self._views if not (only_tables and name in self._of_streams)]
        if not names:
            table = self._source.choice([table for table in self._tables if not table.is_stream])
            return Step("read", f"SELECT * FROM {table.name}", session, name=table.name)
        name = self._source.choice(names)
        columns = self._views[name].columns
        exact = only_exact(columns)
        match self._source.randint(0, 9):
            case 0 if exact and self._views[name].form != "failing":
                column = self._source.choice(exact)
                where = f"{column.text} = {literal(self._source, column.kind)}"
                text, read = f"SELECT * FROM {name} WHERE {where}", "read by a column"
            case 1 if exact and len(exact) == len(columns):
                return self._ordered(name, session)
            case 2 if exact and self._views[name].form != "failing":
                key = self._source.choice(exact).text
                text, read = f"SELECT {key}, count(*) FROM {name} GROUP BY {key}", "read with grouping"
            case _:
                text, read = f"SELECT * FROM {name}", "read"
        return Step("read", text, session, name=name, constructs=(read,))

    def _in_order(self, session: int) -> Step | None:
        """A read of all rows of some view in their order; None if there is none that has one and cannot fail."""
        names = [
            name
            for name, view in self._views.items()
            if view.form != "failing" and len(only_exact(view.columns)) == len(view.columns)
        ]
        return self._ordered(self._source.choice(names), session) if names else None

    def _ordered(self, name: str, session: int) -> Step:
        places = ", ".join(str(place) for place in range(1, len(self._views[name].columns) + 1))
        text = f"SELECT * FROM {name} ORDER BY {places}"
        return Step("read", text, session, name=name, constructs=("read in order",), ordered=True)


def _other(table: Table) -> str | None:
    return table.definition(True) if table.is_stream else None
