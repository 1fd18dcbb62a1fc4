"""The header `Idempotency-Key`: a repeated request has the answer of the first one.

A program that does not get the answer of a POST repeats it with the same key, and nothing happens
twice. Answers remain for a day. A request that fails leaves nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from penstock.server.api.context import parts_of
from penstock.server.api.security import RequestError, current_user, right_of
from penstock.server.store.accounts import Right, User
from penstock.server.store.requests import Answer

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[!-~]{1,200}")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class IdempotentRoute(APIRoute):
    """A route whose POST requests may have the header `Idempotency-Key`."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def handle_once(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if request.method != "POST" or key is None:
                return await handle(request)
            user = await current_user(request)
            if user is None or not self._permitted(user):
                return await handle(request)  # which answers with the error
            return await _handle_once(request, user, key, handle)

        return handle_once

    def _permitted(self, user: User) -> bool:
        right = right_of(self)
        permitted: Right = right  # type: ignore[assignment]
        return right is None or user.may(permitted)


async def _handle_once(request: Request, user: User, key: str, handle: Handler) -> Response:
    if not _KEY.fullmatch(key):
        raise RequestError(
            400, f"the header {HEADER} is invalid", code="invalid-request",
            hint="Use at most 200 printable characters, such as a UUID.",
        )  # fmt: skip
    requests = parts_of(request).requests
    body = await request.body()
    text = f"{request.method} {request.url.path}?{request.url.query}\n".encode() + body
    digest = hashlib.sha256(text).hexdigest()
    known = await run_in_threadpool(requests.begin, user.name, key, digest)
    if known is not None:
        return _response(known)
    try:
        response = await handle(request)
    except BaseException:
        await run_in_threadpool(requests.forget, user.name, key)
        raise
    content = bytes(response.body).decode()
    answer = Answer(response.status_code, content)
    await run_in_threadpool(requests.end, user.name, key, answer)
    return response


def _response(answer: Answer) -> Response:
    headers = {"Idempotency-Replayed": "true"}
    return Response(answer.content, answer.status, headers, "application/json")
