"""A case from a seed: a schema, views, and transactions with reads of the views in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from tests.law.changing.failures import FailingView, Failures, Policy
from tests.law.changing.relations import Named, Select
from tests.law.changing.rows import as_values, first_rows, literal
from tests.law.changing.scalars import Ref
from tests.law.changing.schemas import ENUM, Table, draw_tables
from tests.law.changing.steps import Case, Step
from tests.law.changing.transactions import Transactions
from tests.law.changing.views import Queries

#: How many transactions a case may have: most faults need few, and some need many.
TRANSACTIONS: Final = (2, 3, 3, 4, 5, 8, 12)


def draw_case(seed: int) -> Case:
    """The case of a seed."""
    steps = tuple(_Drawing(seed).steps())
    uses_enum = any("mood" in step.text for step in steps)
    return Case(seed, (Step("table", ENUM, name="mood"), *steps) if uses_enum else steps)


class _Drawing:
    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)
        self._tables = draw_tables(self._source)
        self._named = [_named(table) for table in self._tables]
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
        self._transactions = Transactions(self._source, self._tables, self._read)

    def steps(self) -> Iterator[Step]:
        """All steps in their order."""
        source = self._source
        for table in self._tables:
            yield Step("table", table.definition(False), judged=_other(table), name=table.name)
        tables = [table for table in self._tables if not table.is_stream]
        known: dict[str, list[str]] = {}
        for table in tables:
            filled = tuple(as_values(table.columns, item) for item in first_rows(source, table, known))
            if filled:
                yield Step("change", f"INSERT INTO {table.name} VALUES {{rows}}", rows=filled, name=table.name)
        in_a_chain = source.random() < 0.3
        for _ in range(source.choice((3, 4, 5)) if in_a_chain else source.choice((1, 2, 2, 3, 4))):
            yield self._view(allow_stream=True)
            if in_a_chain:
                self._queries.prefer(self._named[-1])
        for _ in range(source.choice(TRANSACTIONS)):
            yield from self._transactions.draw()
            if self._of_streams & self._views.keys() and source.random() < 0.25:  # else readers compute what is new
                yield Step("maintain", "")
            yield from (self._read(0, False) for _ in range(source.choice((1, 1, 2))))
            if source.random() < 0.006:
                yield Step("restart", "", server=source.choice(("", "", "b")))
            if source.random() < (0.3 if self._of_streams & self._views.keys() else 0.06):
                yield from self._between()
            yield from self._on_the_other()
        for name in self._views:
            yield self._whole(name)
        yield from self._on_the_other()
        yield from self._rejected()
        yield from (Step("read", f"SELECT * FROM {table.name}", name=table.name) for table in tables)

    def _view(self, allow_stream: bool) -> Step:
        """A view of tables, or of a stream where it is allowed: rows of a stream that keeps none count from the view's
        creation on."""
        streams = [table for table in self._tables if table.is_stream]
        if streams and allow_stream and self._source.random() < 0.25:
            return self._with_failures(self._source.choice(streams))
        name = f"v{len(self._views)}"
        self._queries.seen.clear()
        query = self._queries.failing() if self._source.random() < 0.03 else None
        while query is None or (not allow_stream and query.reads & self._of_streams):
            self._queries.seen.clear()
            query = self._queries.draw(self._source.choice((0, 1, 1, 2, 2)))
        streaming = bool(query.reads & self._of_streams)
        kind = "VIEW" if streaming or self._source.random() < 0.1 else "MATERIALIZED VIEW"
        constructs = [*self._queries.seen, f"CREATE {kind}{self._of_a_stream if streaming else ''}"]
        option = ""
        if self._source.random() < 0.7:  # few rows are computed too quickly to be kept else
            maintained = "maintained, " if kind == "VIEW" and not streaming else ""
            option = f" WITH ({maintained}method = 'incremental')"
            constructs.append("rows that follow changes")
        head = f"CREATE {kind} {name}{option}"
        return self._made(name, head, query, "expression that fails" not in self._queries.seen, constructs)

    def _with_failures(self, stream: Table) -> Step:
        """A view of a stream whose expressions fail on some rows."""
        name = f"v{len(self._views)}"
        tables = [item for item in self._named if any(column.text == "a" for column in item.columns)]
        tables = [item for item in tables if item.name not in self._of_streams]
        table = self._source.choice(tables) if tables else None
        found = self._failures.draw(_named(stream), table)
        policy: Policy = self._source.choice(("null", "null", "skip", "skip", "fail"))
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
        """A view more, REFRESH, an index of a view, another method, engine or policy, or another server."""
        name = self._source.choice(list(self._views))
        streaming = [view for view in self._views if view in self._of_streams]
        match self._source.randint(0, 3 if not streaming else 9):
            case 0:
                yield self._view(allow_stream=self._keeps_rows)
            case 1:
                yield Step("own", f"REFRESH MATERIALIZED VIEW {name}", constructs=("REFRESH",), name=name)
            case 2:
                method = self._source.choice(("auto", "incremental", "recompute"))
                words = f"ALTER VIEW {name} SET (method = '{method}')"
                yield Step("own", words, constructs=("ALTER VIEW SET (method)",), name=name)
            case 3:
                yield Step("own", f"CREATE INDEX ON {name} (c0)", constructs=("CREATE INDEX",), name=name)
            case 4:
                name, engine = self._source.choice(streaming), self._source.choice(("auto", "spark", "embedded"))
                words = f"ALTER VIEW {name} SET (maintenance_engine = '{engine}')"
                yield Step("own", words, constructs=(f"another engine: {engine}",), name=name)
            case 5 | 6:
                yield from self._healed()
            case _:
                name = self._source.choice(streaming)
                self._left.add(name)
                yield from self._moved(name, "" if name in self._away else "b")

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
        exact = [item for item in columns if item.exact and item.kind != "apx"]
        match self._source.randint(0, 9):
            case 0 if exact and self._views[name].form != "failing":
                column = self._source.choice(exact)
                where = f"{column.text} = {literal(self._source, column.kind)}"
                text, read = f"SELECT * FROM {name} WHERE {where}", "read by a column"
            case 1 if exact and len(exact) == len(columns):
                places = ", ".join(str(place) for place in range(1, len(columns) + 1))
                return Step("read", f"SELECT * FROM {name} ORDER BY {places}", session, name=name,
                            constructs=("read in order",), ordered=True)  # fmt: skip
            case 2 if exact and self._views[name].form != "failing":
                key = self._source.choice(exact).text
                text, read = f"SELECT {key}, count(*) FROM {name} GROUP BY {key}", "read with grouping"
            case _:
                text, read = f"SELECT * FROM {name}", "read"
        return Step("read", text, session, name=name, constructs=(read,))


def _other(table: Table) -> str | None:
    return table.definition(True) if table.is_stream else None


def _named(table: Table) -> Named:
    key = table.single_key
    references = tuple((column.name, column.references) for column in table.columns if column.references)
    columns = tuple(Ref(column.name, column.kind) for column in table.columns)
    return Named(table.name, columns, key=key.name if key else "", references=references)
