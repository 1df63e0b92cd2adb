"""What every benchmark needs: the two servers, the data, medians, and the form of a figure.

Owns: a ``Rig`` that starts Millstream (default settings, durable, Spark behind it) and a PostgreSQL with default
settings (fsync on) on the same disk, generates TPC-H, and runs pgbench; and ``Row``, one line of the table.
"""

from __future__ import annotations

import mmap
import os
import platform
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from bench.client import Client
from tests.rig.postgres import Postgres
from tests.rig.server import DATABASE, USER, Millstream, java_is_there
from tests.rig.tpch import TABLES, Tpch

ROOT: Final = Path(__file__).resolve().parents[1]
BUILT_IN: Final = ("select-only", "tpcb-like")
RESULTS: Final = ROOT / "bench" / "results"
#: What makes a process id the clock of that process's threads together (Linux, clock_getcpuclockid).
_SCHEDULED: Final = 2
#: Seconds between two looks at a view.
_PAUSE: Final = 0.05


class Row(Struct, frozen=True):
    """One figure: ours beside a peer's, and the aim, which is a ratio to the peer or, without one, an absolute value.

    ``runs`` are our single measurements, whose median is ``ours``. ``better`` says which way is good.
    """

    case: str
    ours: float
    unit: str
    peer: float | None = None
    peer_name: str = ""
    aim: float | None = None
    aim_text: str = ""
    better: Literal["more", "less"] = "more"
    runs: tuple[float, ...] = ()

    @property
    def ratio(self) -> float | None:
        """How many times better than the peer."""
        if self.peer is None or not self.ours or not self.peer:
            return None
        return self.ours / self.peer if self.better == "more" else self.peer / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the aim is reached; None without one."""
        if self.aim is None:
            return None
        if self.peer is not None:
            assert self.ratio is not None
            return self.ratio >= self.aim
        return self.ours >= self.aim if self.better == "more" else self.ours <= self.aim


@dataclass
class Rig:
    """The servers and data of one run of the benchmarks."""

    rounds: int = 3
    seconds: int = 8  # of one pgbench run
    scale: float = 1.0
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="millstream-bench-")))

    @cached_property
    def tpch(self) -> Tpch:
        """Generated data, kept between runs."""
        return Tpch(Path(os.environ.get("MILLSTREAM_TPCH", Path(tempfile.gettempdir()) / "millstream-tpch")))

    @cached_property
    def postgres(self) -> Postgres:
        """PostgreSQL with its default settings, but for more clients than they admit."""
        return Postgres({"max_connections": "600"})

    @contextmanager
    def millstream(self, **settings: object) -> Iterator[Millstream]:
        """A fresh Millstream; its folder vanishes with it."""
        folder = Path(tempfile.mkdtemp(prefix="data-", dir=self.folder))
        try:
            with Millstream(folder / "data", settings) as server:
                if java_is_there() and settings.get("spark_enabled", True):
                    server.wait_for_spark()  # the figures are those of a server that runs, not of a JVM that starts
                yield server
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Ends what was started."""
        if "postgres" in self.__dict__:
            self.postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def lineitem(self) -> mmap.mmap:
        """The CSV file's bytes behind its header line, mapped."""
        path = self.tpch.csv(self.scale, "lineitem")
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def median(self, measure: Callable[[], float]) -> tuple[float, tuple[float, ...]]:
        """The median of several runs, and the runs."""
        runs = tuple(measure() for _ in range(self.rounds))
        return statistics.median(runs), runs

    def pgbench(self, server: Millstream | Postgres, script: str, clients: int, mode: str) -> float:
        """Transactions per second of a script, or of one that pgbench has built in."""
        user, database = (USER, DATABASE) if isinstance(server, Millstream) else ("postgres", "postgres")
        path = self.folder / "script.sql"
        path.write_text(script)
        chosen = ["-b", script] if script in BUILT_IN else ["-f", str(path)]
        size = ["-c", str(clients), "-j", str(min(clients, 2)), "-T", str(self.seconds), "-M", mode]
        where = ["-h", "127.0.0.1", "-p", str(server.port), "-U", user, database]
        done = subprocess.run(["pgbench", "-n", *chosen, *size, *where], capture_output=True, text=True, check=False)
        found = re.search(r"tps = ([0-9.]+)", done.stdout)
        if done.returncode or found is None:
            raise RuntimeError(f"pgbench failed: {done.stderr[-800:]}")
        return float(found[1])


def connect(server: Millstream | Postgres) -> Client:
    """A raw client of either server."""
    if isinstance(server, Millstream):
        return Client(server.port, USER, DATABASE)
    return Client(server.port, "postgres", "postgres")


def used(server: Millstream, client: Client, query: str) -> float:
    """Milliseconds of processor time of a server's process for a query."""
    before = processor_time(server.pid)
    client.query(query)
    return (processor_time(server.pid) - before) * 1000


def processor_time(pid: int) -> float:
    """Seconds that a process has run, all threads together, without its children."""
    return time.clock_gettime(~pid << 3 | _SCHEDULED)


def wait_until_kept(client: Client, view: str, seconds: float = 12.0) -> None:
    """Returns once a view's rows are kept, which the server fills in the background; or after some seconds, since not
    all views have such rows."""
    parts = f"SELECT FROM millstream.paths WHERE view = '{view}' AND part LIKE 'node %'"
    end = time.monotonic() + seconds
    while not client.query(f"{parts} AND rows IS NOT NULL") and client.query(parts) and time.monotonic() < end:
        time.sleep(_PAUSE)


def body(data: mmap.mmap) -> memoryview:
    """A CSV file without its header line."""
    return memoryview(data)[data.find(b"\n") + 1 :]


def load(client: Client, rig: Rig, tables: Sequence[str], scale: float | None = None) -> None:
    """Creates tables of TPC-H and fills them, at the rig's scale or another one."""
    for name in tables:
        client.query(f"CREATE TABLE {name} ({TABLES[name]})")
        client.copy(f"COPY {name} FROM STDIN (FORMAT csv, HEADER)", rig.tpch.csv(scale or rig.scale, name).read_bytes())


def create_stream(client: Client, stream: bool) -> None:
    """lineitem as a stream, or as an ordinary table at the peer."""
    if stream:
        client.query(f"CREATE FOREIGN TABLE lineitem ({TABLES['lineitem']}) SERVER stream")
    else:
        client.query(f"DROP TABLE IF EXISTS lineitem; CREATE TABLE lineitem ({TABLES['lineitem']})")


def machine() -> str:
    """What the figures were measured on, in one line."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[0]) >> 20
    postgres = subprocess.run(["pg_config", "--version"], capture_output=True, text=True).stdout.strip()
    names = ", ".join(f"{name} {version(name)}" for name in ("duckdb", "pyspark", "pyarrow"))
    return (
        f"{os.cpu_count()} cores of {cpu[1] if cpu else platform.machine()}, {memory} GiB of memory, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, {names}, "
        f"{postgres or 'PostgreSQL'}"
    )
