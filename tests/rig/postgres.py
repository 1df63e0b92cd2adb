"""A real PostgreSQL in a temporary folder: the judge of queries' results, and the peer in benchmarks.

Owns: finding Debian's binaries, a private cluster on a free port as an unprivileged user, and its end. The cluster is a
child of this process and ends with it.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from tests.rig.process import end, free_port, spawn, wait_until

#: Settings for tests: no data need survive, and no query runs long enough to benefit from compilation.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    "work_mem": "64MB",
    "shared_buffers": "256MB",
}


def binaries() -> Path | None:
    """The newest installed PostgreSQL's programs, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: int(path.split("/")[4]))
    if found:
        return Path(found[-1]).parent
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


class Postgres:
    """One cluster, started by the constructor and deleted by ``stop``."""

    def __init__(self, settings: Mapping[str, str] = FAST) -> None:
        programs = binaries()
        assert programs is not None, "PostgreSQL is not installed (apt-get install postgresql postgresql-contrib)"
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-postgres-"))
        self._account = _account()
        if self._account:
            shutil.chown(self._folder, self._account, pwd.getpwnam(self._account).pw_gid)
        cluster = self._folder / "cluster"
        self._run(
            [
                str(programs / "initdb"),
                *("--pgdata", str(cluster), "--username", "postgres", "--auth", "trust"),
                *("--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"),
            ]
        )
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "timezone": "UTC", **settings}
        self._process = spawn(
            [
                str(programs / "postgres"),
                *("-D", str(cluster), "-p", str(self.port)),
                *(word for name, value in options.items() for word in ("-c", f"{name}={value}")),
            ],
            self._folder / "log",
            signal.SIGQUIT,
            cwd=self._folder,
            **self._as_account(),
        )
        wait_until(self._answers, 60, "PostgreSQL")

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        return self._process.pid

    def dsn(self, database: str = "postgres") -> str:
        """A connection string."""
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """A new autocommit connection."""
        return psycopg.connect(self.dsn(), autocommit=True, **options)

    def log(self) -> str:
        """The server's log."""
        return (self._folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """A fast shutdown, which leaves no files."""
        end(self._process, signal.SIGINT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        assert self._process.poll() is None, f"PostgreSQL ended at once:\n{self.log()}"
        try:
            self.connect(connect_timeout=20).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, cwd=self._folder, **self._as_account())
        assert done.returncode == 0, done.stdout + done.stderr

    def _as_account(self) -> dict[str, Any]:
        if not self._account:
            return {}
        entry = pwd.getpwnam(self._account)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _account() -> str:
    """The user for the server: PostgreSQL refuses to run as root, so root uses an unprivileged user."""
    if os.geteuid() != 0:
        return ""
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise AssertionError("neither user postgres nor user nobody exists")
