"""Limits of servers: connections in all and of an address."""

from __future__ import annotations

import resource
from collections import Counter
from typing import Any

from pydantic import Field

from penstock.sdk.config import Config


class ConnectionLimits(Config):
    """Options of servers that limit connections."""

    max_connections: int = Field(default=1000, ge=1)
    """With `listen`, the maximum number of open connections. Further connections are closed. The
    number is at most half of the file descriptors that the process may open (`ulimit -n`)."""
    max_connections_per_address: int = Field(default=250, ge=1)
    """With `listen`, the maximum number of open connections of a client address. Increase the
    number for clients behind a proxy."""


class ConnectionCounter:
    """The open connections of a server by address.

    Connections use at most half of the file descriptors that the process may open. The others
    remain for data. Raised limits of the process apply to counters that are created later.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._limit = limits.max_connections
        if soft_limit != resource.RLIM_INFINITY:
            self._limit = min(self._limit, max(1, soft_limit // 2))
        self._limit_per_address = limits.max_connections_per_address
        self._counts: Counter[str] = Counter()
        self.total = 0

    def add(self, peername: Any) -> bool:
        """Counts a connection. Returns False, without counting, if a limit is reached."""
        address = _address(peername)
        if self.total >= self._limit:
            return False
        if self._counts[address] >= self._limit_per_address:
            return False
        self._counts[address] += 1
        self.total += 1
        return True

    def remove(self, peername: Any) -> None:
        """Removes a counted connection."""
        address = _address(peername)
        self.total -= 1
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]


def _address(peername: Any) -> str:
    return str(peername[0]) if isinstance(peername, tuple) else ""
