"""Calls in threads end for the awaiting code, whatever they raise."""

from __future__ import annotations

import asyncio

import pytest

from server.workers import Workers


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(("raised", "heard"), [(StopIteration(), RuntimeError), (ValueError(), ValueError)])
def test_a_call_that_raises_ends(raised: Exception, heard: type[Exception]) -> None:
    async def call() -> None:
        with Workers(1, "test") as workers:
            await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(workers, _raise, raised), 20)

    with pytest.raises(heard):
        asyncio.run(call())
