"""The functions and macros that the printed SQL calls, and their installation in a new instance.

Owns: ``FAMILIES`` and ``MACROS``, the lists of them, and the file that keeps the macros. DuckDB takes 0.3 ms to create
a macro, but only 6 ms to copy all of them from a database. So the first instance stores them in a database file beside
the modules' bytecode, with the same rules: it is rewritten if the texts or DuckDB change, and not written if Python
writes no bytecode.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import sys
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, Final

import duckdb

from executor.embedded.functions import batches, scalar_macros, steered_calls
from executor.embedded.functions.composites import array_shapes, multiranges, ranges
from executor.embedded.functions.json_functions import documents, jsonpaths, modification
from executor.embedded.functions.numbers import (
    money,
    number_to_char,
    numeric_macros,
    quotients,
    spread_macros,
    to_number,
    transcendental,
)
from executor.embedded.functions.texts import (
    bit_strings,
    bytea,
    encodings,
    hstores,
    identifiers,
    networks,
    regexes,
    text_forms,
    type_names,
)
from executor.embedded.functions.times import interval_to_char, moments, timetz, to_timestamp

FAMILIES: Final = (
    money,
    bit_strings,
    modification,
    documents,
    encodings,
    text_forms,
    hstores,
    identifiers,
    interval_to_char,
    moments,
    networks,
    to_number,
    number_to_char,
    bytea,
    jsonpaths,
    ranges,
    regexes,
    array_shapes,
    transcendental,
    type_names,
    timetz,
)
MACROS: Final = "".join(
    family.STATEMENTS
    for family in (
        numeric_macros,
        scalar_macros,
        spread_macros,
        timetz,
        moments,
        array_shapes,
        ranges,
        multiranges,
        money,
        bit_strings,
        text_forms,
    )
)
#: The catalog of an instance in memory, and the name of the file's catalog in it.
_OWN, _KEPT = "memory", "kept"


def install(database: Any, query: steered_calls.Query, running: batches.Batches) -> None:
    """Defines all functions and macros in a new in-memory instance, for all of its connections."""
    database.begin()
    for family in FAMILIES:
        batches.register(database, family.FUNCTIONS, running)
    for family in (modification, documents, hstores, array_shapes):
        batches.register(database, family.OF_NULL, running, strict=False)
    for columns in (to_timestamp.COLUMNS, multiranges.OF_COLUMNS, quotients.COLUMNS):
        batches.register_columns(database, columns, running)
    steered_calls.register(database, query)
    database.commit()
    path = kept_macros()
    if not _read(database, path):
        database.execute(f"BEGIN; {MACROS} COMMIT")
        if not sys.dont_write_bytecode:
            _write(database, path)


def kept_macros() -> Path:
    """The file for the macros of these texts and this version of DuckDB."""
    version = hashlib.sha256(f"{duckdb.__version__}\n{MACROS}".encode()).hexdigest()[:16]
    return Path(cache_from_source(__file__)).with_name(f"macros-{version}.duckdb")


def _read(database: Any, path: Path) -> bool:
    """Whether the macros could be copied; a damaged or unreadable file counts as missing."""
    try:
        _with_kept(database, path, "READ_ONLY", f"COPY FROM DATABASE {_KEPT} TO {_OWN}")
    except duckdb.Error:
        return False
    return True


def _write(database: Any, path: Path) -> None:
    """Writes the file, if the folder is writable; another process may do so concurrently."""
    new = path.with_suffix(f".{secrets.token_hex(4)}")
    with contextlib.suppress(OSError, duckdb.Error):
        path.parent.mkdir(exist_ok=True)
        for old in path.parent.glob("macros-*"):
            old.unlink(missing_ok=True)
        _with_kept(database, new, "BLOCK_SIZE 16384", f"COPY FROM DATABASE {_OWN} TO {_KEPT}")
        new.replace(path)


def _with_kept(database: Any, path: Path, options: str, statement: str) -> None:
    quoted = str(path).replace("'", "''")
    database.execute(f"ATTACH '{quoted}' AS {_KEPT} ({options})")
    try:
        database.execute(statement)
    finally:
        database.execute(f"DETACH {_KEPT}")
