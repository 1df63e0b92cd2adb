"""``millstream`` and ``python -m server``: reads the configuration and serves until SIGTERM or SIGINT.

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
from typing import NoReturn

import uvloop

from server import logs
from server.config import Config, ConfigError, load
from server.memory import keep_freed_memory, keep_what_is_loaded
from server.serving import Server

logger = logging.getLogger(__name__)

#: Seconds after which a busy thread lets another run: the log must not wait for the loop.
SWITCH_INTERVAL = 0.001


def command() -> NoReturn:
    """The console command. The interpreter is not taken apart at its end: everything is closed by then, and what was
    frozen for the collector (``server.memory``) would be reported as leaks by the engine's bindings."""
    status = main()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves; the process's exit status."""
    try:
        config = load(sys.argv[1:] if arguments is None else arguments, os.environ)
    except ConfigError as error:
        print(f"millstream: {error}", file=sys.stderr)
        return 2
    logs.configure(config.log_level)
    keep_freed_memory()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        uvloop.run(serve(config))
    except OSError as error:
        logger.error("cannot listen on %s: %s", config.listen, error)
        return 1
    except Exception as error:
        logger.critical("the server cannot go on", exc_info=error)
        return 1
    return 0


async def serve(config: Config) -> None:
    """Serves until the process is asked to end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        if config.shutdown_timeout and not stop.is_set():
            limit = threading.Timer(config.shutdown_timeout, leave, (config.shutdown_timeout,))
            limit.daemon = True
            limit.start()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    await Server(config).run(stop, opened=keep_what_is_loaded)


def leave(seconds: float) -> NoReturn:
    """Ends the process where it stands: a function of an engine hears no interrupt while it computes one value, and a
    thread cannot be stopped. It is what a power cut does, so nothing that was acknowledged is lost."""
    logger.error("a statement does not stop: the process ends after %g s without waiting for it", seconds)
    os._exit(1)
