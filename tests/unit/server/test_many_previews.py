"""A hundred previews at once: each one is answered, or rejected with a time to try again."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from py4j.protocol import Py4JNetworkError

from penstock.core.errors import Transient
from penstock.server.api.events import STREAMS_PER_USER
from penstock.server.drafts import Draft
from penstock.server.live import session_worker
from penstock.server.live.session_operations import OPERATIONS, Work
from penstock.server.live.session_pool import AT_WORK, AT_WORK_PER_USER, MAX_WAITING, SessionPool
from penstock.server.live.warm_session import WarmSession
from server_console import STAND_IN_SESSION
from web_console import listening

if TYPE_CHECKING:
    from server_console import Console

pytestmark = pytest.mark.slow
REJECTIONS = (
    (503, "workers-busy", f'the user "admin" has {AT_WORK_PER_USER} previews and tests under way'),
    (429, "too-many-streams", f'the user "admin" has {STREAMS_PER_USER} open streams'),
)
"""A stream stays open until the client has read it, which is after the end of its preview."""


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
            assert (each.status_code, error["code"], error["message"]) in REJECTIONS
            assert error["hint"]
            assert int(each.headers["Retry-After"]) > 0


@pytest.mark.parametrize("error", [ConnectionRefusedError("refused"), Py4JNetworkError("ended")])
def test_a_worker_whose_java_has_ended_ends(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Each of its later previews would fail."""

    def preview(*_: object) -> None:
        raise error

    events: list[str] = []

    def send(event: str, facts: Any) -> int:
        events.append(event)
        return 0

    monkeypatch.setitem(OPERATIONS, "preview", preview)
    monkeypatch.setattr(session_worker.os, "_exit", sys.exit)
    work = Work(WarmSession(), send, lambda: False)
    request = {"operation": "preview", "file": "shop.yaml", "variables": {}, "arguments": {}}
    with pytest.raises(SystemExit):
        session_worker.perform(work, request)
    assert events == []
