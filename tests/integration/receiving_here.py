"""A receiver in this process: for what it raises."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from penstock.sdk import ReceivingSource

SECONDS = 60


def receiving_here(source: ReceivingSource[Any]) -> Future[None]:
    """Runs `source.receive` in a thread, until it raises."""

    async def receive() -> None:
        with source.journal() as journal:
            await asyncio.wait_for(source.receive(journal), SECONDS)

    return ThreadPoolExecutor(1).submit(lambda: asyncio.run(receive()))
