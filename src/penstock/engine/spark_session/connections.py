"""Connections of py4j in forks of the driver."""

from __future__ import annotations

import os

from py4j.clientserver import ClientServerConnection

_close = ClientServerConnection.__del__


def keep_open_in_forks() -> None:
    """Prevents forks of this process from closing its connections to Java.

    A fork frees the thread-local objects of all other threads before it runs any code. py4j shuts
    down a connection that is freed, and a shutdown also affects the socket of the parent.
    """
    close, process_id, owner = _close, os.getpid, os.getpid()

    def close_in_owner(connection: ClientServerConnection) -> None:
        # Globals are gone at the end of the interpreter.
        if process_id() == owner:
            close(connection)

    ClientServerConnection.__del__ = close_in_owner
