"""Random tables: types, keys, foreign keys, and perhaps a stream.

The domains of the values (``rows``) are small, so that joins meet and groups have several rows.
"""

from __future__ import annotations

import random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

#: The kinds of columns with their SQL types. ``num`` keeps the decimals of each value.
TYPES: Final = {
    "int": "integer",
    "big": "bigint",
    "num": "numeric",
    "dec": "numeric(8,2)",
    "text": "text",
    "bool": "boolean",
    "date": "date",
    "ts": "timestamp",
    "flt": "float8",
    "arr": "int[]",
    "small": "smallint",
    "tz": "timestamptz",
    "iv": "interval",
    "js": "jsonb",
    "uuid": "uuid",
    "range": "int4range",
    "mood": "mood",
    "chr": "character(3)",
    "time": "time",
}
#: The type of kind ``mood``.
ENUM: Final = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')"
_WEIGHTS: Final = {
    "int": 12, "text": 8, "num": 4, "dec": 4, "big": 4, "date": 4, "ts": 2, "bool": 4, "flt": 4, "arr": 2, "small": 1,
    "tz": 1, "iv": 1, "js": 1, "uuid": 1, "range": 1, "mood": 1, "chr": 1,
    "time": 1,
}  # fmt: skip
_ACTIONS: Final = ("", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE CASCADE ON UPDATE CASCADE")
_DEFERRED: Final = " DEFERRABLE INITIALLY DEFERRED"


class Column(Struct, frozen=True):
    """A column of a table; ``is_unique`` if it alone is a key, ``is_time`` if it has the times of a stream's events."""

    name: str
    kind: str
    is_unique: bool = False
    is_nullable: bool = True
    constraint: str = ""
    references: str = ""
    is_time: bool = False

    @property
    def declaration(self) -> str:
        """The column in CREATE TABLE."""
        return f"{self.name} {TYPES[self.kind]}{'' if self.is_nullable else ' NOT NULL'}{self.constraint}"


class Table(Struct, frozen=True):
    """A table or a stream, which may keep its rows; ``key`` names the columns of its primary key. A stream's watermark
    is so many minutes (``delay``) behind the latest time; None: there is none."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    is_stream: bool = False
    keeps_rows: bool = False
    delay: int | None = None

    @property
    def single_key(self) -> Column | None:
        """The column that is the primary key, if it is one column."""
        return next((item for item in self.columns if (item.name,) == self.key), None)

    @property
    def conflict(self) -> tuple[str, ...]:
        """Columns that ON CONFLICT may name."""
        return self.key or next(((item.name,) for item in self.columns if item.is_unique), ())

    def definition(self, judged: bool) -> str:
        """CREATE TABLE; for PostgreSQL, where ``judged``, a stream is a table."""
        items = [item.declaration for item in self.columns]
        if len(self.key) > 1:
            items.append(f"PRIMARY KEY ({', '.join(self.key)})")
        if not self.is_stream:
            return f"CREATE TABLE {self.name} ({', '.join(items)})"
        if judged:
            return _judged_stream(self, items)
        options = ["history 'all'"] if self.keeps_rows else []
        if self.delay is not None:
            watermark = f"at - interval '{self.delay} min'".replace("'", 2 * "'")
            options.append(f"watermark '{watermark}'")
        words = f" OPTIONS ({', '.join(options)})" if options else ""
        return f"CREATE FOREIGN TABLE {self.name} ({', '.join(items)}) SERVER stream{words}"


def _judged_stream(stream: Table, items: list[str]) -> str:
    """PostgreSQL's table for a stream. With a watermark it says at each transaction's end which of its rows are in
    time, or have none: the watermark is that of the transactions before."""
    name = stream.name
    if stream.delay is None:
        return f"CREATE TABLE {name} ({', '.join(items)})"
    before = f"(SELECT max(b.at) FROM {name} b WHERE b.tx <> NEW.tx)"
    in_time = f"NEW.at IS NULL OR {before} IS NULL OR NEW.at > {before} - interval '{stream.delay} min'"
    return (
        f"CREATE TABLE {name} ({', '.join(items)}, n bigserial, tx bigint DEFAULT txid_current(), in_time boolean); "
        f"CREATE FUNCTION {name}_comes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" UPDATE {name} SET in_time = {in_time} WHERE n = NEW.n; RETURN NULL; END $$; "
        f"CREATE CONSTRAINT TRIGGER {name}_comes AFTER INSERT ON {name} DEFERRABLE INITIALLY DEFERRED"
        f" FOR EACH ROW EXECUTE FUNCTION {name}_comes()"
    )


def draw_tables(source: random.Random) -> list[Table]:
    """One to five tables, those that are referenced first, and perhaps one or two streams."""
    found: list[Table] = []
    for number in range(source.choice((1, 2, 2, 3, 3, 4, 5))):
        found.append(_edges(number) if source.random() < 0.12 else _table(source, number, found))
    keeps_rows, has_times = source.random() < 0.5, source.random() < 0.3
    several = (("s", "z"),) * 3 if has_times else ()
    for name in source.choice((("s",), ("s",), ("s", "z"), (), (), (), *several)):
        columns = [Column("k", "int"), *(Column(f"v{place}", draw_kind(source, but="arr")) for place in range(3))]
        columns += [Column("at", "ts", is_time=True)] if has_times else []
        delay = source.choice((0, 2, 4, 4, 7, None)) if has_times else None
        found.append(Table(name, tuple(columns), is_stream=True, keeps_rows=keeps_rows, delay=delay))
    return found


def _edges(number: int) -> Table:
    """The edges of a graph, for WITH RECURSIVE."""
    return Table(f"t{number}", (Column("src", "int"), Column("dst", "int")))


def _table(source: random.Random, number: int, others: list[Table]) -> Table:
    columns: list[Column] = []
    key: tuple[str, ...] = ()
    match source.choice(("id", "id", "id", "id", "text", "two", "", "")):
        case "id":
            key = ("id",)
            columns.append(Column("id", "int", True, False, " PRIMARY KEY"))
        case "text":
            key = ("id",)
            columns.append(Column("id", "text", True, False, " PRIMARY KEY"))
        case "two":
            key = ("id", "part")
            columns += [Column("id", "int", is_nullable=False), Column("part", "text", is_nullable=False)]
    for other in others:
        target = other.single_key
        if target is not None and source.random() < 0.55:
            rule = f" REFERENCES {other.name} {source.choice(_ACTIONS)}".rstrip()
            rule += _DEFERRED if source.random() < 0.15 else ""
            columns.append(Column(f"r{other.name}", target.kind, constraint=rule, references=other.name))
    columns = [_without_race(column, columns, others) for column in columns]
    if source.random() < 0.2:
        columns.append(Column("u", "int", True, constraint=" UNIQUE"))
    columns.append(Column("a", "int", is_nullable=source.random() < 0.8))
    columns += [
        Column(name, draw_kind(source), is_nullable=source.random() < 0.85) for name in "bcd"[: source.randint(1, 3)]
    ]
    return Table(f"t{number}", tuple(columns), key)


def _without_race(column: Column, columns: list[Column], others: list[Table]) -> Column:
    """A reference without an action to a table from which a cascade comes in another way, too: PostgreSQL looks for it
    after each row of that table, before or after the cascade of others, so it is looked for at the commit."""
    if column.constraint != f" REFERENCES {column.references}" or not column.references:
        return column
    ways = {item.references for item in columns} - {"", column.references}
    for other in reversed(others):
        if other.name in ways:
            ways |= {item.references for item in other.columns if item.references}
    return replace(column, constraint=f"{column.constraint}{_DEFERRED}") if column.references in ways else column


def draw_kind(source: random.Random, but: str = "") -> str:
    """A kind, more often a frequent one."""
    kinds = [kind for kind in _WEIGHTS if kind != but]
    return source.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]
