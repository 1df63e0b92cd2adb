"""Peers as processes: environments that are made when they are first asked for, requests, and processor time.

An environment lies in the user's cache folder and is named by its packages' versions, so that others are made beside
the old one. A peer and all processes that it starts are one session of the operating system; the processor times of the
session's processes are added up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from msgspec import Struct

from bench.harness import ROOT
from executor.spark.java import Java, find_java
from tests.rig.process import die_with_parent

#: What each engine may use, in bytes and as JVMs take it.
BYTES: Final = 2 << 30
MEMORY: Final = f"{BYTES >> 20}m"
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "millstream" / "peers"
#: Where /proc/PID/stat has session, and user and system time in ticks, behind the name of the program.
_SESSION: Final = 3
_TIMES: Final = slice(11, 13)


class Peer(Struct, frozen=True):
    """An engine: its program below this folder, the program's arguments, and what pip is to install for it; nothing
    stands for the project's own environment."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


class Cost(Struct, frozen=True):
    """What a run has taken: seconds on the clock, and seconds of processors."""

    seconds: float
    processor: float


class FailedError(Exception):
    """A peer could not run a query, and says why; it can run others."""


class Running:
    """A peer's process. ``log`` takes what it writes besides answers."""

    def __init__(self, peer: Peer, log: Path) -> None:
        self.peer = peer
        self._log: IO[bytes] = log.open("wb")
        command = [_python(peer), str(Path(__file__).parent / peer.program), *peer.arguments]
        java = find_java(os.environ)
        assert isinstance(java, Java), java
        own = {"JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1", **peer.environment}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=self._log,
            cwd=log.parent,
            env={**os.environ, **own},
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )

    def rows(self, query: str, folder: Path) -> int:
        """How many rows the result over a folder's files has."""
        return int(self._ask(query, folder, True)["rows"])

    def run(self, query: str, folder: Path) -> Cost:
        """What a run of a query over a folder's files takes, its result dropped."""
        before = session_time(self._process.pid)
        seconds = float(self._ask(query, folder, False)["seconds"])
        return Cost(seconds, session_time(self._process.pid) - before)

    def close(self) -> None:
        """Ends it and all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for left in _session(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()

    def _ask(self, query: str, folder: Path, count: bool) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"query": query, "folder": str(folder), "count": count}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith('{"'):  # else the engine prints something
                answer = json.loads(line)
                if "error" in answer:
                    raise FailedError(f"{self.peer.name} failed at {query}: {answer['error'][:500]}")
                return answer
        raise RuntimeError(f"{self.peer.name} failed at {query}, see {self._log.name!r}")


def session_time(leader: int) -> float:
    """Seconds of processors that the processes of a session have run, all that live."""
    ticks = sum(sum(map(int, fields[_TIMES])) for _, fields in _stats() if int(fields[_SESSION]) == leader)
    return ticks / os.sysconf("SC_CLK_TCK")


def _session(leader: int) -> list[int]:
    return [pid for pid, fields in _stats() if int(fields[_SESSION]) == leader]


def _stats() -> list[tuple[int, list[str]]]:
    """The fields of each process from its state on."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                found.append((int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()))
    return found


def _python(peer: Peer) -> str:
    """The interpreter of the peer's environment, which is made if it is not there whole."""
    if not peer.install:
        return sys.executable
    words = "\n".join((sys.version, *peer.install))
    folder = CACHE / f"{Path(peer.program).stem}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    whole = folder / "whole"
    if not whole.exists():
        started = time.monotonic()
        print(f"installing {peer.name} into {folder}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *peer.install], check=True, cwd=ROOT)
        whole.touch()
        print(f"({time.monotonic() - started:.0f} s)", flush=True)
    return str(python)
