"""The place of a server's log, and that a data folder finds its own log only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.cluster.logs import place_log, published
from executor.options import Options

#: Starts a server with a data folder and other than the usual settings; returns the place of its log.
Start = Callable[..., Path]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def start(data: str = "one", name: str = "one", **settings: Any) -> Path:
        shared = {"storage": str(tmp_path / "storage"), "server_name": name, **settings}
        options = Options(tmp_path / data, **shared)
        if not options.server_directory.is_dir():
            options.server_directory.mkdir(parents=True)
        lock = place_log(options)
        if lock is not None:
            os.close(lock)
        options.log_directory.mkdir(exist_ok=True)  # as the log does
        return options.log_directory.resolve()

    return start


def on_storage(tmp_path: Path, name: str = "one") -> Path:
    return tmp_path / "storage" / "servers" / name / "log"


def test_on_the_storage_where_there_is_one(start: Start, tmp_path: Path) -> None:
    assert start() == start() == on_storage(tmp_path)
    own = tmp_path / "two" / "servers" / "main" / "log"
    assert start("two", "two", log_on_storage=False) == own
    assert start("two", "two") == own, "where it has begun"
    assert start("three", "three", storage="") == tmp_path / "three" / "servers" / "main" / "log"


def test_others_find_it(start: Start, tmp_path: Path) -> None:
    start()
    storage = str(tmp_path / "storage")
    assert published(Options(tmp_path / "one", storage=storage)) == "servers/one/log"
    start("two", "two", log_on_storage=False)
    assert published(Options(tmp_path / "two", storage=storage)) == str(tmp_path / "two/servers/main/log")


def test_a_server_of_another_name_keeps_its_log(start: Start, tmp_path: Path) -> None:
    start()
    assert start(name="other") == on_storage(tmp_path)
    assert refused(start, "two") == "55000"


def refused(start: Start, *arguments: str) -> str:
    with pytest.raises(SqlError) as raised:
        start(*arguments)
    return raised.value.sqlstate


def test_another_folder_finds_none(start: Start, tmp_path: Path) -> None:
    """A folder that is empty, or older than the log, is refused, and the refusal changes nothing."""
    start()
    shutil.copytree(tmp_path / "one", tmp_path / "older", symlinks=True)
    start()
    assert [refused(start, folder) for folder in ("older", "new", "new")] == ["55000"] * 3
    shutil.copytree(on_storage(tmp_path), tmp_path / "log")
    start()
    shutil.rmtree(on_storage(tmp_path))
    assert refused(start) == "58P01"
    shutil.copytree(tmp_path / "log", on_storage(tmp_path))
    assert refused(start) == "55000", "a log of the start before"
    shutil.rmtree(on_storage(tmp_path))
    assert start("new") == on_storage(tmp_path)


def test_what_is_no_word_of_a_start(start: Start, tmp_path: Path) -> None:
    start()
    for path in (on_storage(tmp_path) / "started", tmp_path / "one" / "servers" / "main" / "log-started"):
        written = path.read_bytes()
        for damaged in (b"\xff", written + b"\xe9\x00"):
            path.write_bytes(damaged)
            assert refused(start) == "55000"
        path.write_bytes(written)
    start()


def test_a_copy_beside_the_folder(start: Start, tmp_path: Path) -> None:
    """A copy of a running server's folder does not get the log, and does not keep the server from starting again."""
    start()
    shutil.copytree(tmp_path / "one", tmp_path / "copy", symlinks=True)
    lock = "import fcntl, sys; lock = open(sys.argv[1], 'wb'); fcntl.lockf(lock, fcntl.LOCK_EX); print(flush=True)"
    running = [sys.executable, "-c", f"{lock}; sys.stdin.read()", str(on_storage(tmp_path) / "lock")]
    with subprocess.Popen(running, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        assert refused(start, "copy") == "55006"
        server.communicate()
    start()
    assert refused(start, "copy") == "55000"


def test_it_moves_by_hand(start: Start, tmp_path: Path) -> None:
    own = start(log_on_storage=False)
    (own / "0.log").touch()
    on_storage(tmp_path).parent.mkdir(parents=True)
    shutil.move(own, on_storage(tmp_path))
    own.symlink_to(on_storage(tmp_path))
    assert start() == start() == on_storage(tmp_path)
    shutil.move(on_storage(tmp_path), tmp_path / "elsewhere")
    own.unlink()
    own.symlink_to(tmp_path / "elsewhere")
    assert start() == tmp_path / "elsewhere"


@pytest.mark.parametrize("step", ["folder", "link", "first word", "word", "known"])
def test_a_start_that_died(step: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start dies before the folder exists, before the link exists, before the log knows of the start, and after
    that."""

    (tmp_path / "one" / "servers" / "main").mkdir(parents=True)

    def dying(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if step in ("word", "known"):
            start()
        if step in ("first word", "word", "known"):
            patch.setattr("executor.cluster.logs.replace_file", before(3 if step == "known" else 2, dying))
        else:
            patch.setattr(Path, "mkdir" if step == "folder" else "rename", dying)
        start()
    assert start() == start() == on_storage(tmp_path)


def before(times: int, dying: Callable[..., None]) -> Callable[[Path, bytes], None]:
    """Writes files, and dies before the last one."""
    left = [None] * (times - 1)

    def write(path: Path, content: bytes) -> None:
        if not left:
            dying()
        left.pop()
        path.write_bytes(content)

    return write
