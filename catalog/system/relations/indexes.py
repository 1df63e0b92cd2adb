"""Keys and constraints of tables, indexes of tables and materialized views: pg_index, pg_constraint, and their
definitions.

Owns: how a table's keys appear as indexes, and PostgreSQL's texts of both (pg_get_indexdef, pg_get_constraintdef).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import Check, ColumnDefinition, Domain, ForeignKey, Indexed, Table, UniqueKey, View, keys_of
from catalog.system.own_objects import MARK, default_text, schema_oid
from catalog.system.pretty_expressions import pretty
from catalog.system.relations.types import domain_constraints
from catalog.system.rows import Row
from catalog.system.stored import by_oid
from catalog.system.visibility import relation_mark
from catalog.values.identifiers import quote_name
from catalog.values.oids import part_oid
from catalog.values.types import SqlType

#: btree's operator classes by type; for other types, that of their binary coercible type.
_CLASSES: Final = {
    "int2": 1979, "int4": 1978, "int8": 3124, "oid": 1981, "float4": 1970, "float8": 3123, "numeric": 3125,
    "text": 3126, "varchar": 3126, "bpchar": 426, "name": 1986, "char": 429, "bool": 424, "bytea": 428, "date": 3122,
    "time": 1996, "timetz": 2000, "timestamp": 3128, "timestamptz": 3127, "interval": 1982, "uuid": 2968,
    "jsonb": 4033, "array": 397, "bit": 10002, "varbit": 10043, "money": 10047, "inet": 10015, "cidr": 10015,
    "macaddr": 10024, "macaddr8": 10026, "pg_lsn": 10067, "tid": 10050, "tsvector": 10071, "xid8": 10053,
    "hstore": 536_871_103,
}  # fmt: skip
#: btree's equality operators by type.
_EQUALS: Final = {
    "int2": 94, "int4": 96, "int8": 410, "oid": 607, "float4": 620, "float8": 670, "numeric": 1752, "text": 98,
    "varchar": 98, "bpchar": 1054, "name": 93, "char": 92, "bool": 91, "bytea": 1955, "date": 1093,
    "time": 1108, "timetz": 1550, "timestamp": 2060, "timestamptz": 1320, "interval": 1330,
    "uuid": 2972, "jsonb": 3240, "array": 1070, "bit": 1784, "varbit": 1804, "money": 900, "inet": 1201, "cidr": 1201,
    "macaddr": 1220, "macaddr8": 3362, "pg_lsn": 3222, "tid": 387, "tsvector": 3629, "xid8": 5068,
    "hstore": 536_871_091,
}  # fmt: skip


#: A name in an expression's text, plain or quoted, or a string literal, whose content may look like a name.
_NAME: Final = re.compile(r'([A-Za-z_][\w$]*|"((?:[^"]|"")+)")')
_TEXT: Final = re.compile(r"'(?:[^']|'')*'")
#: The begin of a call.
_CALL: Final = re.compile(rf"{MARK}?[\w.]+\(")


class IndexEntry(Struct, frozen=True):
    """An index as PostgreSQL would have it: a key's own index, or a created one. A computed part has None in
    ``columns``."""

    oid: int
    name: str
    parts: tuple[str, ...]
    columns: tuple[ColumnDefinition | None, ...]
    unique: bool = False
    primary: bool = False
    constraint: bool = False
    deferrable: bool = False
    orders: tuple[str, ...] = ()
    included: int = 0
    predicate: str | None = None
    nulls_alike: bool = False
    method: str = "btree"
    computed: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    types: tuple[SqlType, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the index's columns."""
        names = self.computed or ("expr",) * len(self.columns)
        return tuple(name if column is None else column.name for column, name in zip(self.columns, names, strict=True))

    def type(self, place: int) -> SqlType | None:
        """The type of a part; None if it was not stored."""
        column = self.columns[place]
        return column.type if column is not None else self.types[place] if self.types else None

    @property
    def expressions(self) -> list[str]:
        """The parts that are expressions."""
        return [self.part(place) for place, column in enumerate(self.columns) if column is None]

    def part(self, place: int) -> str:
        """The text of an expression among the parts, as PostgreSQL writes it."""
        return self.shown[place] if self.shown else self.parts[place]

    @property
    def where(self) -> str | None:
        """The text of the predicate, as PostgreSQL writes it."""
        if self.predicate is None or self.shown:
            return self.shown[-1] if self.predicate is not None else None
        return self.predicate if _is_closed(self.predicate) else f"({self.predicate})"


def indexes_of(table: Indexed) -> Iterator[IndexEntry]:
    """The indexes of a table or view; that of the primary key comes first."""
    by_name = {column.name: column for column in table.columns}
    for key in sorted(keys_of(table), key=lambda item: not item.primary):
        columns = tuple(by_name[name] for name in key.columns)
        parts = tuple(map(quote_name, key.columns))
        oid = part_oid(table.oid, "index", key.name)
        entry = IndexEntry(oid, key.name, parts, columns, True, key.primary, not key.index)
        yield replace(entry, deferrable=key.deferrable, nulls_alike=key.nulls_alike, orders=key.orders)
    for index in table.indexes:
        named = tuple(by_name.get(part.strip('"').replace('""', '"')) for part in index.parts)
        oid = part_oid(table.oid, "index", index.name)
        entry = IndexEntry(oid, index.name, index.parts, named)
        yield replace(
            entry,
            unique=index.unique,
            orders=index.orders,
            included=index.included,
            predicate=index.predicate,
            nulls_alike=index.nulls_alike,
            method=index.method,
            computed=index.labels,
            shown=index.shown,
            types=index.types,
        )


def _tables(catalog: Catalog) -> Iterator[Table]:
    for item in catalog.objects.values():
        if isinstance(item, Table):
            yield item


def _indexed(catalog: Catalog) -> Iterator[Indexed]:
    for item in catalog.objects.values():
        if isinstance(item, Table | View):
            yield item


def _places(table: Table, names: tuple[str, ...]) -> list[int]:
    known = {column.name: place for place, column in enumerate(table.columns, 1)}
    return [known[name] for name in names]


def _collation(column: ColumnDefinition | None, kind: SqlType | None) -> int:
    """The oid of a part's collation: that of its column, or of its type."""
    if kind is None or kind.category != "S":
        return 0
    if column is not None and column.collation:
        return column.collation
    return 950 if kind.name == "name" else 100


def _by_type(known: dict[str, int], kind: SqlType | None) -> int:
    return known.get("text" if kind is None else kind.name, 0)


def pg_index(catalog: Catalog) -> Iterator[Row]:
    """Indexes."""
    for table in _indexed(catalog):
        known = {column.name: place for place, column in enumerate(table.columns, 1)}
        for index in indexes_of(table):
            keys = len(index.parts) - index.included
            kinds = [index.type(place) for place in range(keys)]
            yield {
                "indexrelid": index.oid,
                "indrelid": table.oid,
                "indnatts": len(index.parts),
                "indnkeyatts": keys,
                "indisunique": index.unique,
                "indnullsnotdistinct": index.nulls_alike,
                "indisprimary": index.primary,
                "indimmediate": not index.deferrable,
                "indisvalid": True,
                "indisready": True,
                "indislive": True,
                "indkey": [0 if column is None else known[column.name] for column in index.columns],
                "indcollation": list(map(_collation, index.columns[:keys], kinds)),
                "indclass": [_by_type(_CLASSES, kind) for kind in kinds],
                "indoption": [_option(order) for order in index.orders or ("",) * len(index.parts)],
                "indexprs": ", ".join(default_text(catalog, text) for text in index.expressions) or None,
                "indpred": None if index.where is None else default_text(catalog, index.where),
            }


def index_definitions(catalog: Catalog) -> Iterator[Row]:
    """pg_get_indexdef() for each index (place 0) and each of its parts. The pretty form qualifies the table only if the
    path does not find it."""
    for oid, text in by_oid("index_definitions", "definition").items():
        yield _definition(oid, 0, text, text)
        for place, part in enumerate(text[text.index("(") + 1 : -1].split(", "), 1):
            yield _definition(oid, place, part, part)
    for table in _indexed(catalog):
        for index in indexes_of(table):
            unique = "UNIQUE " if index.unique else ""
            head, method = f"CREATE {unique}INDEX {quote_name(index.name)} ON ", f" USING {index.method} "
            on = f"{quote_name(table.schema)}.{quote_name(table.name)}"
            whole = head + on + method + _all_parts(catalog, index, _as_kept)
            shown = head + relation_mark(table.oid) + method + _all_parts(catalog, index, pretty)
            yield _definition(index.oid, 0, whole, shown)
            for place in range(len(index.parts)):
                texts = (_part(catalog, index, place, form) for form in (_as_kept, pretty))
                yield _definition(index.oid, place + 1, *texts)


def _definition(oid: int, place: int, text: str, shown: str) -> Row:
    return {"oid": oid, "place": place, **_whole(text, shown)}


def _as_kept(text: str) -> str:
    return text


def _part(catalog: Catalog, index: IndexEntry, place: int, form: Callable[[str], str]) -> str:
    """A column's name, or an expression, which is put in parentheses unless it is a call."""
    if (column := index.columns[place]) is not None:
        return quote_name(column.name)
    text = form(default_text(catalog, index.part(place)))
    return text if _is_call(text) else f"({text})"


def _is_call(text: str) -> bool:
    return _CALL.match(text) is not None and _is_closed(text)


def _is_closed(text: str) -> bool:
    """Whether a text is a name, a call, or wholly in parentheses."""
    depth = 0
    plain = _TEXT.sub("", text)
    for place, letter in enumerate(plain):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and letter == ")":
            return place == len(plain) - 1
    return plain.isidentifier()


def _all_parts(catalog: Catalog, index: IndexEntry, form: Callable[[str], str]) -> str:
    """The definition after the method: the key parts with their orders, INCLUDE and WHERE."""
    parts = [_part(catalog, index, place, form) for place in range(len(index.parts))]
    keys = len(parts) - index.included
    key = ", ".join(part + order for part, order in zip(parts, index.orders or ("",) * keys, strict=False))
    include = f" INCLUDE ({', '.join(parts[keys:])})" if index.included else ""
    where = "" if index.where is None else f" WHERE {form(default_text(catalog, index.where))}"
    return f"({key}){include}{' NULLS NOT DISTINCT' if index.nulls_alike else ''}{where}"


def _option(order: str) -> int:
    """pg_index.indoption for a part's order: 1 is DESC, 2 is NULLS FIRST."""
    descending = order.startswith(" DESC")
    first = not order.endswith("LAST") if descending else order.endswith("FIRST")
    return descending + 2 * first


def pg_constraint(catalog: Catalog) -> Iterator[Row]:
    """Keys, foreign keys and checks."""
    for table in _tables(catalog):
        for key in table.keys:
            if not key.index:
                yield _key(catalog, table, key)
        for reference in table.foreign_keys:
            target = catalog.objects.get(reference.target)
            if isinstance(target, Table):
                yield _reference(catalog, table, reference, target)
        for check in table.checks:
            text = default_text(catalog, check.expression)
            shared = _shared(catalog, table, check.name, "c")
            yield {
                **shared,
                "conkey": used_places(table, check.expression) or None,
                "convalidated": check.validated,
                "conbin": text,
            }
    for _, domain, check, text in domain_constraints(catalog):
        own: Row = {"conrelid": 0, "contypid": domain.oid, "convalidated": check.validated, "conbin": text}
        yield {**_shared(catalog, domain, check.name, "c"), **own}


def used_places(table: Table, expression: str) -> list[int]:
    """The numbers of the columns in an expression's text."""
    found = _NAME.findall(_TEXT.sub("", expression))
    names = {quoted.replace('""', '"') if quoted else plain.lower() for plain, quoted in found}
    return [place for place, item in enumerate(table.columns, 1) if item.name in names]


def _shared(catalog: Catalog, table: Table | Domain, name: str, kind: str) -> Row:
    return {
        "oid": part_oid(table.oid, "constraint", name),
        "conname": name,
        "connamespace": schema_oid(catalog, table.schema),
        "contype": kind,
        "convalidated": True,
        "conrelid": table.oid,
        "confupdtype": " ",
        "confdeltype": " ",
        "confmatchtype": " ",
        "conislocal": True,
    }


def _key(catalog: Catalog, table: Table, key: UniqueKey) -> Row:
    return {
        **_shared(catalog, table, key.name, "p" if key.primary else "u"),
        "condeferrable": key.deferrable,
        "condeferred": key.deferred,
        "conindid": part_oid(table.oid, "index", key.name),
        "conkey": _places(table, key.columns),
        "connoinherit": True,
    }


def _reference(catalog: Catalog, table: Table, reference: ForeignKey, target: Table) -> Row:
    by_name = {column.name: column for column in table.columns}
    targets = {column.name: column for column in target.columns}
    keys = [key for key in target.keys if serves(key, reference)]
    equal = [_by_type(_EQUALS, targets[name].type) for name in reference.target_columns]
    own = [_by_type(_EQUALS, by_name[name].type) for name in reference.columns]
    return {
        **_shared(catalog, table, reference.name, "f"),
        "convalidated": reference.validated,
        "condeferrable": reference.deferrable,
        "condeferred": reference.deferred,
        "conindid": part_oid(target.oid, "index", keys[0].name) if keys else 0,
        "confrelid": target.oid,
        "confupdtype": reference.on_update,
        "confdeltype": reference.on_delete,
        "confmatchtype": "f" if reference.full else "s",
        "confdelsetcols": _places(table, reference.delete_columns) if reference.delete_columns else None,
        "connoinherit": True,
        "conkey": _places(table, reference.columns),
        "confkey": _places(target, reference.target_columns),
        "conpfeqop": equal,
        "conppeqop": equal,
        "conffeqop": own,
    }


def serves(key: UniqueKey, reference: ForeignKey) -> bool:
    """Whether a foreign key may refer to the columns of a key."""
    return set(key.columns) == set(reference.target_columns)


_ACTIONS: Final = {"r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


def pretty_expressions(catalog: Catalog) -> Iterator[Row]:
    """The pretty forms of the texts of defaults, generated columns, checks and indexes (pg_get_expr())."""
    texts: dict[str, bool] = {}  # a cast of the whole to a length is not shown, but its operand keeps its parentheses
    for table in _tables(catalog):
        for column in table.columns:
            for text in (column.default, column.generated):
                if text is not None:
                    texts[text] = column.type.typmod != -1
        texts |= dict.fromkeys((check.expression for check in table.checks), False)
    for item in _indexed(catalog):
        parts = (text for index in indexes_of(item) for text in (index.where, *index.expressions))
        texts |= dict.fromkeys((text for text in parts if text is not None), False)
    for kept, is_cast in texts.items():
        text = default_text(catalog, kept)
        shown = pretty(text)
        if is_cast and text.startswith("(") and _is_closed(text):
            shown = f"({shown})"
        if shown != text:
            yield {"text": text, "pretty": shown}


def constraint_definitions(catalog: Catalog) -> Iterator[Row]:
    """pg_get_constraintdef() for each constraint; the name of a foreign key's target is qualified if the path requires
    it."""
    for table in _tables(catalog):
        for key in table.keys:
            if not key.index:
                text = _key_text(key)
                yield {"oid": part_oid(table.oid, "constraint", key.name), **_whole(text, text)}
        for check in table.checks:
            oid = part_oid(table.oid, "constraint", check.name)
            yield {"oid": oid, **_check_texts(check, default_text(catalog, check.expression))}
        for reference in table.foreign_keys:
            if isinstance(catalog.objects.get(reference.target), Table):
                target = f"{relation_mark(reference.target)}{_reference_rest(reference)}"
                text = f"FOREIGN KEY {_listed(reference.columns)} REFERENCES {target}"
                yield {"oid": part_oid(table.oid, "constraint", reference.name), **_whole(text, text)}
    for oid, _, check, text in domain_constraints(catalog):
        yield {"oid": oid, **_check_texts(check, text)}


def _check_texts(check: Check, text: str) -> Row:
    return _whole(*(f"CHECK ({shown}){_not_valid(check)}" for shown in (text, pretty(text))))


def _whole(text: str, shown: str) -> Row:
    """A definition, plain for pg_dump and pretty for people."""
    return {"definition": text, "pretty": shown}


def _not_valid(constraint: Check | ForeignKey) -> str:
    return "" if constraint.validated else " NOT VALID"


def _listed(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(quote_name, names))})"


def _key_text(key: UniqueKey) -> str:
    words = "PRIMARY KEY" if key.primary else "UNIQUE NULLS NOT DISTINCT" if key.nulls_alike else "UNIQUE"
    return f"{words} {_listed(key.columns)}{_waits(key)}"


def _waits(constraint: UniqueKey | ForeignKey) -> str:
    if not constraint.deferrable:
        return ""
    return " DEFERRABLE INITIALLY DEFERRED" if constraint.deferred else " DEFERRABLE"


def _reference_rest(reference: ForeignKey) -> str:
    text = _listed(reference.target_columns) + (" MATCH FULL" if reference.full else "")
    for words, action in (("UPDATE", reference.on_update), ("DELETE", reference.on_delete)):
        if action in _ACTIONS:
            text += f" ON {words} {_ACTIONS[action]}"
    if reference.delete_columns:
        text += f" {_listed(reference.delete_columns)}"
    return text + _waits(reference) + _not_valid(reference)
