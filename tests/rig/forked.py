"""Servers forked from processes that have loaded their modules (``tests.rig.forking``), which is three quarters of a
start.

Owns: these processes, the requests for servers, and the state of a server as its starter sees it.
"""

from __future__ import annotations

import itertools
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

#: Messages in the pipe: the server's process id, and then its exit status.
NUMBER: Final = struct.Struct("=i")


class Request(msgspec.Struct, frozen=True):
    """A server that is wanted."""

    folder: str
    arguments: tuple[str, ...]
    environment: dict[str, str]


class Forked:
    """A server with the interface of ``subprocess.Popen``: its exit status comes through a pipe, since it is not a
    child process."""

    def __init__(self, outcome: int) -> None:
        self._outcome = outcome
        self._lock = threading.Lock()
        self.pid = self._next()
        self.returncode: int | None = None
        weakref.finalize(self, os.close, outcome)

    def poll(self) -> int | None:
        """Its exit status, if it has ended."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, when it has ended. Raises subprocess.TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("server", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless the server has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills the server as kill -9 does."""
        self.send_signal(signal.SIGKILL)

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._outcome], [], [], timeout)[0]:
            with self._lock:
                if self.returncode is None:
                    self.returncode = self._next()
        return self.returncode

    def _next(self) -> int:
        (number,) = NUMBER.unpack(os.read(self._outcome, NUMBER.size))
        return int(number)


class Loaded:
    """Processes that have loaded a server's modules, started at the first request. Two processes fork in turns: servers
    of one cluster, and a server and its restart, must not have the same order of sets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = itertools.cycle(range(2))
        self._begun: dict[int, tuple[socket.socket, subprocess.Popen[bytes]]] = {}

    def fork(self, arguments: Sequence[str], log: Path, folder: Path, environment: Mapping[str, str]) -> Forked:
        """Starts a server that prints into a log."""
        request = msgspec.json.encode(Request(str(folder), tuple(arguments), dict(environment)))
        with self._lock:
            turn = next(self._turns)
            if turn not in self._begun:
                self._begun[turn] = _begin(folder)
        ours, _ = self._begun[turn]
        outcome, told = os.pipe()
        with log.open("ab") as output:
            socket.send_fds(ours, [request], [output.fileno(), told])
        os.close(told)
        return Forked(outcome)

    def close(self) -> None:
        """Ends the processes and waits for their end."""
        for ours, process in self._begun.values():
            ours.close()
            process.wait()
        self._begun.clear()


def _begin(folder: Path) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Starts a process that forks until this end of a socket is closed, which happens however this process ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-u", "-m", "tests.rig.forking", str(theirs.fileno())]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder, pass_fds=[theirs.fileno()])
    return ours, process
