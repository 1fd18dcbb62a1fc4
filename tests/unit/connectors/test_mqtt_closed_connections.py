"""A broker that closes the connection after a message: the error names topic and rights."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.connectors.mqtt.config import MqttAuth, MqttSinkConfig
from penstock.connectors.mqtt.writer import OutgoingMessage, Publisher
from penstock.core.errors import ConnectError

CONNACK = {"3.1.1": b"\x20\x02\x00\x00", "5": b"\x20\x03\x00\x00\x00"}
NOT_AUTHORIZED = b"\xe0\x02\x87\x00"
"""DISCONNECT of MQTT 5 with the reason 0x87."""


@contextmanager
def closing_broker(version: str, farewell: bytes) -> Iterator[int]:
    """Runs a broker that accepts a connection, and closes the connection after one message."""

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(CONNACK[version])
            connection.recv(4096)
            connection.sendall(farewell)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        thread.join(10)


@pytest.mark.parametrize(
    ("version", "farewell", "username", "code", "end", "subject"),
    [
        ("3.1.1", b"", "ann", "connection-lost", '"rooms/1"', "the user ann"),
        ("5", b"", None, "connection-lost", '"rooms/1"', "an anonymous client"),
        ("5", NOT_AUTHORIZED, "ann", "authorization", ": Not authorized", "the user ann"),
    ],
)
def test_closed_after_a_message(
    version: str, farewell: bytes, username: str | None, code: str, end: str, subject: str
) -> None:
    with closing_broker(version, farewell) as port:
        config = MqttSinkConfig.model_validate(
            {
                "url": f"mqtt://127.0.0.1:{port}",
                "topic": "rooms/1",
                "version": version,
                "auth": MqttAuth.model_validate({"username": username}) if username else None,
            }
        )
        publisher = Publisher(config)
        try:
            with pytest.raises(ConnectError) as caught:
                publisher.send([OutgoingMessage("rooms/1", b"x", [])])
        finally:
            publisher.close()
    error = caught.value
    assert error.code == code
    assert error.message.startswith(
        f"the MQTT broker 127.0.0.1:{port} closed the connection after a message to the topic "
    )
    assert error.message.endswith(end)
    assert error.hint is not None
    assert f"that {subject} may publish to this topic" in error.hint
