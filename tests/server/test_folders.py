"""Access to the data folder: only its owner, or readers of its group; the server refuses to start with other
permissions."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig.process import free_port
from tests.rig.server import ROOT, Millstream

pytestmark = pytest.mark.slow

QUIET = {"maintenance_engine": "embedded", "spark_enabled": False, "log_segment_bytes": "1MB"}


def _modes(folder: Path) -> set[str]:
    """The permissions of others on folders and files below a folder."""
    found = set()
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if not path.is_symlink() and mode & 0o077:
            found.add(f"{path.relative_to(folder)} {mode:04o}")
    return found


def _refused(data: Path, *more: str) -> str:
    """The reason why a server does not start."""
    command = [sys.executable, "-m", "server", f"--listen=127.0.0.1:{free_port()}", f"--data={data}", *more]
    done = subprocess.run([*command, "--spark-enabled=false"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    (why,) = done.stderr.splitlines()
    return why.partition(" the server cannot start: ")[2]


def _fill(server: Millstream) -> None:
    with server.connect() as client:
        client.execute("CREATE FOREIGN TABLE s (a integer) SERVER stream; CREATE TABLE t (id serial, a integer)")
        client.execute("CREATE VIEW v AS SELECT a, count(*) FROM s GROUP BY a")
        client.execute("INSERT INTO t (a) VALUES (1); INSERT INTO s VALUES (1)")
        assert client.execute("SELECT * FROM v").fetchall() == [(1, 1)]


def test_other_users_cannot_read_a_servers_files(tmp_path: Path) -> None:
    """Also if the folder existed before, with hba.conf in it, and for any umask."""
    data, storage = tmp_path / "data", tmp_path / "storage"
    data.mkdir()
    data.chmod(0o755)
    (data / "hba.conf").write_text("host all all 127.0.0.1/32 trust\n")
    (data / "hba.conf").chmod(0o600)
    with Millstream(data, {**QUIET, "storage": str(storage)}) as server:
        _fill(server)
        assert _modes(data) == set()
        server.restart()
        assert _modes(data) == set()
        assert _modes(storage) == set()


def test_a_folder_that_others_may_enter_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    data = tmp_path / "its data"
    with Millstream(data, QUIET) as server:
        _fill(server)
        server.kill9()
        for mode in (0o755, 0o701, 0o770, 0o720):
            data.chmod(mode)
            (data / "servers/main/tables.duckdb").chmod(0o644)
            why = _refused(data)
            assert why.startswith(f'data directory "{data}" has invalid permissions (0{mode:o})')
            assert stat.S_IMODE(data.stat().st_mode) == mode
            subprocess.run(why.partition("run: ")[2], shell=True, check=True)
        assert _modes(data) == set()
        server.start()
        with server.connect() as client:
            assert client.execute("SELECT * FROM v").fetchall() == [(1, 1)]


def test_a_group_may_read_where_the_folder_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o750)
    with Millstream(data, QUIET) as server:
        _fill(server)
        assert all(mode.endswith(("0750", "0640")) for mode in _modes(data))
        assert stat.S_IMODE((data / "servers/main/tables.duckdb").stat().st_mode) == 0o640


def test_a_storage_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    (storage / "views").mkdir(parents=True)
    storage.chmod(0o755)
    why = _refused(tmp_path / "data", f"--storage={storage}")
    assert why.startswith(f'storage directory "{storage}" has invalid permissions (0755)')
