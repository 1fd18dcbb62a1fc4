"""Connections of py4j in forks of the driver."""

from __future__ import annotations

import os
from collections.abc import Callable

from py4j.clientserver import ClientServerConnection

_close = ClientServerConnection.__del__


def keep_open_in_forks() -> None:
    """Prevents forks of this process from closing its connections to Java.

    A fork frees the thread-local objects of all other threads before it runs any code. py4j shuts
    down a connection that is freed, and a shutdown also affects the socket of the parent.
    """
    ClientServerConnection.__del__ = _close_in(os.getpid(), _close, os.getpid)


def _close_in(
    owner: int, close: Callable[[ClientServerConnection], None], process_id: Callable[[], int]
) -> Callable[[ClientServerConnection], None]:
    """Returns a finalizer. It uses no globals, which are gone at the end of the interpreter."""

    def close_in_owner(connection: ClientServerConnection) -> None:
        if process_id() == owner:
            close(connection)

    return close_in_owner
