"""Errors of Elasticsearch and OpenSearch, with the reasons of the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.connectors.http.client import Response
from penstock.connectors.http.errors import status_error
from penstock.connectors.http.opensearch.config import ServerConfig
from penstock.sdk import Permanent, Transient

_NO_INDEX, _NO_POINT_IN_TIME = "index_not_found_exception", "search_context_missing_exception"
_LARGE_PAGE = "Result window is too large"
"""The start of the reason if a page has more documents than `max_result_window` of the index."""
_MAX_LENGTH = 1000
_BAD_REQUEST = 400


def reason_of(error: Any) -> str:
    """Returns the reason of an error of the server, with its causes."""
    if not isinstance(error, Mapping):
        return str(error)[:_MAX_LENGTH]
    reasons: list[str] = []
    cause: Any = _first(error)
    while isinstance(cause, Mapping):
        text = str(cause.get("reason") or cause.get("type"))
        if text not in reasons:
            reasons.append(text)
        cause = cause.get("caused_by")
    return "; ".join(reasons)[:_MAX_LENGTH]


def response_error(
    response: Response, config: ServerConfig, index: str | None = None
) -> Transient | Permanent:
    """Returns the error of a response to a request for an index."""
    error = _error(response)
    kind = _first(error).get("type") if isinstance(error, Mapping) else None
    if kind == _NO_INDEX:
        return unknown_index(index or str(_first(error).get("index")))
    if kind == _NO_POINT_IN_TIME:
        return Transient(
            "the point in time of the search has expired, or the server was restarted",
            code=f"http-{response.status}", hint="The documents are read again.",
        )  # fmt: skip
    reason = response.text if error is None else reason_of(error)
    if reason.startswith(_LARGE_PAGE):
        return Permanent(reason, code="too-large")
    found = status_error(config.url, response.status, reason, config.retry)
    if response.status == _BAD_REQUEST:
        found.hint = "Check the options, and the fields of the index."
    return found


def unknown_index(name: str) -> Permanent:
    """Returns the error for an index that does not exist."""
    return Permanent(
        f'there is no index "{name}"', code="unknown-index",
        hint="Create the index, or correct the option index.",
    )  # fmt: skip


def is_existing(response: Response) -> bool:
    """Returns whether an index was not created because it exists."""
    error = _error(response)
    kind = _first(error).get("type") if isinstance(error, Mapping) else None
    return kind == "resource_already_exists_exception"


def _error(response: Response) -> Any:
    from msgspec import json

    try:
        body = json.decode(response.body)
    except ValueError:
        return None
    return body.get("error") if isinstance(body, dict) else None


def _first(error: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the first root cause of an error, or the error."""
    causes = error.get("root_cause")
    return causes[0] if causes else error
