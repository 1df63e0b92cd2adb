"""``millstream init``: the data folder, and a file of settings in which every one stands with its default.

Owns: what it makes. Nothing that is there is changed; a server makes its data folder by itself, so this command is for
who wants to look at the settings first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from server.operations.config import CONFIG_FILE, choose, describe, parser


def run(words: Sequence[str]) -> int:
    """Makes what is missing; 0. Raises ConfigError, OSError."""
    flags = parser("millstream init", "Make the data folder and a file of all settings.").parse_args(words)
    path = Path(flags.config or CONFIG_FILE)
    if not path.exists():
        path.write_text(describe(), encoding="utf-8")
        print(f"{path}: every setting with its default; uncomment what you change")
    else:
        print(f"{path}: exists already and is not changed")
    config = choose(flags, os.environ).config
    config.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    print(f"{config.data.resolve()}: data folder")
    print("next: millstream")
    return 0
