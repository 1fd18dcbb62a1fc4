"""Answers of tools: JSON of limited size, without known secrets."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic_core import to_json

from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.core.known_secrets import conceal
from penstock.server.workers.pool import WorkerError
from penstock.server_client.answers import read_error

MAX_CHARACTERS = 40_000
MAX_ITEMS = 200
MAX_TEXT = 8_000


def answer(function: Callable[..., Any]) -> Callable[..., str]:
    """Decorates a tool: its result as bounded JSON, and its errors as those of the tool."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> str:
        try:
            return as_text(function(*args, **kwargs))
        except PenstockError as error:
            raise ToolError(_bounded(_report(error), MAX_CHARACTERS)) from error

    call.__annotations__ = {**function.__annotations__, "return": str}
    return call


def _report(error: PenstockError) -> str:
    """Returns the report of an error; of those of a worker, with their places."""
    if not isinstance(error, WorkerError):
        return format_error(error)
    return "\n\n".join(format_error(read_error(each, error.status)) for each in error.errors)


def as_text(found: Any) -> str:
    """Returns a result as JSON of at most `MAX_CHARACTERS` characters."""
    plain = json.loads(to_json(found, fallback=str))
    text = json.dumps(_short(plain), ensure_ascii=False, indent=1)
    return _bounded(conceal(text), MAX_CHARACTERS)


def _short(value: Any) -> Any:
    """Returns a value whose lists and texts are short, and say how much is missing."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list):
        kept = [_short(each) for each in value[:MAX_ITEMS]]
        missing = len(value) - len(kept)
        return [*kept, f"... {missing:,} more"] if missing else kept
    return _bounded(value, MAX_TEXT) if isinstance(value, str) else value


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n... {len(text) - limit:,} more characters"
