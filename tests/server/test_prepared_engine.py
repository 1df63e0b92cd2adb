"""What a first query needs is made when a client has logged in, before it asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from server import serving
from server.config import Address, Config
from tests.server.in_process import Peer, end, start


def test_a_login_makes_the_instance_for_small_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_PREPARES_AFTER", 0)
    config = replace(Config(), data=tmp_path, listen=Address("127.0.0.1", 0), spark_enabled=False)
    with asyncio.Runner() as loop:
        stop, server, task = loop.run(start(config))
        engine = loop.run(server.wait_open()).engine
        assert 1 not in engine._by_threads
        client = Peer(loop, server)

        async def made() -> None:
            async with asyncio.timeout(60):
                while 1 not in engine._by_threads:
                    await asyncio.sleep(0.01)

        loop.run(made())
        assert b"1" in client.query("SELECT 1")
        loop.run(end(stop, task))
