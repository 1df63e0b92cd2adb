"""The file that stores the engine's macros: created once, read afterwards, and not used if it is damaged."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from executor.embedded.functions import library
from executor.embedded.instance import Instance


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file's path, before it exists."""
    path = tmp_path / "cache" / "macros-1.duckdb"
    monkeypatch.setattr(library, "kept_macros", lambda: path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    yield path


def _macros() -> set[str]:
    """The macros of a new instance, with their definitions; calls some of them."""
    instance = Instance()
    try:
        database = instance._database
        assert database.execute("SELECT ms_initcap('one two'), ms_ten(3)").fetchall() == [("One Two", 1000)]
        found = """
            SELECT function_name, parameters, macro_definition FROM duckdb_functions()
            WHERE starts_with(function_name, 'ms_') AND function_type = 'macro'
        """
        return {str(row) for row in database.execute(found).fetchall()}
    finally:
        instance.close()


def test_macros_are_kept_and_read_again(kept: Path) -> None:
    made = _macros()
    assert kept.exists()
    written = kept.stat().st_mtime_ns
    assert _macros() == made and len(made) > 200
    assert kept.stat().st_mtime_ns == written
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_what_was_kept_for_other_texts_goes(kept: Path) -> None:
    old = kept.with_name("macros-0.duckdb")
    kept.parent.mkdir()
    old.write_bytes(b"")
    _macros()
    assert kept.exists() and not old.exists()


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 300, None])
def test_a_damaged_file_is_made_anew(kept: Path, damage: bytes | None) -> None:
    made = _macros()
    kept.write_bytes(kept.read_bytes()[:20_000] if damage is None else damage)
    assert _macros() == made
    written = kept.stat().st_mtime_ns
    assert _macros() == made and kept.stat().st_mtime_ns == written


def test_nothing_is_written_where_python_writes_no_bytecode(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _macros()
    assert not kept.parent.exists()


def test_a_folder_that_cannot_be_written_is_no_obstacle(kept: Path) -> None:
    kept.parent.write_text("a file")
    assert _macros()


def test_a_file_that_cannot_be_looked_at_is_no_obstacle(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.parent.mkdir()
    unknown = kept.with_name("m" * 1000)
    with pytest.raises(OSError):
        unknown.exists()
    monkeypatch.setattr(library, "kept_macros", lambda: unknown)
    assert _macros()


def test_many_make_it_at_once(kept: Path) -> None:
    with ThreadPoolExecutor() as threads:
        one, other = threads.map(lambda _: _macros(), range(2))
    assert one == other == _macros()
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_the_file_changes_with_the_texts_and_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    path = library.kept_macros()
    monkeypatch.setattr(library, "MACROS", library.MACROS + " ")
    other = library.kept_macros()
    monkeypatch.setattr(duckdb, "__version__", "0")
    assert len({path, other, library.kept_macros()}) == 3
