"""Keys, indexes and constraints of tables: pg_index, pg_constraint and their definitions as text.

Owns: what a table's keys look like as indexes, and PostgreSQL's texts of both (pg_get_indexdef, pg_get_constraintdef).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.names import quote_name
from catalog.objects import Check, ColumnDefinition, Domain, ForeignKey, Table, UniqueKey
from catalog.oids import part_oid
from catalog.system.naming import default_text, schema_oid
from catalog.system.pretty import pretty
from catalog.system.rows import Row
from catalog.system.stored import by_oid
from catalog.system.types import domain_constraints
from catalog.types import SqlType

#: btree's operator classes by type; others are found by their binary coercible type.
_CLASSES: Final = {
    "int2": 1979, "int4": 1978, "int8": 3124, "oid": 1981, "float4": 1970, "float8": 3123, "numeric": 3125,
    "text": 3126, "varchar": 3126, "bpchar": 426, "name": 1986, "char": 429, "bool": 424, "bytea": 428, "date": 3122,
    "time": 1996, "timetz": 2000, "timestamp": 3128, "timestamptz": 3127, "interval": 1982, "uuid": 2968,
    "jsonb": 4033, "array": 397, "bit": 10002, "varbit": 10043, "money": 10047, "inet": 10015, "cidr": 10015,
    "macaddr": 10024, "macaddr8": 10026, "pg_lsn": 10067, "tid": 10050, "tsvector": 10071, "xid8": 10053,
}  # fmt: skip
#: btree's equality by type.
_EQUALS: Final = {
    "int2": 94, "int4": 96, "int8": 410, "oid": 607, "float4": 620, "float8": 670, "numeric": 1752, "text": 98,
    "varchar": 98, "bpchar": 1054, "name": 93, "char": 92, "bool": 91, "bytea": 1955, "date": 1093,
    "time": 1108, "timetz": 1550, "timestamp": 2060, "timestamptz": 1320, "interval": 1330,
    "uuid": 2972, "jsonb": 3240, "array": 1070, "bit": 1784, "varbit": 1804, "money": 900, "inet": 1201, "cidr": 1201,
    "macaddr": 1220, "macaddr8": 3362, "pg_lsn": 3222, "tid": 387, "tsvector": 3629, "xid8": 5068,
}  # fmt: skip


#: A name in an expression's text, plain or quoted; and the texts in it, which may look like names.
_NAME: Final = re.compile(r'([A-Za-z_][\w$]*|"((?:[^"]|"")+)")')
_TEXT: Final = re.compile(r"'(?:[^']|'')*'")


class IndexEntry(Struct, frozen=True):
    """An index as PostgreSQL would have it: a key's own, or one that was made. ``columns`` are None where computed."""

    oid: int
    name: str
    parts: tuple[str, ...]
    columns: tuple[ColumnDefinition | None, ...]
    unique: bool = False
    primary: bool = False
    constraint: bool = False
    orders: tuple[str, ...] = ()
    included: int = 0
    predicate: str | None = None
    nulls_alike: bool = False
    method: str = "btree"

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple("expr" if column is None else column.name for column in self.columns)


def indexes_of(table: Table) -> Iterator[IndexEntry]:
    """A table's indexes, the primary key's first."""
    by_name = {column.name: column for column in table.columns}
    for key in sorted(table.keys, key=lambda item: not item.primary):
        columns = tuple(by_name[name] for name in key.columns)
        parts = tuple(map(quote_name, key.columns))
        oid = part_oid(table.oid, "index", key.name)
        entry = IndexEntry(oid, key.name, parts, columns, True, key.primary, not key.index)
        yield replace(entry, nulls_alike=key.nulls_alike)
    for index in table.indexes:
        named = tuple(by_name.get(part.strip('"')) for part in index.parts)
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
        )


def _tables(catalog: Catalog) -> Iterator[Table]:
    for item in catalog.objects.values():
        if isinstance(item, Table):
            yield item


def _places(table: Table, names: tuple[str, ...]) -> list[int]:
    known = {column.name: place for place, column in enumerate(table.columns, 1)}
    return [known[name] for name in names]


def _by_type(known: dict[str, int], kind: SqlType | None) -> int:
    return known.get("text" if kind is None else kind.name, 0)


def pg_index(catalog: Catalog) -> Iterator[Row]:
    """Indexes."""
    for table in _tables(catalog):
        known = {column.name: place for place, column in enumerate(table.columns, 1)}
        for index in indexes_of(table):
            kinds = [None if column is None else column.type for column in index.columns]
            computed = [part for part, column in zip(index.parts, index.columns, strict=True) if column is None]
            yield {
                "indexrelid": index.oid,
                "indrelid": table.oid,
                "indnatts": len(index.parts),
                "indnkeyatts": len(index.parts) - index.included,
                "indisunique": index.unique,
                "indnullsnotdistinct": index.nulls_alike,
                "indisprimary": index.primary,
                "indimmediate": True,
                "indisvalid": True,
                "indisready": True,
                "indislive": True,
                "indkey": [0 if column is None else known[column.name] for column in index.columns],
                "indcollation": [100 if kind is not None and kind.category == "S" else 0 for kind in kinds],
                "indclass": [_by_type(_CLASSES, kind) for kind in kinds],
                "indoption": [_option(order) for order in index.orders or ("",) * len(index.parts)],
                "indexprs": ", ".join(computed) or None,
                "indpred": index.predicate,
            }


def index_definitions(catalog: Catalog) -> Iterator[Row]:
    """pg_get_indexdef() of each index, and of its parts by place."""
    for oid, text in by_oid("index_definitions", "definition").items():
        yield {"oid": oid, "place": 0, "definition": text}
        for place, part in enumerate(text[text.index("(") + 1 : -1].split(", "), 1):
            yield {"oid": oid, "place": place, "definition": part}
    for table in _tables(catalog):
        for index in indexes_of(table):
            unique = "UNIQUE " if index.unique else ""
            on = f"{quote_name(table.schema)}.{quote_name(table.name)}"
            text = f"CREATE {unique}INDEX {quote_name(index.name)} ON {on} USING {index.method} {_all_parts(index)}"
            yield {"oid": index.oid, "place": 0, "definition": text}
            for place in range(len(index.parts)):
                yield {"oid": index.oid, "place": place + 1, "definition": _part(index, place)}


def _part(index: IndexEntry, place: int) -> str:
    part, column = index.parts[place], index.columns[place]
    if column is not None:
        return quote_name(column.name)
    return part if part.endswith(")") else f"({part})"


def _all_parts(index: IndexEntry) -> str:
    """What follows the method: the key's parts with their orders, what is included, and which rows are in it."""
    parts = [_part(index, place) for place in range(len(index.parts))]
    keys = len(parts) - index.included
    key = ", ".join(part + order for part, order in zip(parts, index.orders or ("",) * keys, strict=False))
    include = f" INCLUDE ({', '.join(parts[keys:])})" if index.included else ""
    where = "" if index.predicate is None else f" WHERE ({index.predicate})"
    return f"({key}){include}{' NULLS NOT DISTINCT' if index.nulls_alike else ''}{where}"


def _option(order: str) -> int:
    """pg_index.indoption of a part's order: 1 is DESC, 2 is NULLS FIRST."""
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
    """Where the columns stand that an expression's text names."""
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
        "confmatchtype": "s",
        "connoinherit": True,
        "conkey": _places(table, reference.columns),
        "confkey": _places(target, reference.target_columns),
        "conpfeqop": equal,
        "conppeqop": equal,
        "conffeqop": own,
    }


def serves(key: UniqueKey, reference: ForeignKey) -> bool:
    """Whether a foreign key may name the columns of a key."""
    return set(key.columns) == set(reference.target_columns)


_ACTIONS: Final = {"r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


def constraint_definitions(catalog: Catalog) -> Iterator[Row]:
    """pg_get_constraintdef() of each constraint; of a foreign key what stands before and behind its target's name."""
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
                start = f"FOREIGN KEY {_listed(reference.columns)} REFERENCES "
                yield {
                    "oid": part_oid(table.oid, "constraint", reference.name),
                    **_whole(start, start),
                    "target": reference.target,
                    "rest": _reference_rest(reference),
                }
    for oid, _, check, text in domain_constraints(catalog):
        yield {"oid": oid, **_check_texts(check, text)}


def _check_texts(check: Check, text: str) -> Row:
    return _whole(*(f"CHECK ({shown}){_not_valid(check)}" for shown in (text, pretty(text))))


def _whole(text: str, shown: str) -> Row:
    """A definition as pg_dump reads it, and as people do."""
    return {"definition": text, "pretty": shown, "rest": ""}


def _not_valid(constraint: Check | ForeignKey) -> str:
    return "" if constraint.validated else " NOT VALID"


def _listed(names: tuple[str, ...]) -> str:
    return f"({', '.join(map(quote_name, names))})"


def _key_text(key: UniqueKey) -> str:
    words = "PRIMARY KEY" if key.primary else "UNIQUE NULLS NOT DISTINCT" if key.nulls_alike else "UNIQUE"
    return f"{words} {_listed(key.columns)}"


def _reference_rest(reference: ForeignKey) -> str:
    text = _listed(reference.target_columns)
    for words, action in (("UPDATE", reference.on_update), ("DELETE", reference.on_delete)):
        if action in _ACTIONS:
            text += f" ON {words} {_ACTIONS[action]}"
    if reference.deferrable:
        text += " DEFERRABLE INITIALLY DEFERRED" if reference.deferred else " DEFERRABLE"
    return text + _not_valid(reference)
