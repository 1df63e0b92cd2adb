"""``millstream status``: whether the server answers, and what it does, in a few lines.

Owns: the questions and the print. Each is a query that any client could send.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from server.commands.client import Unreachable, connect
from server.operations.config import choose, parser

#: The exit status that pg_ctl has for a server that does not run.
NOT_RUNNING: Final = 3
_QUESTIONS: Final = (
    ("data", "SELECT current_setting('data_directory')"),
    ("up since", "SELECT date_trunc('second', pg_postmaster_start_time())::text"),
    ("clients", "SELECT count(*) || ' of ' || current_setting('max_connections') FROM pg_stat_activity"),
    ("engines", "SELECT string_agg(name || ': ' || status, ', ' ORDER BY name) FROM millstream.engines"),
    ("streams", "SELECT count(*) || ' with ' || coalesce(sum(rows), 0) || ' rows' FROM millstream.streams"),
    (
        "views",
        "SELECT count(*) || ', at most ' || coalesce(max(rows_behind), 0) || ' rows behind, ' || count(error)"
        " || ' in error' FROM millstream.views",
    ),
    ("running jobs", "SELECT count(*)::text FROM millstream.jobs WHERE status = 'running'"),
)


def run(words: Sequence[str]) -> int:
    """Prints; 0 if the server answers, else 3. Raises ConfigError."""
    flags = parser("millstream status", "Report whether the server answers and what it does.").parse_args(words)
    config = choose(flags, os.environ).config
    try:
        connection = connect(config)
    except Unreachable as error:
        print(f"no answer at {config.listen}: {error}", file=sys.stderr)
        return NOT_RUNNING
    with connection:
        print(f"{'address':<14}{config.listen}")
        for what, query in _QUESTIONS:
            row = connection.execute(query.encode()).fetchone()
            print(f"{what:<14}{'' if row is None else row[0]}")
    return 0
