"""``millstream check-config``: the configuration that a server would start with, each value with its origin.

Owns: the print. What is wrong with a configuration is an error of ``server.operations.config``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields

from server.operations.config import choose, parser, print_value


def run(words: Sequence[str]) -> int:
    """Prints the settings as a file of settings; 0. Raises ConfigError."""
    description = "Print the value and source of every setting."
    chosen = choose(parser("millstream check-config", description).parse_args(words), os.environ)
    print(f"# file: {'none' if chosen.file is None else chosen.file.resolve()}")
    lines = [
        (f"{item.name} = {print_value(getattr(chosen.config, item.name))}", item.name) for item in fields(chosen.config)
    ]
    width = max(len(line) for line, _ in lines)
    for line, name in lines:
        print(f"{line:<{width}}  # {chosen.source(name)}")
    return 0
