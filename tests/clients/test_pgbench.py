"""pgbench: init with foreign keys, its scripts in all protocols with many clients, and what balances then sum to."""

from __future__ import annotations

import re
import subprocess
from typing import Final

import pytest

from tests.rig.server import Millstream

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

CLIENTS: Final = 8
_DONE: Final = re.compile(r"number of transactions actually processed: (\d+)/(\d+)")
_BALANCED: Final = """SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history),
    (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches),
    (SELECT count(*) FROM pgbench_history)"""


def pgbench(server: Millstream, *options: str) -> str:
    """What it prints."""
    done = subprocess.run(["pgbench", *options, server.dsn()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ERROR" not in done.stderr, done.stderr
    return done.stdout


def test_balances_agree_after_many_clients(server: Millstream) -> None:
    pgbench(server, "--initialize", "--scale", "1", "--foreign-keys")
    pgbench(server, "--initialize", "--init-steps", "dtGvp")  # rows made by the server
    written = 0
    for protocol in ("simple", "extended", "prepared"):
        for script, transactions in (("tpcb-like", 2), ("select-only", 10), ("simple-update", 2)):
            options = ("--no-vacuum", "--protocol", protocol, "--builtin", script)
            printed = pgbench(server, *options, "--client", str(CLIENTS), "--transactions", str(transactions))
            match = _DONE.search(printed)
            assert match is not None and match[1] == match[2] == str(CLIENTS * transactions), printed
            written += 0 if script == "select-only" else CLIENTS * transactions
    with server.connect() as client:
        assert client.execute(_BALANCED).fetchone() == (True, True, written)


def test_pipelines(server: Millstream, tmp_path_factory: pytest.TempPathFactory) -> None:
    script = tmp_path_factory.mktemp("pgbench") / "pipeline.sql"
    script.write_text(
        "\\set n random(1, 1000)\n\\startpipeline\nBEGIN;\nSELECT :n;\n"
        "SELECT count(*) FROM pg_class WHERE oid < :n;\nEND;\n\\endpipeline\n"
    )
    printed = pgbench(server, "--no-vacuum", "--protocol", "prepared", "--file", str(script), "--transactions", "20")
    assert "20/20" in printed
