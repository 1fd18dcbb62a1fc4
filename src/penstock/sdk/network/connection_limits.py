"""Limits of servers: connections in all and of an address."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import Field

from penstock.sdk.config import Config


class ConnectionLimits(Config):
    """Options of servers that limit connections."""

    max_connections: int = Field(default=1000, ge=1)
    """With `listen`, the maximum number of open connections. Further connections are closed."""
    max_connections_per_address: int = Field(default=250, ge=1)
    """With `listen`, the maximum number of open connections of a client address. Increase the
    number for clients behind a proxy."""


class ConnectionCounter:
    """The open connections of a server by address."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._counts: Counter[str] = Counter()
        self.total = 0

    def add(self, peername: Any) -> bool:
        """Counts a connection. Returns False, without counting, if a limit is reached."""
        address = _address(peername)
        if self.total >= self._limits.max_connections:
            return False
        if self._counts[address] >= self._limits.max_connections_per_address:
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
