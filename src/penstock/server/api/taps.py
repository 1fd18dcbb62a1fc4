"""Route of taps: rows of a node of a running pipeline, as server-sent events.

The event `opened` follows within a second, then `rows` for a batch, or `missed` with the reason for
which a batch has none. The event `failed` is the end of the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError
from penstock.runtime.taps.files import MAX_ROWS
from penstock.runtime.taps.listener import POLL_SECONDS, Tap
from penstock.server.api.context import TheAudit, TheViews
from penstock.server.api.events import Streams, event, stream, streams_of
from penstock.server.api.pipelines import PATH
from penstock.server.api.security import DataReader

router = APIRouter(tags=["previews and tests"])
AGE_SECONDS = 10.0


@router.get(PATH + "/tap", response_class=StreamingResponse)
def tap_node(
    id: str, request: Request, user: DataReader, views: TheViews, audit: TheAudit,
    node: str = Query(min_length=1, max_length=300), rows: int = Query(20, ge=1, le=MAX_ROWS),
) -> StreamingResponse:  # fmt: skip
    """Streams rows of a node of a running pipeline: those of at most one batch a second."""
    tap = Tap(views.state(id), node, rows)
    try:
        record = partial(audit.record, user.name, "tap", id, node=node)
        return stream(request, user.name, _events(tap, streams_of(request)), record)
    except BaseException:
        tap.close()
        raise


async def _events(tap: Tap, streams: Streams) -> AsyncIterator[str]:
    """Yields the answers of a tap, and closes the tap at the end of the stream."""
    sent = time.monotonic()
    try:
        while not streams.closed.is_set():
            try:
                answers = await run_in_threadpool(tap.poll)
            except PenstockError as error:
                status = error.policy.http_status
                yield event("failed", {"errors": to_dicts(error), "status": status})
                return
            for answer in answers:
                kind = next(name for name in ("rows", "missed", "opened") if name in answer)
                yield event(kind, answer)
                sent = time.monotonic()
            if time.monotonic() - sent > AGE_SECONDS:
                yield event("age", {})
                sent = time.monotonic()
            await asyncio.sleep(POLL_SECONDS)
    finally:
        tap.close()
