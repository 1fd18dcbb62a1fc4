"""Routes of drafts at work: preview, tests, and trial of a dead letter, as server-sent events.

The event `queued` has the position of a request that waits, `started` and `rows` or `case` its
progress, and `done` or `failed` its end. A client that leaves ends the work.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from penstock.server.api.context import TheAudit, TheChanges, TheSessions
from penstock.server.api.events import Streams, event, stream, streams_of
from penstock.server.api.models import (
    DraftPreview,
    DraftTest,
    NewDraftPreview,
    NewDraftTest,
    Preview,
    Trial,
)
from penstock.server.api.pipelines import PATH
from penstock.server.api.security import DataReader, Editor
from penstock.server.live.session_pool import Job, SessionPool

router = APIRouter(tags=["previews and tests"])
POLL_SECONDS = 0.05
AGE_SECONDS = 10.0
TEST_SECONDS = 300.0
TRIAL_SECONDS = 60.0


@router.post(PATH + "/preview", response_class=StreamingResponse)
def preview_pipeline(
    id: str, body: DraftPreview, request: Request, user: Editor, reader: DataReader,
    changes: TheChanges, sessions: TheSessions, audit: TheAudit,
) -> StreamingResponse:  # fmt: skip
    """Streams rows of nodes of a text. Writes to no sink, and commits no offsets."""
    draft = changes.draft(id, body.text, user)
    job = sessions.submit(user.name, "preview", draft, body.seconds, **_limits(body))
    record = partial(audit.record, user.name, "preview", id, nodes=body.nodes)
    return _stream(request, sessions, job, record)


@router.post("/preview", response_class=StreamingResponse)
def preview_new_pipeline(
    body: NewDraftPreview, request: Request, user: Editor, reader: DataReader,
    changes: TheChanges, sessions: TheSessions, audit: TheAudit,
) -> StreamingResponse:  # fmt: skip
    """Streams rows of nodes of a pipeline that does not exist yet."""
    draft = changes.new_draft(body.name, body.text, user)
    job = sessions.submit(user.name, "preview", draft, body.seconds, **_limits(body))
    record = partial(audit.record, user.name, "preview", body.name, nodes=body.nodes)
    return _stream(request, sessions, job, record)


@router.post(PATH + "/test", response_class=StreamingResponse)
def test_pipeline(
    id: str, body: DraftTest, request: Request, user: Editor, reader: DataReader,
    changes: TheChanges, sessions: TheSessions, audit: TheAudit,
) -> StreamingResponse:  # fmt: skip
    """Streams the results of the test cases of a text, with the differences of rows."""
    draft = changes.draft(id, body.text, user)
    job = sessions.submit(user.name, "test", draft, TEST_SECONDS, cases=body.cases)
    record = partial(audit.record, user.name, "test", id)
    return _stream(request, sessions, job, record)


@router.post("/test", response_class=StreamingResponse)
def test_new_pipeline(
    body: NewDraftTest, request: Request, user: Editor, reader: DataReader,
    changes: TheChanges, sessions: TheSessions, audit: TheAudit,
) -> StreamingResponse:  # fmt: skip
    """Streams the results of the test cases of a pipeline that does not exist yet."""
    draft = changes.new_draft(body.name, body.text, user)
    job = sessions.submit(user.name, "test", draft, TEST_SECONDS, cases=body.cases)
    record = partial(audit.record, user.name, "test", body.name)
    return _stream(request, sessions, job, record)


@router.post(PATH + "/dead-letters/{letter}/try", response_class=StreamingResponse)
def try_dead_letter(
    id: str, letter: str, body: Trial, request: Request, user: Editor, reader: DataReader,
    changes: TheChanges, sessions: TheSessions, audit: TheAudit,
) -> StreamingResponse:  # fmt: skip
    """Streams whether a text now processes a dead letter, and the rows of that letter at sinks."""
    draft = changes.draft(id, body.text, user)
    job = sessions.submit(user.name, "try_letter", draft, TRIAL_SECONDS, letter=letter)
    record = partial(audit.record, user.name, "try dead letter", id, letter=letter)
    return _stream(request, sessions, job, record)


def _limits(body: Preview) -> dict[str, Any]:
    return {"nodes": body.nodes, "rows": body.rows, "seconds": body.seconds}


def _stream(
    request: Request, sessions: SessionPool, job: Job, record: Callable[[], None]
) -> StreamingResponse:
    try:
        events = _events(sessions, job, streams_of(request))
        return stream(request, job.user, events, record=record)
    except BaseException:
        sessions.cancel(job)
        raise


async def _events(sessions: SessionPool, job: Job, streams: Streams) -> AsyncIterator[str]:
    """Yields the events of a job, and cancels the job at the end of the stream."""
    position, sent = 0, time.monotonic()
    try:
        while not streams.closed.is_set():
            waiting = sessions.position(job)
            if waiting and waiting != position:
                yield event("queued", {"position": waiting})
            position = waiting
            try:
                found = job.events.get_nowait()
            except queue.Empty:
                if time.monotonic() - sent > AGE_SECONDS:
                    yield event("age", {})
                    sent = time.monotonic()
                await asyncio.sleep(POLL_SECONDS)
                continue
            if found is None:
                return
            yield event(*found)
            sent = time.monotonic()
    finally:
        sessions.cancel(job)
