"""Connections of py4j in forks of the driver."""

from __future__ import annotations

import os

from py4j.clientserver import ClientServerConnection

_close = ClientServerConnection.__del__
_owner = 0


def keep_open_in_forks() -> None:
    """Prevents forks of this process from closing its connections to Java.

    A fork frees the thread-local objects of all other threads before it runs any code. py4j shuts
    down a connection that is freed, and a shutdown also affects the socket of the parent.
    """
    global _owner
    _owner = os.getpid()
    ClientServerConnection.__del__ = _close_in_owner


def _close_in_owner(connection: ClientServerConnection) -> None:
    if os.getpid() == _owner:
        _close(connection)
