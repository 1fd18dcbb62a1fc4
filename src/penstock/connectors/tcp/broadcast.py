"""Connections that others made to us, all of which get everything."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from contextlib import suppress

from penstock.connectors.tcp.connection import ConnectionConfig, is_established
from penstock.sdk import Transient

_PAUSE = 0.02
_BACKLOG = 1000


class Broadcast:
    """Listens, and sends to whoever is there. Raises Transient or Permanent."""

    def __init__(self, config: ConnectionConfig, patience: float) -> None:
        self._config, self._patience = config, patience
        self._tls = config.context()
        self._there: list[socket.socket] = []
        host, port = config.host_and_port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise config.failed(error) from None
        self._listening.setblocking(False)

    def await_takers(self, count: int) -> None:
        """Returns when so many are there."""
        until = time.monotonic() + self._config.timeout
        while self.look() < count:
            if time.monotonic() > until:
                raise Transient(
                    f"{len(self._there)} of {count} subscribers are connected to "
                    f"{self._config.listen}",
                    code="no-subscribers",
                    hint="start them, or lower subscribers",
                )
            time.sleep(_PAUSE)

    def look(self) -> int:
        """Takes new connections and lets go of those that were left. Returns how many there are."""
        while (taker := self._accepted()) is not None:
            self._there.append(taker)
        for gone in [each for each in self._there if not is_established(each)]:
            self._leave(gone)
        return len(self._there)

    def send(self, pieces: Iterable[bytes]) -> None:
        """Sends to all; whoever takes nothing for too long is left."""
        data = b"".join(pieces)
        for taker in [*self._there]:
            try:
                taker.sendall(data)
            except OSError:
                self._leave(taker)

    def close(self) -> None:
        """Leaves all, and listens no more."""
        self._listening.close()
        for taker in [*self._there]:
            self._leave(taker)

    def _accepted(self) -> socket.socket | None:
        with suppress(BlockingIOError):
            while True:
                taker, _ = self._listening.accept()
                taker.settimeout(self._config.timeout)
                with suppress(OSError):
                    if self._tls is not None:
                        taker = self._tls.wrap_socket(taker, server_side=True)
                    taker.settimeout(self._patience)
                    return taker
                taker.close()
        return None

    def _leave(self, taker: socket.socket) -> None:
        self._there.remove(taker)
        taker.close()
