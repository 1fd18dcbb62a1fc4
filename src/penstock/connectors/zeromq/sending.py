"""A socket that messages go out through."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.connectors.zeromq.endpoint import Opened
from penstock.sdk import Transient

if TYPE_CHECKING:
    from penstock.connectors.zeromq.sink import ZeromqSinkConfig

_SUBSCRIBED = 1
_LOOK = 20


class Outlet:
    """Sends to all who subscribe (PUB), or to one of those who pull (PUSH)."""

    def __init__(self, config: ZeromqSinkConfig) -> None:
        self._config = config
        self._publishes = config.socket == "pub"
        kind = {"xpub_verboser": True, "xpub_nodrop": True} if self._publishes else {}
        self._opened = Opened(config, "XPUB" if self._publishes else "PUSH", **kind)
        self._opened.socket.sndtimeo = round(config.patience * 1000)
        self._subscriptions = 0

    def await_others(self) -> None:
        """Returns when all are there that we connect to."""
        self._opened.await_others()

    def send(self, messages: Iterable[list[bytes]]) -> None:
        """Returns when all of them wait at most; before that, waits for those who subscribe."""
        import zmq

        self._opened.await_others()
        self._await_subscribers()
        try:
            for parts in messages:
                self._opened.socket.send_multipart(parts)
        except zmq.Again:
            raise Transient(
                "nobody takes what is sent", code="timeout", hint="patience says how long to wait"
            ) from None

    def finish(self) -> None:
        """Returns when the system has all that was sent."""
        if not self._opened.close(self._config.patience):
            raise Transient("not all of it could be sent", code="timeout")

    def close(self) -> None:
        """Drops what waits."""
        self._opened.close()

    def _await_subscribers(self) -> None:
        until = time.monotonic() + self._config.timeout
        while self._publishes:
            missing = self._config.subscribers - self._subscriptions
            while self._opened.socket.poll(_LOOK if missing > 0 else 0):
                change = self._opened.socket.recv()
                self._subscriptions += 1 if change[0] == _SUBSCRIBED else -1
            if self._subscriptions >= self._config.subscribers:
                return
            if time.monotonic() > until:
                raise Transient(
                    f"{self._subscriptions} of {self._config.subscribers} subscribers are there",
                    code="no-subscribers",
                    hint="start them, or lower subscribers",
                )
