"""Answers with errors: a list of errors of the shape of `core.error_report.to_dicts`."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError
from penstock.server.api.context import parts_of
from penstock.server.api.invalid_requests import NEEDS_OBJECT, invalid_parts
from penstock.server.api.security import SMALLER_BODY, TOO_LARGE, RequestError
from penstock.server.changes import CheckFailed
from penstock.server.workers.pool import WorkerError

NOT_FOUND = frozenset({
    "unknown-pipeline", "unknown-version", "unknown-user", "unknown-token", "no-dead-letter",
    "no-connection", "no-channel", "no-rule", "no-function", "no-share",
})  # fmt: skip
"""The codes whose status is 404."""
RETRY_SECONDS = {"too-many-logins": 60, "workers-busy": 2}
"""The header `Retry-After` of errors with the status 429 or 503, by code."""
OTHER_RETRY_SECONDS = 5
UNAVAILABLE = frozenset({"store-failed", "store-full", "store-locked", "lease-lost"})
"""The codes whose status is 503."""

_HTTP_ERRORS = {
    400: ("the body cannot be read as JSON", NEEDS_OBJECT),
    404: ("the server has no such path", "Look up the paths in /api/v1/openapi.json."),
    405: ("the path has no such method", "Look up the methods in /api/v1/openapi.json."),
    413: (TOO_LARGE, SMALLER_BODY),
}
"""The messages and hints of errors of the framework."""


def add_error_handlers(app: FastAPI) -> None:
    """Lets all errors of an application be answered in one shape."""
    app.add_exception_handler(PenstockError, _penstock_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected_error)


def _penstock_error(request: Request, error: Any) -> JSONResponse:
    if isinstance(error, WorkerError):
        status = _status(error.code, error.status)
        return JSONResponse({"errors": error.errors}, status, _headers(error.code, status))
    if isinstance(error, CheckFailed):
        return JSONResponse({"errors": error.errors, "changes": error.changes}, 422)
    found = error.status if isinstance(error, RequestError) else error.policy.http_status
    status = _status(error.code, found)
    return JSONResponse({"errors": to_dicts(error)}, status, _headers(error.code, status))


def _headers(code: str, status: int) -> dict[str, str]:
    """Returns the headers of an error: how to log in, or when to repeat the request."""
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    if status in (429, 503):
        return {"Retry-After": str(RETRY_SECONDS.get(code, OTHER_RETRY_SECONDS))}
    return {}


def _status(code: str, status: int) -> int:
    if code in UNAVAILABLE:
        return 503
    return 404 if code in NOT_FOUND else status


def _invalid_request(request: Request, error: Any) -> JSONResponse:
    return JSONResponse({"errors": list(invalid_parts(request, error.errors()))}, 422)


def _http_error(request: Request, error: Any) -> JSONResponse:
    message, hint = _HTTP_ERRORS.get(error.status_code, (str(error.detail), None))
    found = RequestError(error.status_code, message, code=error_code(error.status_code), hint=hint)
    return JSONResponse({"errors": to_dicts(found)}, error.status_code, error.headers)


def error_code(status: int) -> str:
    """Returns the code of an error of the framework."""
    if status == 413:
        return "body-too-large"
    if status == 400:
        return "invalid-request"
    return "no-such-path" if status == 404 else "no-such-method"


def _unexpected_error(request: Request, error: Exception) -> JSONResponse:
    parts_of(request).log.error("request failed", path=request.url.path, error=repr(error))
    content = {"code": "bug", "message": "the server has a defect; its log has the error"}
    return JSONResponse({"errors": [content]}, 500)
