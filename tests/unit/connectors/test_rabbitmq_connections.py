"""Connections to a RabbitMQ broker that does not answer."""

from __future__ import annotations

import gc
import logging
import socket
import threading
import warnings

import pytest

from penstock.connectors.rabbitmq.client import connect
from penstock.connectors.rabbitmq.config import ConnectionConfig
from penstock.sdk.network.event_loop import EventLoopThread


@pytest.mark.slow
def test_a_failed_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client warns of an open connection that a thread without a loop frees."""
    # Records of the log would hold the connection.
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    loop, failed = EventLoopThread(), []

    def fail() -> None:
        try:
            loop.run(connect(ConnectionConfig(url=f"amqp://127.0.0.1:{port}")))
        except ConnectionError:
            failed.append(port)
        gc.collect()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    loop.close()
    assert failed == [port]
    assert [str(each.message) for each in found if "never awaited" in str(each.message)] == []
