"""What CREATE EXTENSION makes in PostgreSQL, written as data: the members of those extensions that Millstream has.

Each is created by a fresh PostgreSQL, and the rows that it adds to the catalogs are written to a folder of its own,
with oids of a range that is reserved for it: in the order of creation, each type behind its array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

#: Extensions, and the oids from which their members are numbered.
EXTENSIONS: Final = {"uuid-ossp": 1 << 29, "hstore": (1 << 29) + 100}
#: Catalogs that an extension adds to, and the order of rows.
CATALOGS: Final = {
    "pg_type": "oid",
    "pg_proc": "oid",
    "pg_operator": "oid",
    "pg_cast": "oid",
    "pg_opfamily": "oid",
    "pg_opclass": "oid",
    "pg_amop": "oid",
    "pg_amproc": "oid",
    "pg_aggregate": "aggfnoid::oid",
}
_FIRST: Final = 16_384
_OIDS: Final = ("oid", "oid[]", "oidvector", "regproc", "regprocedure", "regtype", "regoper", "regclass")
_NUMBER: Final = re.compile(r"\d+")
#: What an extension is, besides its members.
_ABOUT: Final = (
    "SELECT name, version, comment, superuser, trusted, relocatable FROM pg_available_extension_versions v "
    "JOIN pg_available_extensions e USING (name, comment) WHERE version = default_version AND name = ANY (%s) "
    "ORDER BY name"
)
_SIGNATURES: Final = (
    "SELECT oid, pg_get_function_arguments(oid) AS arguments, pg_get_function_identity_arguments(oid) AS identity, "
    f"pg_get_function_result(oid) AS result FROM pg_proc WHERE oid >= {_FIRST} ORDER BY oid"
)


def write_extensions(connection: Any, folder: Path) -> None:
    """Writes ``<folder>/<extension>/<catalog>.tsv`` of each, and ``<folder>/extensions.tsv``."""
    for name, first in EXTENSIONS.items():
        connection.execute(f'CREATE EXTENSION "{name}"')
        numbers = _numbers(connection, first)
        (folder / name).mkdir(parents=True, exist_ok=True)
        for catalog, order in CATALOGS.items():
            key = "aggfnoid" if catalog == "pg_aggregate" else "oid"
            columns = _columns(connection, catalog)
            wanted = ", ".join(_written(column, kind) for column, kind in columns)
            query = f"SELECT {wanted} FROM {catalog} WHERE {key}::oid >= {_FIRST} ORDER BY {order}"
            _write(connection, query, columns, numbers, folder / name / f"{catalog}.tsv")
        _write(connection, _SIGNATURES, [("oid", "oid")], numbers, folder / name / "signatures.tsv")
        connection.execute(f'DROP EXTENSION "{name}"')
    rows = connection.execute(_ABOUT, [list(EXTENSIONS)])
    lines = ["\t".join(column.name for column in rows.description)]
    lines += ["\t".join(_shown(item) for item in row) for row in rows]
    (folder / "extensions.tsv").write_text("\n".join(lines) + "\n")


def _shown(item: object) -> str:
    return ("t" if item else "f") if isinstance(item, bool) else str(item)


def _columns(connection: Any, catalog: str) -> list[tuple[str, str]]:
    found = connection.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        [f"pg_catalog.{catalog}"],
    )
    return [(str(name), str(kind)) for name, kind in found.fetchall()]


def _written(column: str, kind: str) -> str:
    if kind == "pg_node_tree":
        return f"NULL::text AS {column}"
    return f"{column}::oid AS {column}" if kind.startswith("reg") else column


def _numbers(connection: Any, first: int) -> dict[str, str]:
    """The reserved oids by those that the server gave: pairs of an array type and its type, then all else."""
    pairs = connection.execute(
        f"SELECT oid, typarray FROM pg_type WHERE oid >= {_FIRST} AND typcategory <> 'A' ORDER BY oid"
    ).fetchall()
    types = [oid for own, array in pairs for oid in (array, own)]
    others = [
        oid
        for catalog in CATALOGS
        if catalog not in ("pg_type", "pg_aggregate")
        for (oid,) in connection.execute(f"SELECT oid FROM {catalog} WHERE oid >= {_FIRST} ORDER BY oid").fetchall()
    ]
    return {str(oid): str(first + place) for place, oid in enumerate((*types, *others))}


def _write(
    connection: Any, query: str, columns: Sequence[tuple[str, str]], numbers: dict[str, str], path: Path
) -> None:
    of_oids = {name for name, kind in columns if kind in _OIDS}
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT (HEADER)".encode()) as copy:
        text = b"".join(bytes(piece) for piece in copy).decode()
    head, *lines = text.splitlines()
    names = head.split("\t")
    if not lines:
        path.unlink(missing_ok=True)
        return
    path.write_text("\n".join([head, *_renumbered(names, lines, of_oids, numbers)]) + "\n")


def _renumbered(
    names: Sequence[str], lines: Sequence[str], of_oids: set[str], numbers: dict[str, str]
) -> Iterator[str]:
    for line in lines:
        fields = zip(names, line.split("\t"), strict=True)
        yield "\t".join(
            _NUMBER.sub(lambda match: numbers.get(match[0], match[0]), field) if name in of_oids else field
            for name, field in fields
        )
