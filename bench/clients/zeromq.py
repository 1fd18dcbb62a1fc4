"""ZeroMQ with pyzmq."""

from __future__ import annotations

from typing import Any

from clients.system import Ready, System
from penstock.connectors.zeromq import ZeromqSink, ZeromqSource
from servers.server import free_port


class Zeromq(System):
    name, source, sink = "zeromq (PUSH, PULL)", ZeromqSource, ZeromqSink
    how = "listens"

    def __init__(self, server: Any) -> None:
        self._endpoint = f"tcp://127.0.0.1:{free_port()}"

    def options(self) -> dict[str, Any]:
        return {"socket": "pull", "listen": self._endpoint}

    def sink_options(self) -> dict[str, Any]:
        return {"socket": "push", "connect": self._endpoint}

    def send(self, payloads: list[bytes]) -> None:
        import zmq

        with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
            socket.connect(self._endpoint)
            for payload in payloads:
                socket.send(payload)

    def take(self, count: int, ready: Ready) -> int:
        import zmq

        with zmq.Context() as context, context.socket(zmq.PULL) as socket:
            socket.bind(self._endpoint)
            ready()
            for _ in range(count):
                socket.recv()
        return count
