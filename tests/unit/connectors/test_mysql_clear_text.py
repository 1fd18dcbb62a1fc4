"""A peer of a MySQL connection that requests the password in clear text."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from penstock.connectors.mysql import MysqlSource
from penstock.core.errors import Permanent

_GREETING = (
    b"\x0a" + b"9.0.0\0" + b"\x01\0\0\0" + b"8bytes..\0" + b"\xff\xf7" + b"\x2d" + b"\x02\0"
    + b"\xff\x81" + b"\x15" + bytes(10) + b"12bytes....." + b"\0" + b"mysql_native_password\0"
)  # fmt: skip


def packet(number: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "little") + bytes([number]) + content


@pytest.fixture(params=["mysql_clear_password", "dialog"])
def received(request: pytest.FixtureRequest) -> Iterator[tuple[int, list[bytes]]]:
    """A server's port, and the content that it receives after its request."""
    content: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(packet(0, _GREETING))
                peer.recv(65536)
                plugin = str(request.param).encode()
                peer.sendall(packet(2, b"\xfe" + plugin + b"\0\0Password: "))
                content.append(peer.recv(65536))

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], content
        thread.join(30)


def test_the_password_is_not_sent(received: tuple[int, list[bytes]]) -> None:
    port, content = received
    options = {
        "url": f"mysql://127.0.0.1:{port}/shop", "table": "t",
        "auth": {"username": "ann", "password": "made-up-password"},
    }  # fmt: skip
    source = MysqlSource.create(MysqlSource.config_type.model_validate(options))
    with pytest.raises(Permanent) as caught:
        source.check()
    assert caught.value.code == "authentication" and "clear text" in caught.value.message
    assert content == [b""]
