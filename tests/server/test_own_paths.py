"""Errors do not show clients the paths of the server's folders."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.os_errors import exhausted, state_of, state_of_file
from catalog.values.errors import SqlError
from executor.embedded.errors import translate
from server.operations.config import Config
from server.operations.own_paths import OwnPaths

_CODE = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            'Cannot open file "/srv/data/servers/main/spill/a.tmp": ...',
            'Cannot open file "servers/main/spill/a.tmp": ...',
        ),
        ("no space in /srv/data", "no space in ."),
        ('could not read "/mnt/shared/claims/7.json"', 'could not read "claims/7.json"'),
        (f"At:\n  {_CODE}/executor/embedded/engine.py(12): run", "At:\n  engine.py(12): run"),
        (f"{os.__file__}: x", "os.py: x"),
        ('could not open "/srv/database/x.csv"', 'could not open "/srv/database/x.csv"'),
    ],
)
def test_files_of_the_server_are_named_from_its_own_folder_on(message: str, shown: str) -> None:
    paths = OwnPaths(Config(data=Path("/srv/data"), storage="/mnt/shared"))
    found = paths.hidden(SqlError("58030", message, message, message, where=message))
    assert (found.message, found.detail, found.hint, found.where) == (shown,) * 4
    assert found.sqlstate == "58030"


def test_a_path_that_the_client_wrote_stays() -> None:
    paths = OwnPaths(Config(data=Path("/srv/data")))
    error = SqlError("58P01", 'could not open file "/srv/data/x.csv" for reading')
    assert paths.hidden(error, "COPY t FROM '/srv/data/x.csv'").message == error.message


@pytest.mark.parametrize(
    ("number", "own", "of_file"),
    [
        (errno.EMFILE, "53000", "53000"),
        (errno.ENFILE, "53000", "53000"),
        (errno.ENOSPC, "53100", "53100"),
        (errno.EDQUOT, "53100", "53100"),
        (errno.ENOMEM, "53200", "53200"),
        (errno.ENOENT, "58030", "58P01"),
        (errno.EACCES, "58030", "42501"),
        (errno.EISDIR, "58030", "42809"),
        (errno.EIO, "58030", "58030"),
    ],
)
def test_error_numbers_have_the_sqlstates_of_postgresql(number: int, own: str, of_file: str) -> None:
    error = OSError(number, os.strerror(number))
    assert (state_of(error), state_of_file(error)) == (own, of_file)


def test_what_is_exhausted_is_told_by_its_sqlstate() -> None:
    found = [exhausted(error) for error in (MemoryError(), pa.ArrowMemoryError(), OSError(errno.EMFILE, "x"))]
    assert [error and error.sqlstate for error in found] == ["53200", "53200", "53000"]
    assert exhausted(ValueError()) is None
    assert translate(RuntimeError('IO Error: Cannot open file "/x": Too many open files')).sqlstate == "53000"
