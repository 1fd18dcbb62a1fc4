"""How the process of a receiving source ends."""

from __future__ import annotations

import asyncio

import pytest

from penstock.runtime.receiving import receiver_process as receive


def test_a_task_that_ignores_its_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receive, "CANCEL_AGAIN", 0.01)
    swallowed = []

    async def receiving() -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append(True)

    async def run() -> None:
        ended = asyncio.Event()
        asyncio.get_running_loop().call_later(0.01, ended.set)
        await receive.await_first(receiving(), ended)

    asyncio.run(run())
    assert swallowed
