"""Listeners with TLS, whose certificates clients reject."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_REQUEST_OF_POSTGRES = 8


@contextmanager
def tls_listener(certificate: Path | None, *, asks: bool = False) -> Iterator[int]:
    """Yields the port of a listener on all loopback addresses with a certificate.

    Without a certificate it ends each connection in the handshake. With `asks` clients request TLS,
    as those of PostgreSQL do.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if certificate is not None:
        context.load_cert_chain(certificate)

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.settimeout(10)
            if asks:
                connection.recv(_REQUEST_OF_POSTGRES)
                connection.sendall(b"S")
            if certificate is None:
                connection.recv(1 << 16)
                return
            with context.wrap_socket(connection, server_side=True) as accepted:
                accepted.recv(1 << 16)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("", 0), backlog=100) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
