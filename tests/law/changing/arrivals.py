"""Random views WITH (tables = 'arrival'): rows of a stream meet tables as of the end of their own transaction.

The judge keeps the joined rows in a table of its own. A trigger adds them for each row of the stream when its
transaction ends, and the view reads that table. A REPEATABLE READ transaction of PostgreSQL would show the trigger
older tables, so such cases have none that write (``transactions``).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tests.law.changing.relations import From, Named, under
from tests.law.changing.scalars import Ref, Scalars, Scope, only_exact
from tests.law.changing.views import Queries

#: Where the stream stands in the text of joined rows, and these rows in the view's.
_STREAM: Final = "<stream>"
_ROWS: Final = "<rows>"


class ArrivalView(Struct, frozen=True):
    """A view's query in Millstream, the judge's statements, and the view's columns."""

    text: str
    judged: str
    columns: Scope
    reads: frozenset[str]


class Arrivals:
    """Draws such views; ``queries`` collects their constructs."""

    def __init__(self, source: random.Random, queries: Queries) -> None:
        self._source, self._queries = source, queries
        self._scalars = Scalars(source)

    def draw(self, name: str, stream: Named, tables: Sequence[Named], keeps_rows: bool) -> ArrivalView:
        """A view of a stream and some tables, of all rows that there have been if it ``keeps_rows``."""
        inner, columns, reads = self._joined(stream, tables)
        item = From(f"{_ROWS} x", under("x", columns), 14, reads)
        outer = self._queries.above(item)
        shown = ", ".join(f"NEW.{column.text} AS {column.text}" for column in stream.columns)
        there = inner.replace(_STREAM, stream.name)
        arriving = inner.replace(_STREAM, f"(SELECT {shown})")
        judged = (
            f"CREATE TABLE {name}_rows AS {there} WITH {'' if keeps_rows else 'NO '}DATA",
            f"CREATE FUNCTION {name}_arrive() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN INSERT INTO {name}_rows {arriving}; RETURN NULL; END $$",
            f"CREATE CONSTRAINT TRIGGER {name}_arrive AFTER INSERT ON {stream.name} DEFERRABLE INITIALLY DEFERRED"
            f" FOR EACH ROW EXECUTE FUNCTION {name}_arrive()",
            f"CREATE VIEW {name} AS {outer.text.replace(_ROWS, f'{name}_rows')}",
        )
        text = outer.text.replace(_ROWS, f"({there})")
        return ArrivalView(text, "; ".join(judged), outer.columns, reads | {stream.name})

    def _joined(self, stream: Named, tables: Sequence[Named]) -> tuple[str, Scope, frozenset[str]]:
        """The rows of the stream with what the tables say: a query, its columns, and the tables."""
        scope, text = under("q", stream.columns), f"{_STREAM} q"
        reads: frozenset[str] = frozenset()
        for place in range(self._source.choice((0, 1, 1, 1, 2))):
            table, kind = self._source.choice(tables), self._source.choice(("JOIN", "LEFT JOIN"))
            other = under(f"j{place}", table.columns)
            on = self._scalars.pair(other, scope, self._source.random() < 0.85) or "true"
            if self._source.random() < 0.2:
                on += f" AND {self._scalars.condition(scope + other, 0)}"
            text += f" {kind} {table.name} j{place} ON {on}"
            self._queries.seen.append(f"tables as rows arrive: {kind.lower()}")
            scope, reads = scope + other, reads | {table.name}
        conditions = [self._scalars.condition(scope)] if self._source.random() < 0.3 else []
        outputs = [self._scalars.any(scope) for _ in range(self._source.randint(1, 4))]
        if not reads or self._source.random() < 0.25:
            table = self._source.choice(tables)
            reads |= {table.name}
            if self._source.random() < 0.7:
                conditions.append(self._asking(scope, table))
            else:
                outputs.append(self._value(scope, table))
        listed = ", ".join(f"{output.text} AS c{place}" for place, output in enumerate(outputs))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        columns = tuple(Ref(f"c{place}", output.kind, output.exact) for place, output in enumerate(outputs))
        return f"SELECT {listed} FROM {text}{where}", columns, reads

    def _asking(self, scope: Scope, table: Named) -> str:
        """Whether a table has a row that fits."""
        asked = under("e", table.columns)
        negated = self._source.choice(("", "NOT "))
        if self._source.random() < 0.5:
            self._queries.seen.append(f"tables as rows arrive: {negated}EXISTS")
            return f"{negated}EXISTS (SELECT 1 FROM {table.name} e WHERE {self._related(asked, scope)})"
        column = self._source.choice(only_exact(asked) or (Ref("1", "int"),))
        self._queries.seen.append(f"tables as rows arrive: {negated}IN")
        value = self._scalars.exact(scope, column.kind, 0).text
        return f"{value} {negated}IN (SELECT {column.text} FROM {table.name} e)"

    def _value(self, scope: Scope, table: Named) -> Ref:
        """What a table has about a row."""
        asked = under("e", table.columns)
        self._queries.seen.append("tables as rows arrive: scalar subquery")
        number = self._scalars.of(asked, "int", 0).text
        call, kind = self._source.choice((("count(*)", "big"), (f"max({number})", "int"), (f"sum({number})", "big")))
        return Ref(f"(SELECT {call} FROM {table.name} e WHERE {self._related(asked, scope)})", kind)

    def _related(self, asked: Scope, scope: Scope) -> str:
        return self._scalars.pair(asked, scope, self._source.random() < 0.85) or "true"
