"""Finalizers of connections to Java."""

from __future__ import annotations

import pytest
from py4j.clientserver import ClientServerConnection

from penstock.engine.spark_session import connections


def test_a_finalizer_needs_no_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the interpreter the globals of a module are None."""
    closed: list[object] = []
    monkeypatch.setattr(ClientServerConnection, "__del__", ClientServerConnection.__del__)
    monkeypatch.setattr(connections, "_close", closed.append)
    connections.keep_open_in_forks()
    close = ClientServerConnection.__del__
    for name in ("os", "_close"):
        monkeypatch.setattr(connections, name, None)
    connection = object()
    close(connection)
    assert closed == [connection]
