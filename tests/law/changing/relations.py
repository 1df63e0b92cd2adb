"""What stands in FROM: tables, views, subqueries, VALUES, unnest, and joins of these."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from msgspec import Struct

from tests.law.changing import rows
from tests.law.changing.scalars import Ref, Scalars, Scope
from tests.law.changing.schemas import Table

#: Joins beyond this estimate of rows become a single relation instead.
MOST: Final = 600
#: The rows that a table is estimated to have.
_TABLE: Final = 14
_JOINS: Final = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


class Select(Struct, frozen=True):
    """A query whose columns are named c0, c1, ...; ``form`` is its outermost construct, ``reads`` are relations."""

    text: str
    columns: tuple[Ref, ...]
    size: int
    reads: frozenset[str]
    form: str


class Named(Struct, frozen=True):
    """A table or view; ``references`` says which columns reference which other table's key. It ``has_more`` columns
    where some are not for queries."""

    name: str
    columns: tuple[Ref, ...]
    size: int = _TABLE
    key: str = ""
    references: tuple[tuple[str, str], ...] = ()
    has_more: bool = False


def named(table: Table) -> Named:
    """A table as what queries read. The times of events are for ``interval_joins``: a condition on those of two
    streams leaves out late rows."""
    key = table.single_key
    references = tuple((column.name, column.references) for column in table.columns if column.references)
    columns = tuple(Ref(column.name, column.kind) for column in table.columns if not column.is_time)
    has_more = len(columns) < len(table.columns)
    return Named(table.name, columns, key=key.name if key else "", references=references, has_more=has_more)


class From(Struct, frozen=True):
    """An item of FROM and the columns that it gives."""

    text: str
    scope: Scope
    size: int
    reads: frozenset[str]
    form: str = ""
    table: Named | None = None
    alias: str = ""


class Relations:
    """Draws items of FROM over named relations; ``seen`` collects their constructs."""

    def __init__(
        self,
        source: random.Random,
        named: Sequence[Named],
        scalars: Scalars,
        seen: list[str],
        query: Callable[[int], Select],
    ) -> None:
        self._source, self._named, self._scalars, self._seen = source, named, scalars, seen
        self._query = query
        self._names = (f"q{number}" for number in count())
        #: A relation that is drawn more often than others.
        self.preferred: Named | None = None

    def alias(self) -> str:
        """A new name."""
        return next(self._names)

    def one(self, depth: int) -> From:
        """A table, a view, a subquery, or something else that has no join."""
        if depth > 0 and self._source.random() < 0.4:
            self._seen.append("subquery in FROM")
            return self.nested(self._query(depth - 1))
        chance = self._source.random()
        if chance < 0.04:
            return self._values()
        if chance < 0.1:
            return self._unnested()
        if chance < 0.13:
            return self._repeated()
        if chance < 0.17:
            return self._using()
        if chance < 0.19:
            return self._of_documents()
        if self.preferred is not None and self._source.random() < 0.6:
            return self.plain(self.preferred)
        return self.plain(self._source.choice(self._named))

    def plain(self, found: Named) -> From:
        """A table or a view under a new name."""
        alias = self.alias()
        scope = under(alias, found.columns)
        return From(f"{found.name} {alias}", scope, found.size, frozenset((found.name,)), "table", found, alias)

    def nested(self, query: Select, lateral: bool = False) -> From:
        """A query as an item of FROM."""
        alias = self.alias()
        text = f"{'LATERAL ' if lateral else ''}({query.text}) {alias}"
        return From(text, under(alias, query.columns), query.size, query.reads, query.form, alias=alias)

    def any(self, depth: int) -> From:
        """One item, or two or three that are joined."""
        found = self.one(depth)
        while self._source.random() < 0.4:
            others = self._linked(found) if self._source.random() < 0.5 else []
            other = self.plain(self._source.choice(others)) if others else self.one(depth)
            if self._source.random() < 0.15:
                self._seen.append("join within a join")
                inner = self.joined(other, self.one(0))
                other = (
                    From(f"({inner.text})", inner.scope, inner.size, inner.reads, inner.form)
                    if (inner is not other)
                    else other
                )
            found = self.joined(found, other)
        return found

    def _linked(self, item: From) -> list[Named]:
        """The tables that an item's table references or is referenced by."""
        table = item.table
        if table is None:
            return []
        targets = {target for _, target in table.references}
        return [
            other
            for other in self._named
            if other.name in targets or any(target == table.name for _, target in other.references)
        ]

    def joined(self, left: From, right: From) -> From:
        """A join, by keys and foreign keys where both sides have them."""
        if left.size * right.size > MOST * 4:
            return left
        text, name, size = self._join(left, right)
        self._seen.append(name)
        if left.table is not None and right.table is not None and left.table.name == right.table.name:
            self._seen.append("self join")
        scope, reads = left.scope + right.scope, left.reads | right.reads
        return From(text, scope, min(size, MOST), reads, "join")

    def _join(self, left: From, right: From) -> tuple[str, str, int]:
        kind = self._source.choice(_JOINS)
        equality = _of_keys(left, right) if self._source.random() < 0.6 else None
        if equality is not None:
            self._seen.append("join by a foreign key")
        equality = equality or self._scalars.pair(left.scope, right.scope, True)
        product = left.size * right.size
        if equality is None or (self._source.random() < 0.15 and kind != "FULL JOIN" and product < MOST):
            other = self._scalars.pair(left.scope, right.scope, False) if kind != "FULL JOIN" else None
            if other is None:
                return f"{left.text} CROSS JOIN {right.text}", "cross join", product
            return f"{left.text} {kind} {right.text} ON {other}", f"theta {kind.lower()}", product
        size = 3 * max(left.size, right.size)
        if kind != "FULL JOIN" and self._source.random() < 0.3:
            more = self._scalars.condition(left.scope + right.scope, 0)
            name = f"{kind.lower()} with a further condition"
            return f"{left.text} {kind} {right.text} ON {equality} AND {more}", name, size
        if kind == "FULL JOIN" and " IS NOT " in equality:
            kind = "LEFT JOIN"
        return f"{left.text} {kind} {right.text} ON {equality}", f"{'inner ' * (kind == 'JOIN')}{kind.lower()}", size

    def _values(self) -> From:
        self._seen.append("VALUES")
        alias, kinds = self.alias(), ("int", self._source.choice(("text", "int", "date", "dec")))
        listed = ", ".join(
            f"({', '.join(rows.literal(self._source, kind) for kind in kinds)})"
            for _ in range(self._source.randint(1, 4))
        )
        scope = tuple(Ref(f"{alias}.x{place}", kind) for place, kind in enumerate(kinds))
        names = ", ".join(f"x{place}" for place in range(len(kinds)))
        return From(f"(VALUES {listed}) {alias} ({names})", scope, 4, frozenset(), "values", alias=alias)

    def _unnested(self) -> From:
        """A relation's rows, once for each element of an array."""
        item = self.plain(self._source.choice(self._named))
        arrays = [column.text for column in item.scope if column.kind == "arr"]
        numbers = [column.text for column in item.scope if column.kind == "int"]
        if not arrays and not numbers:
            return item
        self._seen.append("unnest")
        array = self._source.choice(arrays) if arrays else f"array[{self._source.choice(numbers)}, 1, NULL]"
        alias = self.alias()
        scope = (*item.scope, Ref(f"{alias}.e", "int"))
        if self._source.random() < 0.3:
            self._seen.append("WITH ORDINALITY")
            call, scope = f"unnest({array}) WITH ORDINALITY {alias} (e, o)", (*scope, Ref(f"{alias}.o", "big"))
        else:
            call = f"unnest({array}) {alias} (e)"
        join = self._source.choice(("CROSS JOIN {}", "LEFT JOIN {} ON true")).format(call)
        return From(f"{item.text} {join}", scope, item.size * 2, item.reads, "unnest")

    def _repeated(self) -> From:
        """A relation's rows, as often as a column says, or once for each of two columns."""
        item = self.plain(self._source.choice(self._named))
        numbers = [column.text for column in item.scope if column.kind == "int"]
        if not numbers:
            return item
        alias, one, two = self.alias(), self._source.choice(numbers), self._source.choice(numbers)
        if self._source.random() < 0.5:
            self._seen.append("generate_series")
            call = f"generate_series(1, least({one}, 3)) {alias} (e)"
        else:
            self._seen.append("LATERAL VALUES")
            call = f"LATERAL (VALUES ({one}), ({two} + 1)) {alias} (e)"
        scope = (*item.scope, Ref(f"{alias}.e", "int"))
        return From(f"{item.text} CROSS JOIN {call}", scope, item.size * 2, item.reads, "unnest")

    def _of_documents(self) -> From:
        """A relation's rows, once for each part of a document or for each place of two lists."""
        item = self.plain(self._source.choice(self._named))
        documents = [column.text for column in item.scope if column.kind == "js"]
        arrays = [column.text for column in item.scope if column.kind == "arr"]
        alias, join = self.alias(), self._source.choice(("CROSS JOIN {}", "LEFT JOIN {} ON true"))
        if documents:
            document = self._source.choice(documents)
            kind, name, columns = self._source.choice(
                (
                    ("object", "jsonb_each", (("k", "text"), ("v", "js"))),
                    ("array", "jsonb_array_elements", (("v", "js"),)),
                )
            )
            self._seen.append(name)
            guarded = f"CASE WHEN jsonb_typeof({document}) = '{kind}' THEN {document} END"
            call = f"{name}({guarded}) {alias} ({', '.join(column for column, _ in columns)})"
        elif arrays:
            columns = (("e", "int"), ("f", "int"))
            self._seen.append("ROWS FROM")
            call = f"ROWS FROM (unnest({self._source.choice(arrays)}), generate_series(1, 2)) {alias} (e, f)"
        else:
            return item
        scope = (*item.scope, *(Ref(f"{alias}.{column}", kind) for column, kind in columns))
        return From(f"{item.text} {join.format(call)}", scope, item.size * 2, item.reads, "unnest")

    def _using(self) -> From:
        """A join of two relations by a column that both have."""
        left, right = (self.plain(self._source.choice(self._named)) for _ in range(2))
        names = {item.text.partition(".")[2]: item for item in left.scope if item.exact and item.kind != "apx"}
        both = [
            item.text.partition(".")[2]
            for item in right.scope
            if (found := names.get(item.text.partition(".")[2])) is not None and found.kind == item.kind and item.exact
        ]
        if not both or any(item.table is not None and item.table.has_more for item in (left, right)):
            return left  # the new names are given by place
        name, kind, alias = self._source.choice(both), self._source.choice(_JOINS), self.alias()
        self._seen.append(f"{kind.lower()} with USING")
        rest = [item for side in (left, right) for item in side.scope if item.text.partition(".")[2] != name]
        items = (names[name], *rest)
        listed = ", ".join(f"x{place}" for place in range(len(items)))
        scope = tuple(Ref(f"{alias}.x{place}", item.kind, item.exact) for place, item in enumerate(items))
        text = f"({left.text} {kind} {right.text} USING ({name})) AS {alias} ({listed})"
        return From(text, scope, 3 * left.size, left.reads | right.reads, "join", alias=alias)


def under(alias: str, columns: Sequence[Ref]) -> Scope:
    """Columns as those of an item of FROM."""
    return tuple(Ref(f"{alias}.{item.text}", item.kind, item.exact) for item in columns)


def _of_keys(left: From, right: From) -> str | None:
    """The equality of a foreign key between two tables."""
    for one, other in ((left, right), (right, left)):
        if one.table is None or other.table is None or not other.table.key:
            continue
        for column, target in one.table.references:
            if target == other.table.name:
                return f"{one.alias}.{column} = {other.alias}.{other.table.key}"
    return None
