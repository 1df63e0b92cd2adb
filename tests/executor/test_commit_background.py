"""Syncs in the background by the real kernel, and without it."""

from __future__ import annotations

import errno
import os
import select
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from executor.commit import aio, background
from executor.commit.background import BackgroundFiles, background_files
from executor.commit.files import Files

LONG = 30.0

pytestmark = pytest.mark.skipif(not aio.is_possible(), reason="not Linux")


class Watcher:
    """An event loop's part: waits for descriptors."""

    def __init__(self, files: Files) -> None:
        self._calls: dict[int, Callable[[], None]] = {}
        assert files.watch(self._calls.__setitem__)

    def turn(self) -> None:
        ready, _, _ = select.select(list(self._calls), [], [], LONG)
        for descriptor in ready:
            self._calls[descriptor]()


def test_syncs_end_while_their_thread_does_something_else(tmp_path: Path) -> None:
    files = background_files()
    assert isinstance(files, BackgroundFiles)
    watcher = Watcher(files)
    ended: list[tuple[OSError | None, int]] = []
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    try:
        for number in range(20):
            files.write(descriptor, (b"some data",), 9 * number)
            files.begin_sync(descriptor, lambda error: ended.append((error, threading.get_ident())))
            assert len(ended) == number
            watcher.turn()
            assert len(ended) == number + 1
    finally:
        os.close(descriptor)
    assert ended == [(None, threading.get_ident())] * 20


def test_many_at_once_all_end(tmp_path: Path) -> None:
    files = background_files()
    watcher = Watcher(files)
    ended: list[OSError | None] = []
    with open(tmp_path / "file", "wb") as file:
        for _ in range(500):  # more than the kernel has room for
            files.begin_sync(file.fileno(), ended.append)
        while len(ended) < 500:
            watcher.turn()
    assert ended == [None] * 500


def test_what_the_kernel_does_not_take_happens_at_once() -> None:
    files = background_files()
    ended: list[OSError | None] = []
    reader, writer = os.pipe()  # which cannot be synced
    try:
        files.begin_sync(writer, ended.append)
    finally:
        os.close(reader)
        os.close(writer)
    (error,) = ended
    assert error is not None
    assert error.errno == errno.EINVAL


def test_an_error_is_the_systems_own() -> None:
    ended: list[OSError | None] = []
    background._ended(ended.append, 0, -errno.EIO)
    (error,) = ended
    assert error is not None
    assert (error.errno, error.strerror) == (errno.EIO, os.strerror(errno.EIO))


def test_without_the_kernels_help_a_sync_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "is_possible", lambda: False)
    files = background_files()
    assert not files.watch(lambda descriptor, call: None)
    ended: list[OSError | None] = []
    with open(tmp_path / "file", "wb") as file:
        files.begin_sync(file.fileno(), ended.append)
    assert ended == [None]
    files.begin_sync(1 << 20, ended.append)
    assert isinstance(ended[1], OSError)
