"""A socket that messages go out through."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.zeromq.endpoint import Opened
from penstock.connectors.zeromq.start import CALL, END, Asked
from penstock.sdk import Transient

if TYPE_CHECKING:
    from penstock.connectors.zeromq.sink import ZeromqSinkConfig

_SUBSCRIBED = 1
_LOOK = 20
_CALL_SECONDS = 1.0
_ANSWER_SECONDS = 1.0


class Outlet:
    """Sends to all who subscribe (PUB), or to one of those who pull (PUSH).

    With `sync`, `state` is where it is kept who has asked.
    """

    def __init__(self, config: ZeromqSinkConfig, state: Path | None = None) -> None:
        self._config = config
        self._publishes = config.socket == "pub"
        kind = {"xpub_verboser": True, "xpub_nodrop": True} if self._publishes else {}
        self._opened = Opened(config, "XPUB" if self._publishes else "PUSH", **kind)
        self._opened.socket.sndtimeo = round(config.patience * 1000)
        self._subscriptions = 0
        self._in_step = False
        self._asked: Asked | None = None
        if config.endpoints:
            try:
                self._asked = Asked(config, config.endpoints, state)
            except BaseException:
                self._opened.close()
                raise

    def await_others(self) -> None:
        """Returns when all are there that we connect to."""
        self._opened.await_others()

    def send(self, messages: Iterable[list[bytes]]) -> None:
        """Returns when all of them wait at most; before that, waits for those who subscribe."""
        self._opened.await_others()
        if self._asked is not None:
            self._await_step(self._asked)
        elif self._publishes:
            self._await_subscribers()
        for parts in messages:
            self._send(parts)

    def end(self) -> None:
        """Tells those of `sync` that nothing more comes."""
        if self._asked is not None:
            self._asked.answer()
            self._send([END])
            self._asked.forget()

    def finish(self) -> None:
        """Returns when the system has all that was sent."""
        done = self._opened.close(self._config.patience)
        if self._asked is not None:
            self._asked.close(_ANSWER_SECONDS)
        if not done:
            raise Transient("not all of it could be sent", code="timeout")

    def close(self) -> None:
        """Drops what waits."""
        self._opened.close()
        if self._asked is not None:
            self._asked.close()

    def _send(self, parts: list[bytes]) -> None:
        import zmq

        try:
            self._opened.socket.send_multipart(parts)
        except zmq.Again:
            raise Transient(
                "nobody takes what is sent", code="timeout", hint="patience says how long to wait"
            ) from None

    def _await_subscribers(self) -> None:
        until = time.monotonic() + self._config.timeout
        while self._subscribed() < self._config.subscribers:
            self._opened.socket.poll(_LOOK)
            if time.monotonic() > until:
                raise self._too_few(self._config.subscribers, "start them, or lower subscribers")

    def _await_step(self, asked: Asked) -> None:
        """Returns when each endpoint of `sync` was asked, now or before, and all subscribe.

        A call is the first that a subscriber gets, also one that has taken another's place.
        """
        asked.answer()
        subscribed, count = self._subscribed(), len(self._config.endpoints)
        if self._in_step:
            return
        until, due = time.monotonic() + self._config.timeout, 0.0
        while asked.missing or subscribed < count:
            if time.monotonic() >= due:
                self._send([CALL])
                due = time.monotonic() + _CALL_SECONDS
            asked.answer(_LOOK)
            subscribed = self._subscribed()
            if time.monotonic() > until:
                raise self._not_in_step(asked.missing)
        self._send([CALL])
        self._in_step = True

    def _subscribed(self) -> int:
        """How many subscriptions there are."""
        while self._opened.socket.poll(0):
            change = self._opened.socket.recv()
            self._subscriptions += 1 if change[0] == _SUBSCRIBED else -1
        return self._subscriptions

    def _not_in_step(self, missing: list[str]) -> Transient:
        if not missing:
            return self._too_few(len(self._config.endpoints), "start them, or name fewer in sync")
        return Transient(
            f"no subscriber has asked at {', '.join(missing)}",
            code="no-subscribers",
            hint="start them, or once more: each asks only once, when it is called first",
        )

    def _too_few(self, wanted: int, hint: str) -> Transient:
        return Transient(
            f"{self._subscriptions} of {wanted} subscribers are there",
            code="no-subscribers",
            hint=hint,
        )
