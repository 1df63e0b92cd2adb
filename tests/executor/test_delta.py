"""Foreign tables over Delta tables: a version's rows, partitions and later columns, and refusals."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.files import file_tables
from tests.executor.client import Client

deltalake: Any = pytest.importorskip("deltalake")
DAY = dt.date(2024, 2, 29)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table with three versions: rows, more rows, and rows with one more column."""
    path = tmp_path / "lake"
    first = {"i": [1, 2, 3], "kind": ["a", "b c/d", None], "day": [DAY, DAY, None]}
    deltalake.write_deltalake(str(path), pa.table(first), partition_by=["kind", "day"])
    deltalake.write_deltalake(str(path), pa.table({"i": [4], "kind": ["a"], "day": [DAY]}), mode="append")
    later = pa.table({"i": [5], "kind": ["a"], "day": [DAY], "late": ["x"]})
    deltalake.write_deltalake(str(path), later, mode="append", schema_mode="merge")
    return path


def create(client: Client, name: str, path: Path, columns: str = "i bigint, kind text, day date", **more: str) -> None:
    options = "".join(f", {key} '{value}'" for key, value in more.items())
    client.run(f"CREATE FOREIGN TABLE {name} ({columns}) SERVER files OPTIONS (path '{path}', format 'delta'{options})")


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 250_000], ids=["engine", "reader"])
def test_a_version_has_its_rows(client: Client, lake: Path, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_tables, "_FEW_ROWS", few)
    create(client, "d", lake)
    create(client, "old", lake, version="0")
    create(client, "wide", lake, "i bigint, late text")
    assert client.run("SELECT i, kind, day FROM d WHERE day IS NOT NULL ORDER BY i") == [
        (1, "a", DAY),
        (2, "b c/d", DAY),
        (4, "a", DAY),
        (5, "a", DAY),
    ]
    assert client.run("SELECT i FROM old ORDER BY i") == [(1,), (2,), (3,)]
    assert client.run("SELECT i, late FROM wide ORDER BY i") == [(i, "x" if i == 5 else None) for i in range(1, 6)]
    assert ("Files of d: 3 of 5",) in client.run("EXPLAIN SELECT i FROM d WHERE kind = 'a'")
    deltalake.DeltaTable(str(lake)).delete("i = 1")
    deltalake.DeltaTable(str(lake)).optimize.compact()
    assert client.run("SELECT sum(i), count(*) FROM d") == [(14, 4)]
    assert client.run("SELECT count(*) FROM d WHERE kind = 'a'") == [(2,)]
    deltalake.DeltaTable(str(lake)).create_checkpoint()
    deltalake.DeltaTable(str(lake)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert client.run("SELECT sum(i) FROM d") == [(14,)]
    with pytest.raises(SqlError, match="no longer exists"):
        client.run("SELECT * FROM old")


def test_what_is_not_there_is_said(client: Client, lake: Path, tmp_path: Path) -> None:
    create(client, "nowhere", tmp_path / "nowhere")
    create(client, "future", lake, version="99")
    create(client, "strange", lake, "i bigint, what text")
    for name, sqlstate in (("nowhere", "58P01"), ("future", "22023"), ("strange", "42703")):
        with pytest.raises(SqlError) as caught:
            client.run(f"SELECT * FROM {name}")
        assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("options", "sqlstate"),
    [("format 'delta', partition 'i'", "42601"), ("format 'delta', version 'x'", "22023"), ("version '1'", "22023")],
)
def test_options(client: Client, options: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        client.run(f"CREATE FOREIGN TABLE t (i int, j int) SERVER files OPTIONS (path 'x', {options})")
    assert caught.value.sqlstate == sqlstate


def rewritten(lake: Path, change: dict[str, Any]) -> None:
    """The table's log with other settings."""
    for entry in (lake / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        for line in lines:
            for kind, values in change.items():
                if kind in line:
                    line[kind] |= values
        entry.write_text("\n".join(map(json.dumps, lines)))


def features(*names: str) -> dict[str, Any]:
    own = {"readerFeatures": list(names), "writerFeatures": list(names)}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **own}}


VECTOR = {"storageType": "p", "pathOrInlineDv": "file:///nowhere.bin", "offset": 1, "sizeInBytes": 1, "cardinality": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metaData": {"configuration": {"delta.columnMapping.mode": "name"}}}, "column mapping"),
        (features("typeWidening"), "typeWidening"),
        (features("deletionVectors") | {"add": {"deletionVector": VECTOR}}, ""),
    ],
)
def test_features_that_files_do_not_tell_are_refused(
    client: Client, lake: Path, change: dict[str, Any], words: str
) -> None:
    create(client, "d", lake)
    rewritten(lake, change)
    with pytest.raises(SqlError) as caught:
        client.run("SELECT * FROM d")
    assert caught.value.sqlstate in ("0A000", "58030")
    assert words in caught.value.message + str(caught.value.detail)


def test_features_that_are_not_in_use_do_not_matter(client: Client, lake: Path) -> None:
    create(client, "d", lake)
    rewritten(lake, features("deletionVectors", "timestampNtz"))
    assert client.run("SELECT count(*) FROM d") == [(5,)]
