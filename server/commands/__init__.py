"""What ``millstream`` does when its first word is a command: one file a command, each a function of its words.

Owns: the table of commands. Knows nothing of what they do; without a command the words are the server's
(``server.main``). Every command takes the server's flags, file and environment, so that it finds the server that they
describe.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Final

#: A command's name and what it does, in the order in which help lists them; ``serve`` is what no command means.
COMMANDS: Final = {
    "serve": "serve clients until SIGTERM or SIGINT (also without a command)",
    "init": "make the data folder and a millstream.toml that lists every setting",
    "check-config": "print the value and source of every setting, and report invalid ones",
    "status": "report whether the server answers and what it does",
    "sql": "run SQL statements from -c, standard input or a prompt",
}

Command = Callable[[Sequence[str]], int]


def find(name: str) -> Command:
    """What a command calls with the words after it; it returns the process's exit status."""
    module = importlib.import_module(f"server.commands.{name.replace('-', '_')}")
    run: Command = module.run
    return run


def overview() -> str:
    """The list of commands, for --help."""
    return "commands:\n" + "\n".join(f"  {name:<14}{does}" for name, does in COMMANDS.items())
