"""Child processes that never outlive their parent, their resource usage, free ports, and waiting with a deadline."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

_PR_SET_PDEATHSIG = 1
#: Sockets that reserve the ports of servers, enough for all servers at a time.
_held: deque[socket.socket] = deque()
_MOST_HELD = 100


class Process(Protocol):
    """A process to end: a child process (subprocess.Popen), or a child of another process."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def kill(self) -> None: ...


def free_port() -> int:
    """A loopback port for a server, reserved until the server listens and while it restarts: bound here, it is
    available only to processes that set SO_REUSEADDR and name it, as servers do."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _held.append(held)
    if len(_held) > _MOST_HELD:
        _held.popleft().close()
    return int(held.getsockname()[1])


def die_with_parent(signal_number: int = signal.SIGKILL) -> Callable[[], None]:
    """For ``preexec_fn``: Linux sends the child this signal when the thread that started it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal_number)


def spawn(command: Sequence[str], log: Path, at_our_end: int = signal.SIGKILL, **options: Any) -> subprocess.Popen[Any]:
    """Starts a child without input, which prints into a log and gets a signal when the thread that started it ends."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent(at_our_end),
            **options,
        )


def wait_until(condition: Callable[[], bool], seconds: float = 60, what: str = "work in the background") -> None:
    """Returns as soon as ``condition`` is true; after ``seconds`` raises AssertionError naming ``what``."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {seconds:g} s"
        time.sleep(0.01)


def end(process: Process, signal_number: int = signal.SIGTERM, seconds: float = 60) -> None:
    """Signals a process and waits; kills it if it does not end in time."""
    if process.poll() is None:
        process.send_signal(signal_number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def stat(pid: int | str | None) -> list[str]:
    """The fields in /proc after a process's command name: its state, its parent, ... OSError if the process is gone."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def is_alive(pid: int | None) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return stat(pid)[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_busy(pid: int) -> bool:
    """Whether a process uses much of a processor now."""

    def ticks() -> int:
        fields = stat(pid)
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(0.2)
    return ticks() - before > 5
