"""The place of a server's log: on the shared storage, from which other servers continue when this server is lost
(thesis, figure 6.7: compute and storage are apart).

Owns: that choice. It is made when a server's own folder is new, and kept by what is there: the log itself, or a link to
it. So a server finds its log by its own folder, whatever its name is by now. Either of the two folders could be put
back alone from an older copy, so both have a word of the server's last start. A copied data folder leads to
the same log as the original: one process at a time has it.

    <data>/servers/<id>/log           a folder; or a link to
    <storage>/servers/<name>/log/
    <storage>/servers/<name>/log/lock       locked while the log is open
    <storage>/servers/<name>/log/started    a word of the last start, or the server that adopted the streams (``close``)
    <data>/servers/<id>/log-started         that word; while a start writes both, also the word before (- for none)
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from catalog.values.errors import SqlError
from executor.cluster.registry import adopted
from executor.commit.files import disk_error, replace_file, sync_folder
from executor.options import Options

_STARTED: Final = "started"
_LOCK: Final = "lock"
#: The word of a log that no start knows.
_NONE: Final = "-"
#: What stands before the name of the server that has the log's streams.
_ADOPTED: Final = "adopted"


def place_log(options: Options) -> int | None:
    """Finds or creates the log's folder, and checks that it belongs to this server's data folder. The log is this
    process's until the returned descriptor is closed; a log in the data folder has no descriptor. Raises 58P01 where
    the folder is missing, 55000 where it belongs to another data folder, 55006 where another process has it, 53100,
    58030."""
    own = options.log_directory
    try:
        if options.storage and options.log_on_storage and not own.is_symlink() and not own.exists():
            _begin(own, options.storage_directory / "servers" / options.server_name / "log")
        if own.is_symlink() or (own / _STARTED).exists():
            return _recognize(own, options)
        return None
    except OSError as error:
        raise disk_error(error, "use the log on the storage that servers share") from error


def published(options: Options) -> str:
    """The log's folder for other servers: relative to the storage, or an absolute path of their machines."""
    place, storage = options.log_directory.resolve(), options.storage_directory.resolve()
    return str(place.relative_to(storage) if place.is_relative_to(storage) else place)


def is_shared(options: Options) -> bool:
    """Whether the log is on the storage."""
    return not Path(published(options)).is_absolute()


@contextmanager
def unused(log: Path, server: str) -> Iterator[None]:
    """A context in which a server's log is not open. Raises 55006 where a process has it, also one that only stands
    still, 55000 for a log that is not on the storage, and 53100, 58030."""
    if not (log / _STARTED).exists():
        hint = "Start that server again: its rows are only in its data folder."
        raise SqlError("55000", f'the log of server "{server}" is not on the storage', hint=hint)
    try:
        lock = _hold(log)
    except OSError as error:
        raise disk_error(error, f'close the log of server "{server}"') from error
    try:
        yield
    finally:
        os.close(lock)


def close(log: Path, heir: str) -> None:
    """Closes a log for good: its streams belong to another server. Raises 53100, 58030."""
    try:
        replace_file(log / _STARTED, f"{_ADOPTED} {heir}".encode())
    except OSError as error:
        raise disk_error(error, "close a log") from error


def _begin(own: Path, target: Path) -> None:
    """Creates the log's folder and then the link to it. A second link tells meanwhile whose the folder is, if this
    process dies."""
    begun = own.with_name("log.new")
    is_mine = begun.is_symlink() and begun.readlink() == target
    begun.unlink(missing_ok=True)
    begun.symlink_to(target)
    for folder in (target.parent.parent, target.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        target.mkdir(mode=0o700)
    except FileExistsError:
        if not is_mine or any(target.iterdir()):
            begun.unlink()
            raise _another(target, target.parent.name) from None
    for folder in (target.parent, target.parent.parent):
        sync_folder(folder)
    begun.rename(own)
    sync_folder(own.parent)


def _recognize(own: Path, options: Options) -> int:
    """Checks that the log belongs to the data folder, and that neither is an older copy; the descriptor of its lock."""
    if not own.is_dir():
        hint = f'Check that the storage is mounted. If the log has moved, make "{own}" a link to its new place.'
        raise SqlError("58P01", f'the log is not at "{own.readlink()}"', hint=hint)
    lock = _hold(own)
    try:
        here, there = own.with_name("log-started"), own / _STARTED
        known, found = _words(here), _words(there)
        if found[0] == _ADOPTED:
            raise adopted(options.server_name, found[-1])
        if found[0] not in known:
            raise _another(own.resolve(), options.server_name)
        word = secrets.token_hex(8)
        for path, words in ((here, f"{word} {found[0]}"), (there, word), (here, word)):
            replace_file(path, words.encode())
    except BaseException:
        os.close(lock)
        raise
    return lock


def _hold(own: Path) -> int:
    """The descriptor that keeps other processes from the log as long as this process lives."""
    lock = os.open(own / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise SqlError("55006", f'another process has the log "{own.resolve()}" open') from None
    return lock


def _words(path: Path) -> list[str]:
    return (path.read_text(errors="replace").split() if path.exists() else []) or [_NONE]


def _another(log: Path, server: str) -> SqlError:
    hint = f'Restore the data folder; or delete "{log}" and lose the rows that only it has.'
    return SqlError(
        "55000", f'the data folder does not belong to server "{server}", whose log is on the storage', hint=hint
    )
