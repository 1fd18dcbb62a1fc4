"""Checks of open texts: after a pause, one at a time for each text, of its newest version only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Check = Callable[[str], Awaitable[Any]]
DELAY = 0.2
"""The seconds without a change after which a text is checked."""


class Checking:
    """Checks of texts by URI.

    `check` checks the present text of a URI, and `publish` receives the result if the text has not
    changed meanwhile. Belongs to one event loop.
    """

    def __init__(self, check: Check, publish: Callable[[str, Any], None]) -> None:
        self._check, self._publish = check, publish
        self._changes: dict[str, int] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def changed(self, uri: str) -> None:
        """Requests a check of a text that was opened or changed."""
        self._changes[uri] = self._changes.get(uri, 0) + 1
        if uri not in self._tasks:
            self._tasks[uri] = asyncio.get_running_loop().create_task(self._run(uri))

    def closed(self, uri: str) -> None:
        """Ends the checks of a text. The result of a check under way is not published."""
        self._changes.pop(uri, None)
        task = self._tasks.pop(uri, None)
        if task is not None:
            task.cancel()

    def open_uris(self) -> list[str]:
        """Returns the URIs of the open texts."""
        return [*self._changes]

    async def _run(self, uri: str) -> None:
        try:
            while uri in self._changes:
                change = self._changes[uri]
                await asyncio.sleep(DELAY)
                if self._changes.get(uri) != change:
                    continue
                result = await self._check(uri)
                if self._changes.get(uri) == change:
                    self._publish(uri, result)
                    return
        finally:
            if self._tasks.get(uri) is asyncio.current_task():
                del self._tasks[uri]
