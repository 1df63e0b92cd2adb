"""``millstream`` and ``python -m server``: a command (``server.commands``), or the server until SIGTERM or SIGINT.

Owns: the process. What the server does while it runs is in ``server.serving``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import uvloop

from executor.core import descriptors
from server import commands
from server.operations import data_folder as folders
from server.operations import logs
from server.operations.allocator import collect_later, keep_freed_memory, keep_what_is_loaded
from server.operations.config import Chosen, ConfigError, choose, parser
from server.serving import CannotStart, Server, Stop

logger = logging.getLogger(__name__)

#: Seconds after which a busy thread lets another run: the log must not wait for the loop.
SWITCH_INTERVAL = 0.001


def command() -> NoReturn:
    """The console command. The interpreter is not taken apart at its end: everything is closed by then, and what was
    frozen for the collector (``server.operations.allocator``) would be reported as leaks by the engine's bindings."""
    status = main()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, or serves; the process's exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    name, rest = (words[0], words[1:]) if words and words[0] in commands.COMMANDS else ("serve", words)
    try:
        return serve_command(rest) if name == "serve" else commands.find(name)(rest)
    except (ConfigError, OSError) as error:
        print(f"millstream: {error}", file=sys.stderr)
        return 2


def serve_command(words: Sequence[str]) -> int:
    """Serves; the process's exit status. Raises ConfigError."""
    description = "Serve PostgreSQL clients: tables, streams and continuous views."
    chosen = choose(parser("millstream", description, commands.overview()).parse_args(words), os.environ)
    config = chosen.config
    logs.configure(config.log_level, config.log_format)
    if (limit := descriptors.raise_limit()) < descriptors.LEAST:
        raise ConfigError(
            f"the limit of open files is {limit}, the server needs {descriptors.LEAST}: raise it with ulimit -n"
        )
    collect_later()
    keep_freed_memory()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        folders.claim(config.data, Path(config.storage) if config.storage else None)
    except (folders.OpenFolder, OSError) as error:
        logger.critical("the server cannot start: %s", error)
        return 1
    try:
        uvloop.run(serve(chosen))
    except ConfigError as error:
        print(f"millstream: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        logger.error("cannot listen on %s: %s", config.listen, error)
        return 1
    except CannotStart as error:
        logger.critical("the server cannot start: %s", error)
        return 1
    except Exception as error:
        logger.critical("the server cannot continue", exc_info=error)
        return 1
    return 0


async def serve(chosen: Chosen) -> None:
    """Serves until the process is asked to end: SIGTERM lets what is under way end, a second one and SIGINT do not."""
    stop = Stop()
    loop = asyncio.get_running_loop()
    seconds = chosen.config.shutdown_timeout

    def end(at_once: bool) -> None:
        if seconds and not stop.asked.is_set():
            limit = threading.Timer(seconds, leave, (seconds,))
            limit.daemon = True
            limit.start()
        if at_once or stop.asked.is_set():
            stop.at_once.set()
        stop.asked.set()

    server = Server(chosen)
    loop.add_signal_handler(signal.SIGTERM, end, False)
    loop.add_signal_handler(signal.SIGINT, end, True)
    loop.add_signal_handler(signal.SIGHUP, server.access.reload)
    await server.run(stop, opened=keep_what_is_loaded)


def leave(seconds: float) -> NoReturn:
    """Ends the process where it stands: a function of an engine hears no interrupt while it computes one value, and a
    thread cannot be stopped. It is what a power cut does, so nothing that was acknowledged is lost."""
    logger.error("a statement does not stop: the server exits after %g s without waiting for it", seconds)
    os._exit(1)
