"""``python -m tests.rig.forking``: a process that has loaded a server's modules, and forks a server at each request.

A forked server has the same arguments, environment, log and session as ``python -m server``, and no other open files;
the only difference are queries that must wait (``tests.rig.holding``). It ends with this process, and this process ends
when its requester does.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
from importlib import import_module
from typing import Final, NoReturn

import msgspec

from server.main import command
from server.operations.allocator import collect_later, keep_freed_memory, leave_out_pandas
from tests.rig.forked import NUMBER, Request
from tests.rig.holding import hold_queries
from tests.rig.process import die_with_parent

#: The modules that a server loads before its first client, in their order.
_MODULES: Final = (
    "executor.database.database",
    "server.session.session",
    "server.plans.point_reads",
    "server.notify.change_channels",
    "server.session.relations",
)
_LONGEST: Final = 1 << 16
_OPEN_FILES: Final = 4096


def main(asked: socket.socket) -> None:
    """Forks servers, and reports how each one ended, until the other end of the socket is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the requesters
    collect_later()
    keep_freed_memory()
    leave_out_pandas()
    for name in _MODULES:
        import_module(name)
    hold_queries()
    with selectors.DefaultSelector() as events:
        events.register(asked, selectors.EVENT_READ)
        while True:
            for key, _ in events.select():
                if key.fileobj is not asked:
                    events.unregister(key.fileobj)
                    _tell(key.fd, *key.data)
                    continue
                message, files, _, _ = socket.recv_fds(asked, _LONGEST, 2)
                if not message:
                    return
                log, outcome = files
                pid = os.fork()
                if pid == 0:
                    _serve(msgspec.json.decode(message, type=Request), log)
                os.close(log)
                os.write(outcome, NUMBER.pack(pid))
                events.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, outcome))


def _serve(request: Request, log: int) -> NoReturn:
    """Becomes a server."""
    die_with_parent()()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    for number in (1, 2):
        os.dup2(log, number)
    os.closerange(3, _OPEN_FILES)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv[1:] = request.arguments
    command()


def _tell(watched: int, pid: int, outcome: int) -> None:
    """Reports how a server ended, if the requester is still there."""
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        os.write(outcome, NUMBER.pack(os.waitstatus_to_exitcode(status)))
    os.close(watched)
    os.close(outcome)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
