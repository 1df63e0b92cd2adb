"""Random queries for views, of every construct whose result is determined.

A query that numbers or cuts rows orders them by all of its columns, so that rows that tie are equal.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from tests.law.changing import rows
from tests.law.changing.aggregates import Aggregates
from tests.law.changing.relations import From, Named, Relations, Select
from tests.law.changing.scalars import Ref, Scalars, Scope, only_exact
from tests.law.changing.windows import Windows

_SETS: Final = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


class Queries:
    """Draws queries over named relations; ``seen`` collects the constructs since it was last emptied."""

    def __init__(self, source: random.Random, named: Sequence[Named]) -> None:
        self._source = source
        self._named = named
        self.seen: list[str] = []
        self._scalars = Scalars(source)
        self._aggregates = Aggregates(source, self._scalars, self.seen)
        self._windows = Windows(source, self._scalars, self.seen)
        self._relations = Relations(source, named, self._scalars, self.seen, self.draw)
        forms: dict[Callable[[int], Select], int] = {
            self._filtered: 4, self._grouped: 6, self._regrouped: 1, self._semi: 4, self._scalar: 3,
            self._sets_of_groups: 2, self._distinct: 2, self._distinct_on: 2, self._combined: 4, self._windowed: 4,
            self._limited: 2, self._first_rows: 2, self._with: 2, self._recursive: 2, self._lateral: 2,
            self._one_row: 1, self._distinct_groups: 1, self._expanded: 1, self._partnered: 4, self._asked_inside: 2,
            self._linked: 6,
        }  # fmt: skip
        self._link: tuple[Named, str, Named] | None = None
        self._forms, self._weights = list(forms), list(forms.values())

    def prefer(self, named: Named) -> None:
        """Most queries read this relation from now on."""
        self._relations.preferred = named

    def join_alike(self) -> None:
        """Most queries join the same two relations from now on, if one references the other."""
        links = self._links()
        self._link = self._source.choice(links) if links else None

    def draw(self, depth: int) -> Select:
        """A query with as many levels of subqueries at most."""
        if self._link is not None and self._source.random() < 0.8:
            return self._linked(depth)
        return self._source.choices(self._forms, self._weights)[0](depth)

    def failing(self) -> Select | None:
        """A query that fails while some row has a zero: it stands alone, since other queries need not evaluate it."""
        fitting = [
            (found, column.text)
            for found in self._named
            for column in found.columns
            if column.kind == "int" and not found.name.startswith(("v", "s"))
        ]
        if not fitting:
            return None
        found, column = self._source.choice(fitting)
        self.seen.append("expression that fails")
        text = f"SELECT {column} AS c0, 12 / {column} AS c1 FROM {found.name}"
        columns = (Ref("c0", "int"), Ref("c1", "int"))
        return Select(text, columns, found.size, frozenset((found.name,)), "failing")

    # -- rows ------------------------------------------------------------------------------------------------------

    def _filtered(self, depth: int) -> Select:
        item = self._relations.any(depth)
        self.seen.append("projection")
        where = self._where(item.scope)
        return self._select(item, self._outputs(item.scope), where, form="filter")

    def _semi(self, depth: int) -> Select:
        item, asked = self._relations.any(depth), self._relations.one(depth)
        condition = self._asking(item.scope, asked)
        where = f" WHERE {condition}"
        if self._source.random() < 0.25:
            where = f" WHERE ({condition}) OR {self._scalars.condition(item.scope, 0)}"
        return self._select(item, self._outputs(item.scope), where, (asked,), form="semi")

    def _asking(self, scope: Scope, asked: From) -> str:
        """EXISTS, IN and their negations, and comparisons with ANY and ALL."""
        related = self._scalars.pair(asked.scope, scope, self._source.random() < 0.8)
        more = f" AND {self._scalars.condition(asked.scope, 0)}" if self._source.random() < 0.4 else ""
        if self._source.random() < 0.15:
            return self._compared(scope, asked, related)
        column = self._source.choice(only_exact(asked.scope) or (Ref("1", "int"),))
        negated = self._source.choice(("", "NOT "))
        if self._source.random() < 0.5:
            value = self._scalars.exact(scope, column.kind, 0).text
            correlated = f" WHERE {related}{more}" if related and self._source.random() < 0.3 else ""
            self.seen.append(f"{negated}IN")
            return f"{value} {negated}IN (SELECT {column.text} FROM {asked.text}{correlated})"
        self.seen.append(f"{negated}EXISTS")
        return f"{negated}EXISTS (SELECT 1 FROM {asked.text} WHERE {related or 'true'}{more})"

    def _compared(self, scope: Scope, asked: From, related: str | None) -> str:
        """A value beside all that a subquery has, or a row in it."""
        column = self._source.choice(only_exact(asked.scope) or (Ref("1", "int"),))
        where = f" WHERE {related}" if related and self._source.random() < 0.3 else ""
        value = self._scalars.exact(scope, column.kind, 0).text
        if self._source.random() < 0.4:
            self.seen.append("IN of rows")
            number = self._scalars.of(scope, "int", 0).text
            other = self._scalars.of(asked.scope, "int", 0).text
            negated = self._source.choice(("", "NOT "))
            return f"({value}, {number}) {negated}IN (SELECT {column.text}, {other} FROM {asked.text}{where})"
        sign, word = self._source.choice(("<", ">=", "<>", "=")), self._source.choice(("ANY", "ALL"))
        self.seen.append(f"comparison with {word}")
        return f"{value} {sign} {word} (SELECT {column.text} FROM {asked.text}{where})"

    def _partnered(self, depth: int) -> Select:
        """Rows beside those that they reference, of which no more than the key is used."""
        links = self._links()
        if not links:
            return self._filtered(depth)
        found, column, other = self._source.choice(links)
        item, beside = self._relations.plain(found), self._relations.plain(other)
        key = next(ref for ref in beside.scope if ref.text == f"{beside.alias}.{other.key}")
        more = f" AND {self._scalars.condition((*item.scope, key), 0)}" if self._source.random() < 0.25 else ""
        equal = f"{item.alias}.{column} = {key.text}{more}"
        way = self._source.choice(("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", ",", "EXISTS", "NOT EXISTS"))
        self.seen.append(f"{'join' if way == ',' else way.lower()} with a referenced table for its key alone")
        scope, reads, where = item.scope, item.reads | beside.reads, ""
        if way.endswith("EXISTS"):
            text, where = item.text, f" WHERE {way} (SELECT FROM {beside.text} WHERE {equal})"
        elif way == ",":
            text, scope, where = f"{beside.text}, {item.text}", (*scope, key), f" WHERE {equal}"
        else:
            sides = (beside.text, item.text) if way == "RIGHT JOIN" else (item.text, beside.text)
            text, scope = f"{sides[0]} {way} {sides[1]} ON {equal}", (*scope, key)
        both = From(text, scope, item.size, reads, "join")
        if not where and self._source.random() < 0.3:
            both = self._relations.joined(both, self._relations.one(0))
        rows = self._select(both, self._outputs(both.scope), where, form="filter")
        return self._groups_of(self._relations.nested(rows)) if self._source.random() < 0.4 else rows

    def _linked(self, depth: int) -> Select:
        """Rows beside those that they reference, as other views have them, with other columns and filters."""
        links = self._links() if self._link is None else [self._link]
        if not links:
            return self._filtered(depth)
        found, column, other = self._source.choice(links)
        item, beside = self._relations.plain(found), self._relations.plain(other)
        sides = [item.text, beside.text]
        self._source.shuffle(sides)
        text = f"{sides[0]} JOIN {sides[1]} ON {item.alias}.{column} = {beside.alias}.{other.key}"
        both = From(text, (*item.scope, *beside.scope), item.size, item.reads | beside.reads, "join")
        self.seen.append("join along a reference")
        if self._source.random() < 0.2:
            both = self._relations.joined(both, self._relations.one(0))
        rows = self._select(both, self._outputs(both.scope), self._where(both.scope), form="filter")
        return self._groups_of(self._relations.nested(rows)) if self._source.random() < 0.6 else rows

    def _links(self) -> list[tuple[Named, str, Named]]:
        """Relations with a column that references the key of another one."""
        return [
            (found, column, other)
            for found in self._named
            for column, target in found.references
            for other in self._named
            if other.name == target and other.key
        ]

    def _scalar(self, depth: int) -> Select:
        item, asked = self._relations.any(depth), self._relations.one(depth)
        related = self._scalars.pair(asked.scope, item.scope, self._source.random() < 0.8)
        value = self._aggregates.any(asked.scope)
        self.seen.append("correlated scalar subquery" if related else "scalar subquery")
        subquery = f"(SELECT {value.text} FROM {asked.text} WHERE {related or 'true'})"
        if self._source.random() < 0.3 and value.kind != "apx":
            where = f" WHERE {self._scalars.of(item.scope, value.kind, 0).text} <= {subquery}"
            return self._select(item, self._outputs(item.scope), where, (asked,), form="scalar")
        outputs = [*self._outputs(item.scope), Ref(subquery, value.kind, value.exact)]
        return self._select(item, outputs, self._where(item.scope), (asked,), form="scalar")

    def _asked_inside(self, depth: int) -> Select:
        """A subquery in FILTER, an aggregate, a key, ON, or a partition."""
        item, asked = self._relations.any(depth), self._relations.one(depth)
        related = self._scalars.pair(asked.scope, item.scope, self._source.random() < 0.8) or "true"
        exists = f"{self._source.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {asked.text} WHERE {related})"
        number = f"(SELECT count(*) FROM {asked.text} WHERE {related})"
        keys = self._keys(item.scope, 1)
        tail = f" GROUP BY {keys[0].text}" if keys else ""
        match self._source.randint(0, 4):
            case 0:
                self.seen.append("subquery in FILTER")
                calls = [Ref(f"count(*) FILTER (WHERE {exists})", "big")]
                return self._select(item, [*keys, *calls], others=(asked,), tail=tail, form="group")
            case 1:
                self.seen.append("subquery in an aggregate")
                calls = [Ref(f"max({number})", "big"), Ref(f"sum({number})", "num", False)]
                return self._select(item, [*keys, *calls], others=(asked,), tail=tail, form="group")
            case 2:
                self.seen.append("subquery as a key")
                outputs = [Ref(number, "big"), Ref("count(*)", "big")]
                return self._select(item, outputs, others=(asked,), tail=" GROUP BY 1", form="group")
            case 3 if item.size <= 60:
                self.seen.append("subquery in ON")
                other = self._relations.plain(self._source.choice(self._named))
                equal = self._scalars.pair(item.scope, other.scope, True) or "true"
                text = f"{item.text} {self._source.choice(('JOIN', 'LEFT JOIN'))} {other.text} ON {equal} AND {exists}"
                both = From(text, item.scope + other.scope, item.size * 2, item.reads | other.reads)
                return self._select(both, self._outputs(both.scope), others=(asked,), form="join")
            case _:
                self.seen.append("subquery in a partition")
                call = Ref(f"count(*) OVER (PARTITION BY {number})", "big")
                return self._select(item, [*self._outputs(item.scope), call], others=(asked,), form="window")

    def _one_row(self, depth: int) -> Select:
        item, asked = self._relations.any(depth), self._relations.one(depth)
        self.seen.append("cross join with one row")
        calls = [self._aggregates.any(asked.scope) for _ in range(2)]
        one = self._relations.nested(self._select(asked, calls, form="total"))
        both = From(f"{item.text} CROSS JOIN {one.text}", item.scope + one.scope, item.size, item.reads | asked.reads)
        outputs = [*self._outputs(item.scope), *one.scope]
        return self._select(both, outputs, self._where(both.scope), form="one row")

    def _lateral(self, depth: int) -> Select:
        item, asked = self._relations.one(depth), self._relations.one(depth)
        related = self._scalars.pair(asked.scope, item.scope, self._source.random() < 0.7) or "true"
        self.seen.append("LATERAL")
        if self._source.random() < 0.5:
            calls = [self._aggregates.any(asked.scope)]
            inner = self._select(asked, calls, f" WHERE {related}", form="total")
        else:
            self.seen.append("top k per row by LATERAL")
            outputs = self._exact_outputs(asked.scope)
            order = _all_places(self._source, len(outputs))
            inner = self._select(
                asked, outputs, f" WHERE {related}", tail=f"{order} LIMIT {self._source.randint(1, 2)}"
            )
        beside = self._relations.nested(inner, lateral=True)
        joined = self._source.choice(("CROSS JOIN {}", "LEFT JOIN {} ON true")).format(beside.text)
        both = From(f"{item.text} {joined}", item.scope + beside.scope, item.size * 2, item.reads | asked.reads)
        return self._select(both, [*self._outputs(item.scope), *beside.scope], form="lateral")

    # -- groups ----------------------------------------------------------------------------------------------------

    def _regrouped(self, depth: int) -> Select:
        self.seen.append("grouping of a grouping")
        return self._groups_of(self._relations.nested(self._grouped(max(depth - 1, 0))))

    def _grouped(self, depth: int) -> Select:
        self.seen.append("GROUP BY")
        return self._groups_of(self._relations.any(depth))

    def _groups_of(self, item: From) -> Select:
        keys = self._keys(item.scope, self._source.choice((0, 1, 1, 1, 2)))
        calls = [self._aggregates.any(item.scope) for _ in range(self._source.randint(1, 3))]
        tail = f" GROUP BY {', '.join(key.text for key in keys)}" if keys else ""
        if self._source.random() < 0.35:
            self.seen.append("HAVING")
            tested = self._aggregates.comparable(item.scope)
            value = rows.literal(self._source, tested.kind)
            tail += f" HAVING {tested.text} {self._source.choice(('>', '<>', '<='))} {value}"
        return self._select(item, [*keys, *calls], self._where(item.scope), tail=tail, form="group")

    def _sets_of_groups(self, depth: int) -> Select:
        item = self._relations.any(depth)
        columns = list(dict.fromkeys(only_exact(item.scope)))
        if len(columns) < 2:
            return self._grouped(depth)
        one, two = self._source.sample(columns, 2)
        name, sets = self._source.choice(
            (
                ("ROLLUP", f"ROLLUP ({one.text}, {two.text})"),
                ("CUBE", f"CUBE ({one.text}, {two.text})"),
                ("GROUPING SETS", f"GROUPING SETS (({one.text}), ({two.text}), ())"),
                ("GROUPING SETS", f"GROUPING SETS (({one.text}, {two.text}), ({one.text}))"),
                ("GROUPING SETS without columns", f"GROUPING SETS ((), ({one.text}, {two.text}), ())"),
                ("GROUP BY of a column and ROLLUP", f"{one.text}, ROLLUP ({two.text})"),
                ("GROUP BY DISTINCT", f"DISTINCT ROLLUP ({one.text}, {two.text}), ROLLUP ({one.text})"),
            )
        )
        self.seen.append(name)
        calls = [self._aggregates.any(item.scope) for _ in range(2)]
        outputs = [one, two, Ref(f"GROUPING({one.text}, {two.text})", "int"), *calls]
        return self._select(item, outputs, self._where(item.scope), tail=f" GROUP BY {sets}", form="sets")

    def above(self, item: From) -> Select:
        """A query over all rows of an item: the rows, groups of them, or each distinct one."""
        match self._source.randint(0, 4):
            case 0 | 1:
                return self._select(item, list(item.scope), form="filter")
            case 2 if only_exact(item.scope):
                self.seen.append("DISTINCT")
                return self._select(item, list(only_exact(item.scope)), head="DISTINCT ", form="distinct")
            case _:
                self.seen.append("GROUP BY")
                return self._groups_of(item)

    def _distinct(self, depth: int) -> Select:
        item = self._relations.any(depth)
        self.seen.append("DISTINCT")
        outputs = self._exact_outputs(item.scope)
        return self._select(item, outputs, self._where(item.scope), head="DISTINCT ", form="distinct")

    def _distinct_groups(self, depth: int) -> Select:
        """DISTINCT above aggregates."""
        item = self._relations.any(depth)
        keys = self._keys(item.scope, 1)
        calls = [self._aggregates.comparable(item.scope)]
        if not keys or not calls[0].exact:
            return self._distinct(depth)
        self.seen.append("DISTINCT of groups")
        tail = f" GROUP BY {keys[0].text}"
        return self._select(item, calls, self._where(item.scope), head="DISTINCT ", tail=tail, form="distinct")

    def _expanded(self, depth: int) -> Select:
        """A set-returning function among the outputs."""
        item = self._relations.any(depth)
        array = self._scalars.of(item.scope, "arr", 0).text
        number = self._scalars.of(item.scope, "int", 0).text
        call = self._source.choice((f"unnest({array})", f"generate_series(1, least({number}, 3))"))
        self.seen.append("set-returning output")
        return self._select(item, [*self._outputs(item.scope), Ref(call, "int")], self._where(item.scope), form="rows")

    # -- order -----------------------------------------------------------------------------------------------------

    def _distinct_on(self, depth: int) -> Select:
        inner = self._exact_rows(depth)
        self.seen.append("DISTINCT ON")
        order = _all_places(self._source, len(inner.scope), first=1)
        head = f"DISTINCT ON ({inner.scope[0].text}) "
        return self._select(inner, list(inner.scope), head=head, tail=order, form="distinct on")

    def _limited(self, depth: int) -> Select:
        inner = self._exact_rows(depth)
        if self._source.random() < 0.2:
            self.seen.append("WITH TIES")
            way = self._source.choice(("", " DESC", " NULLS FIRST"))
            tail = f" ORDER BY 1{way} FETCH FIRST {self._source.randint(1, 4)} ROWS WITH TIES"
            return self._select(inner, list(inner.scope), tail=tail, form="limit")
        self.seen.append("ORDER BY LIMIT")
        offset = f" OFFSET {self._source.randint(1, 2)}" if self._source.random() < 0.25 else ""
        tail = f"{_all_places(self._source, len(inner.scope))} LIMIT {self._source.randint(1, 6)}{offset}"
        found = self._select(inner, list(inner.scope), tail=tail, form="limit")
        return Select(found.text, found.columns, 6, found.reads, "limit")

    def _windowed(self, depth: int) -> Select:
        inner = self._exact_rows(depth)
        return self._select(inner, [*inner.scope, *self._windows.calls(inner.scope)], form="window")

    def _first_rows(self, depth: int) -> Select:
        inner = self._exact_rows(depth)
        part, *others = inner.scope
        function = self._source.choice(("row_number", "row_number", "rank", "dense_rank"))
        is_parted = self._source.random() < 0.75
        self.seen.append("top k per group" if is_parted else "top k by a window")
        ordered = (others or inner.scope) if is_parted else inner.scope
        if function != "row_number":
            self.seen.append(f"top k by {function}")
            ordered = ordered[:1]
        ways = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
        order = ", ".join(f"{item.text}{self._source.choice(ways)}" for item in ordered)
        place = f"{function}() OVER ({f'PARTITION BY {part.text} ' if is_parted else ''}ORDER BY {order})"
        ranked = self._relations.nested(self._select(inner, [*inner.scope, Ref(place, "big")], form="window"))
        *columns, number = ranked.scope
        forms = ("{p} <= {n}", "{n} >= {p}", "{p} < {n} + 1", "{p} = {n}", "{p} IN (1, {n})", "{p} BETWEEN 2 AND {n}")
        condition = self._source.choice(forms).format(p=number.text, n=self._source.randint(1, 3))
        if self._source.random() < 0.3:
            condition += f" AND {self._scalars.condition(tuple(columns), 0)}"
        shown = ranked.scope if self._source.random() < 0.3 else columns
        return self._select(ranked, list(shown), f" WHERE {condition}", form="first rows")

    # -- several queries -------------------------------------------------------------------------------------------

    def _combined(self, depth: int) -> Select:
        left, right = self._relations.any(depth), self._relations.any(depth)
        ones = self._exact_outputs(left.scope)
        others = [self._scalars.exact(right.scope, one.kind) for one in ones]
        chosen = self._source.choice(_SETS)
        self.seen.append(chosen)
        first = self._select(left, ones, self._where(left.scope))
        second = self._select(right, others, self._where(right.scope))
        text, size, reads = f"{first.text} {chosen} {second.text}", first.size + second.size, first.reads | second.reads
        if self._source.random() < 0.25:
            third = self._relations.one(0)
            self.seen.append("set operations of three queries")
            more = self._select(third, [self._scalars.exact(third.scope, one.kind) for one in ones])
            text, reads = f"({text}) {self._source.choice(_SETS)} {more.text}", reads | third.reads
        return Select(text, first.columns, size, reads, "set")

    def _with(self, depth: int) -> Select:
        inner = self.draw(max(depth - 1, 0))
        self.seen.append("WITH")
        name = self._relations.alias()
        once = Named(name, inner.columns, inner.size)
        item = self._relations.plain(once)
        if self._source.random() < 0.6:
            other = self._source.choice((self._relations.plain(once), self._relations.one(0)))
            item = self._relations.joined(item, other)
        body = self._select(item, self._outputs(item.scope), self._where(item.scope))
        return Select(f"WITH {name} AS ({inner.text}) {body.text}", body.columns, body.size,
                      (body.reads | inner.reads) - {name}, "with")  # fmt: skip

    def _recursive(self, depth: int) -> Select:
        """The nodes that are reached over the edges of a relation with two numbers, by their distance at most."""
        edges = [
            (found, numbers)
            for found in self._named
            if len(numbers := [item.text for item in found.columns if item.kind == "int"]) > 1
        ]
        if not edges:
            return self._combined(depth)
        self.seen.append("WITH RECURSIVE")
        found, numbers = self._source.choice(edges)
        start, end = self._source.sample(numbers, 2)
        name, join = self._relations.alias(), self._source.choice(("JOIN", "JOIN", "LEFT JOIN"))
        first = f"SELECT {start}, {end} FROM {found.name}{self._source.choice(('', f' WHERE {start} < 3'))}"
        once = f"(SELECT DISTINCT {start}, {end} FROM {found.name}) e ON e.{start} = r.b"
        columns: Scope = (Ref("a", "int"), Ref("b", "int"))
        way = self._source.random()
        if way < 0.2:
            self.seen.append("WITH RECURSIVE by UNION ALL")
            columns += (Ref("n", "int"),)
            more = f"SELECT r.a, e.{end}, r.n + 1 FROM {name} r {join} {once} WHERE r.n < 3"
            step = f"{first.replace(' FROM', ', 1 FROM')} UNION ALL {more}"
        elif way < 0.35:
            self.seen.append("WITH RECURSIVE with paths")
            columns += (Ref("p", "arr"),)
            more = f"SELECT r.a, e.{end}, r.p || e.{end} FROM {name} r JOIN {once} WHERE e.{end} <> ALL (r.p)"
            kind = self._source.choice(("UNION", "UNION ALL"))
            step = f"{first.replace(' FROM', f', ARRAY[{end}] FROM')} {kind} {more} AND cardinality(r.p) < 4"
        else:
            step = f"{first} UNION SELECT r.a, e.{end} FROM {name} r {join} {found.name} e ON e.{start} = r.b"
        reached = Named(name, columns, 40)
        item = self._relations.plain(reached)
        if self._source.random() < 0.4:
            self.seen.append("join with a recursion")
            beside = self._source.choice((reached, self._source.choice(self._named)))
            item = self._relations.joined(item, self._relations.plain(beside))
        body = self._select(item, self._outputs(item.scope), self._where(item.scope))
        listed = ", ".join(column.text for column in columns)
        text = f"WITH RECURSIVE {name} ({listed}) AS ({step}) {body.text}"
        return Select(text, body.columns, 60, (body.reads | {found.name}) - {name}, "recursive")

    # -- parts -----------------------------------------------------------------------------------------------------

    def _exact_rows(self, depth: int) -> From:
        """A subquery all of whose columns may be keys."""
        item = self._relations.any(depth)
        outputs = self._exact_outputs(item.scope)
        return self._relations.nested(self._select(item, outputs, self._where(item.scope), form=item.form))

    def _outputs(self, scope: Scope) -> list[Ref]:
        return [self._scalars.any(scope) for _ in range(self._source.randint(1, 4))]

    def _exact_outputs(self, scope: Scope) -> list[Ref]:
        known = only_exact(scope) or (Ref("1", "int"),)
        columns = [self._source.choice(known) for _ in range(self._source.randint(1, 3))]
        if self._source.random() < 0.3:
            columns.append(self._scalars.exact(scope, self._source.choice(known).kind))
        return columns

    def _keys(self, scope: Scope, number: int) -> list[Ref]:
        known = list(dict.fromkeys(only_exact(scope)))
        if self._source.random() < 0.2 and number and known:
            self.seen.append("grouping by an expression")
            kind = self._source.choice(known).kind
            found = self._scalars.exact(tuple(known), kind)
            if any(item.text in found.text for item in known):
                return [found]
        return self._source.sample(known, min(number, len(known)))

    def _where(self, scope: Scope) -> str:
        if self._source.random() < 0.7 or not scope:
            return ""
        self.seen.append("filter")
        return f" WHERE {self._scalars.condition(scope)}"

    def _select(
        self,
        item: From,
        outputs: Sequence[Ref],
        where: str = "",
        others: Sequence[From] = (),
        head: str = "",
        tail: str = "",
        form: str = "",
    ) -> Select:
        if any("CASE" in output.text for output in outputs):
            self.seen.append("CASE")
        listed = ", ".join(f"{output.text} AS c{place}" for place, output in enumerate(outputs))
        columns = tuple(Ref(f"c{place}", output.kind, output.exact) for place, output in enumerate(outputs))
        reads = item.reads.union(*(other.reads for other in others))
        return Select(f"SELECT {head}{listed} FROM {item.text}{where}{tail}", columns, item.size, reads, form)


def _all_places(source: random.Random, number: int, first: int = 0) -> str:
    """ORDER BY all columns by their places; the ``first`` ones come first."""
    places = list(range(1, number + 1))
    moved = places[first:]
    source.shuffle(moved)
    listed = [f"{place}{source.choice(('', ' DESC', ' DESC NULLS LAST'))}" for place in places[:first] + moved]
    return f" ORDER BY {', '.join(listed)}"
