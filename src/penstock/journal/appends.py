"""Pending appends of a journal, and their completion."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import NamedTuple

from penstock.core.errors import StateError
from penstock.journal.message import Messages


class Append(NamedTuple):
    """Messages in one piece, and the future of their acknowledgement."""

    messages: Messages
    size: int
    future: asyncio.Future[None] | None


def complete(group: list[Append], error: StateError | None) -> None:
    """Completes the futures of appends, with one call per event loop."""
    pending = defaultdict(list)
    for append in group:
        if append.future is not None:
            pending[append.future.get_loop()].append(append.future)
    for loop, futures in pending.items():
        try:
            loop.call_soon_threadsafe(_set_results, futures, error)
        except RuntimeError:
            continue


def _set_results(futures: list[asyncio.Future[None]], error: StateError | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
