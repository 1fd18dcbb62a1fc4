"""A hundred previews at once: each one is answered, or refused with a time to try again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from penstock.core.errors import Transient
from penstock.server.drafts import Draft
from penstock.server.live.session_pool import AT_WORK, AT_WORK_PER_USER, MAX_WAITING, SessionPool
from server_console import STAND_IN_SESSION
from web_console import listening

if TYPE_CHECKING:
    from server_console import Console

pytestmark = pytest.mark.slow


def test_the_previews_of_many_users_wait_in_order() -> None:
    pool = SessionPool(STAND_IN_SESSION, os.environ)
    draft = Draft(Path("/pipelines/shop/shop.yaml"), "text", {})

    def submit(number: int, node: str = "rows") -> Any:
        return pool.submit(f"user{number // AT_WORK_PER_USER}", "preview", draft, 5.0, nodes=[node])

    try:
        first = [submit(number, "hang") for number in range(AT_WORK)]
        waiting = [submit(number) for number in range(AT_WORK, AT_WORK + MAX_WAITING)]
        with pytest.raises(Transient, match="all workers of the server are busy"):
            submit(AT_WORK + MAX_WAITING)
        assert [pool.position(job) for job in waiting] == list(range(1, MAX_WAITING + 1))
        for job in first:
            pool.cancel(job)
        assert all(job.wait() == {"reason": "end"} for job in waiting)
    finally:
        pool.close()


def test_each_of_a_hundred_requests_is_answered(console: Console) -> None:
    body = {"name": "cafe", "text": "a draft", "nodes": ["orders"]}
    headers = {"Authorization": console.client.headers["Authorization"]}

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/api/v1/preview", json=body)

    async def ask_all(address: str) -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=address, headers=headers, timeout=60, limits=limits
        ) as client:
            return await asyncio.gather(*(ask(client) for _ in range(100)))

    with listening(console) as address:
        answers = asyncio.run(ask_all(address))
    accepted = [each for each in answers if each.status_code == 200]
    assert len(accepted) >= AT_WORK_PER_USER
    assert all("event: done" in each.text for each in accepted)
    for each in answers:
        if each not in accepted:
            (error,) = each.json()["errors"]
            assert (each.status_code, error["code"]) == (503, "workers-busy")
            assert "previews and tests under way" in error["message"] and error["hint"]
            assert int(each.headers["Retry-After"]) > 0
