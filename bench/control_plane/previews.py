"""Previews that are asked at once: each one is answered, or rejected with a time to try again."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import aiohttp

COUNT = 100
LIMIT_SECONDS = 900.0
"""The time after which a preview counts as one that waits for ever."""
TEXT = """\
name: draft
sources:
  orders: {type: generate, rate: 100, fields: {id: sequence}}
sinks:
  out: {type: blackhole, from: orders}
"""


@dataclass
class Outcome:
    """The numbers of `COUNT` previews: `unclear` are answers of another kind."""

    answered: int = 0
    rejected: int = 0
    unclear: int = 0
    seconds: float = 0.0
    kinds: set[str] = field(default_factory=set)


def ask_for_previews(address: str, token: str) -> Outcome:
    """Asks for all previews at once, and for a rejected one again after its `Retry-After`."""
    return asyncio.run(_ask_all(address, token))


async def _ask_all(address: str, token: str) -> Outcome:
    outcome, began = Outcome(), time.perf_counter()
    headers = {"Authorization": f"Bearer {token}"}
    timeout = aiohttp.ClientTimeout(LIMIT_SECONDS)
    connector = aiohttp.TCPConnector(limit=COUNT, force_close=True)
    async with aiohttp.ClientSession(
        address, headers=headers, timeout=timeout, connector=connector
    ) as session:
        await asyncio.gather(*(_ask(session, outcome, began) for _ in range(COUNT)))
    outcome.seconds = time.perf_counter() - began
    return outcome


async def _ask(session: aiohttp.ClientSession, outcome: Outcome, began: float) -> None:
    body = {"name": "draft", "text": TEXT, "nodes": ["orders"], "rows": 5, "seconds": 10}
    while time.perf_counter() - began < LIMIT_SECONDS:
        try:
            async with session.post("/api/v1/preview", json=body) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            outcome.unclear += 1
            outcome.kinds.add(type(error).__name__)
            return
        if answer.status == 200 and "event: done" in text:
            outcome.answered += 1
            return
        if answer.status != 503 or "Retry-After" not in answer.headers:
            outcome.unclear += 1
            outcome.kinds.add(f"{answer.status} {text[-200:]}")
            return
        outcome.rejected += 1
        await asyncio.sleep(float(answer.headers["Retry-After"]))
