"""TCP and UDP with Python's sockets."""

from __future__ import annotations

import socket
from typing import Any

from clients.system import Ready, System
from penstock.connectors.tcp import TcpSink, TcpSource
from penstock.connectors.udp import UdpSink, UdpSource
from servers.server import free_port

LOCAL = "127.0.0.1"
BUFFER = 4 << 20
SILENT = 1.0


class _Socket(System):
    how = "listens"

    def __init__(self, server: Any) -> None:
        self._port = free_port()

    def options(self) -> dict[str, Any]:
        return {"listen": f"{LOCAL}:{self._port}"}

    def sink_options(self) -> dict[str, Any]:
        return {"connect": f"{LOCAL}:{self._port}"}


class Tcp(_Socket):
    name, source, sink = "tcp (lines)", TcpSource, TcpSink
    messages = 200_000

    def send(self, payloads: list[bytes]) -> None:
        with (
            socket.create_connection((LOCAL, self._port)) as connection,
            connection.makefile("wb") as file,
        ):
            for payload in payloads:
                file.write(payload + b"\n")

    def take(self, count: int, ready: Ready) -> int:
        with socket.create_server((LOCAL, self._port)) as listening:
            ready()
            taken = 0
            while taken < count:
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as file:
                    for _ in file:
                        taken += 1
                        if taken == count:
                            break
        return taken


class Udp(_Socket):
    """What does not fit into the buffer of the system is lost."""

    name, source, sink = "udp", UdpSource, UdpSink
    messages = 20_000

    def send(self, payloads: list[bytes]) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
            for payload in payloads:
                sending.sendto(payload, (LOCAL, self._port))

    def take(self, count: int, ready: Ready) -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
            listening.bind((LOCAL, self._port))
            ready()
            taken = 0
            while taken < count:
                try:
                    listening.recv(65_536)
                except TimeoutError:
                    break
                listening.settimeout(SILENT)
                taken += 1
        return taken
