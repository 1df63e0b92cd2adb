"""Manifests: a commit is a compare-and-swap of a frontier, and files that no manifest names do not count."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from executor.traces.manifest import MANIFEST, Manifest, NewRun, StateSchema, describe_state
from executor.traces.parquet import write_table
from planner.incremental.programs.rejected import REJECTED
from tests.rig.beside import at_once

STATES = {
    name: StateSchema("aggregate", (("c1", "int64"), ("c2", "int64")), ("c1",), (("c2", "sum"),)) for name in ("s", "t")
}


def create(folder: Path, paths: int = 2) -> Manifest:
    return Manifest.create(
        folder / "v1", "v1", "server", {"states": ["s", "t"]}, STATES, dict.fromkeys(range(paths), 0)
    )


def run(manifest: Manifest, name: str, rows: int = 1) -> NewRun:
    path = manifest.folder / f"{name}.parquet"
    write_table(path, pa.table({"c1": range(rows), "c2": range(rows)}))
    return NewRun((path,), rows)


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_commit_moves_all_states_of_a_path_together(tmp_path: Path) -> None:
    manifest = create(tmp_path)
    assert manifest.commit(0, 0, {"s": run(manifest, "a"), "t": run(manifest, "b", 3)}, 5)
    assert manifest.commit(1, 0, {"s": run(manifest, "c")}, 9)
    assert manifest.commit(0, 5, {}, 7)
    again = Manifest.open(manifest.folder)
    assert again.content == manifest.content
    assert again.content.frontiers == {0: 7, 1: 9}
    assert [(each.path, each.after, each.upto, each.rows) for each in again.content.runs["s"]] == [
        (0, 0, 5, 1),
        (1, 0, 9, 1),
    ]
    assert [(each.rows, each.files[0].name) for each in again.content.runs["t"]] == [(3, "b.parquet")]
    assert (again.content.program, again.content.owner) == ({"states": ["s", "t"]}, "server")
    assert dict(again.content.states) == {**STATES, REJECTED.name: describe_state(REJECTED)}


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=10
    )
)
def test_only_commits_from_the_frontier_count(
    tmp_path_factory: pytest.TempPathFactory, attempts: list[tuple[int, int, int, int]]
) -> None:
    """Three instances open one manifest, as three servers might, and are compared with a model of two integers."""
    folder = tmp_path_factory.mktemp("cas")
    manifests = [create(folder)]
    manifests += [Manifest.open(manifests[0].folder) for _ in range(2)]
    frontiers, total = [0, 0], 0
    for number, (path, after, length, opened) in enumerate(attempts):
        manifest = manifests[opened]
        new = run(manifest, f"r{number}", 2)
        before = (manifest.folder / MANIFEST).read_bytes()
        done = manifest.commit(path, after, {"s": new}, after + length)
        assert done == (after == frontiers[path])
        if done:
            frontiers[path] = after + length
            total += 2
        else:
            assert (manifest.folder / MANIFEST).read_bytes() == before
    last = Manifest.open(manifests[0].folder)
    assert list(last.content.frontiers.values()) == frontiers
    assert sum(each.rows for each in last.content.runs["s"]) == total
    for path in range(2):
        own = [each for each in last.content.runs["s"] if each.path == path]
        assert [each.after for each in own] == [0, *(each.upto for each in own)][:-1] if own else not own
        assert not own or own[-1].upto == frontiers[path]


def test_one_of_many_threads_wins_each_interval(tmp_path: Path) -> None:
    manifests = [create(tmp_path)]
    manifests += [Manifest.open(manifests[0].folder) for _ in range(3)]
    won: list[tuple[int, int]] = []

    def work(number: int) -> None:
        for upto in range(1, 11):
            new = run(manifests[number], f"r{number}-{upto}")
            if manifests[number].commit(0, upto - 1, {"s": new}, upto):
                won.append((upto, number))

    at_once(partial(work, number) for number in range(4))
    content = Manifest.open(manifests[0].folder).content
    assert sorted(upto for upto, _ in won) == list(range(1, content.frontiers[0] + 1))
    assert [each.files[0].name for each in content.runs["s"]] == [
        f"r{number}-{upto}.parquet" for upto, number in sorted(won)
    ]


def test_open_deletes_what_is_not_named(tmp_path: Path) -> None:
    manifest = create(tmp_path)
    manifest.commit(0, 0, {"s": run(manifest, "kept")}, 5)
    run(manifest, "orphan")
    (manifest.folder / "job-3" / "s").mkdir(parents=True)
    (manifest.folder / "job-3" / "s" / "part-0.parquet").write_bytes(b"x")
    (manifest.folder / "manifest.json.new").write_bytes(b"{")
    Manifest.open(manifest.folder)
    assert names(manifest.folder) == {"kept.parquet", "manifest.json", "manifest.lock"}
    assert not (manifest.folder / "job-3").exists()


def test_files_of_an_engine_may_lie_in_folders(tmp_path: Path) -> None:
    manifest = create(tmp_path)
    (manifest.folder / "job-3" / "s").mkdir(parents=True)
    new = run(manifest, "job-3/s/part-0")
    assert manifest.commit(0, 0, {"s": new}, 5)
    again = Manifest.open(manifest.folder)
    assert again.verify(again.content.runs["s"][0]) == new.files


def test_files_elsewhere_are_refused(tmp_path: Path) -> None:
    manifest = create(tmp_path)
    path = tmp_path / "elsewhere.parquet"
    write_table(path, pa.table({"c1": [1], "c2": [1]}))
    with pytest.raises(SqlError) as caught:
        manifest.commit(0, 0, {"s": NewRun((path,), 1)}, 5)
    assert caught.value.sqlstate == "XX001"
    assert manifest.content.frontiers == {0: 0, 1: 0}


def test_replaced_runs_keep_the_frontier(tmp_path: Path) -> None:
    manifest = create(tmp_path)
    for upto in range(1, 5):
        manifest.commit(0, upto - 1, {"s": run(manifest, f"r{upto}")}, upto)
    old = manifest.content.runs["s"][:3]
    merged = run(manifest, "merged", 3)
    assert manifest.replace_runs("s", old, merged.files, 3)
    assert [(each.after, each.upto, each.rows) for each in manifest.content.runs["s"]] == [(0, 3, 3), (3, 4, 1)]
    assert manifest.content.frontiers == {0: 4, 1: 0}
    assert not manifest.replace_runs("s", old, merged.files, 3)
    manifest.delete(old)
    assert names(manifest.folder) == {"merged.parquet", "r4.parquet", "manifest.json", "manifest.lock"}


def test_damaged_file_is_found(tmp_path: Path) -> None:
    manifest = create(tmp_path)
    new = run(manifest, "a")
    manifest.commit(0, 0, {"s": new}, 5)
    (stored,) = manifest.content.runs["s"]
    assert manifest.verify(stored) == new.files
    content = bytearray(new.files[0].read_bytes())
    content[10] ^= 1
    new.files[0].write_bytes(content)
    with pytest.raises(SqlError) as caught:
        manifest.verify(stored)
    assert caught.value.sqlstate == "XX001"
    new.files[0].unlink()
    with pytest.raises(SqlError) as caught:
        manifest.verify(stored)
    assert caught.value.sqlstate == "XX001"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}'])
def test_broken_manifest_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(SqlError) as caught:
        Manifest.open(tmp_path)
    assert caught.value.sqlstate == "XX001"


def test_later_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({"format": 3}))
    with pytest.raises(SqlError) as caught:
        Manifest.open(tmp_path)
    assert caught.value.sqlstate == "0A000"


def test_error_is_kept_and_taken_back(tmp_path: Path) -> None:
    manifest = create(tmp_path)
    manifest.set_error({"sqlstate": "22012", "lsn": 7})
    assert Manifest.open(manifest.folder).content.error == {"sqlstate": "22012", "lsn": 7}
    manifest.set_error(None)
    assert Manifest.open(manifest.folder).content.error is None


def test_drop_removes_the_folder(tmp_path: Path) -> None:
    manifest = create(tmp_path)
    manifest.commit(0, 0, {"s": run(manifest, "a")}, 5)
    manifest.drop()
    assert os.listdir(tmp_path) == []
