"""The queries of TPC-H, TPC-DS and Nexmark as files, and tables with rows on either server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import psycopg

Suite = Literal["tpch", "tpcds", "nexmark"]
FOLDER = Path(__file__).parents[1] / "sql"


def queries(suite: Suite) -> list[Path]:
    """The files of all queries, in the order of their numbers."""
    return sorted((FOLDER / suite).glob("q*.sql"), key=lambda path: int(path.stem[1:]))


def read(tables: Mapping[str, str], paths: Iterable[Path]) -> dict[str, str]:
    """Those of the tables that queries name."""
    words = {word for path in paths for word in re.findall(r"\w+", path.read_text())}
    return {name: columns for name, columns in tables.items() if name in words}


def load(connection: psycopg.Connection[Any], tables: Mapping[str, str], csv: Callable[[str], Path]) -> None:
    """Creates tables (names to columns) with the rows of CSV files with a header line."""
    for name, columns in tables.items():
        connection.execute(f"CREATE TABLE {name} ({columns})".encode())
        copy(connection, name, csv(name))


def copy(connection: psycopg.Connection[Any], table: str, csv: Path) -> None:
    """COPY of a CSV file with a header line."""
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)".encode()) as target:
        target.write(csv.read_bytes())
