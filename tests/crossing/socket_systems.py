"""Systems of messages without a broker: programs at the ends of sockets, in JSON."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Callable
from functools import cache
from threading import Thread
from typing import Any

from crossing.message_systems import message_system
from crossing.systems import Options, System
from servers.pushing import LOGIN
from servers.server import free_port
from servers.zeromq import End

Send = Callable[[tuple[str, int], bytes], bool]
TOO_LONG_FOR_UDP = dict.fromkeys(("text: long", "raw: long"), "expected at most 65,507 bytes")


def websocket(server: Any) -> list[System]:
    @cache
    def hub(name: str) -> str:
        return str(server.new_name())

    def options(name: str) -> Options:
        return {"type": "websocket", "url": f"{server.ws_url}/hub/{hub(name)}", **LOGIN}

    def send(name: str, payloads: list[bytes]) -> None:
        for payload in payloads:
            while not server.push(hub(name), payload):
                time.sleep(0.05)

    return [
        message_system(
            "websocket",
            options,
            payloads=lambda name: [
                base64.b64decode(each["body"])
                for each in server.kept(hub(name))
                if each.get("frame") == "text"
            ],
            feed=send,
        )
    ]


def tcp(server: Any) -> list[System]:
    @cache
    def received(name: str) -> list[bytes]:
        found = b"".join(server.kept()).splitlines()
        server.clear()
        return found

    listen, feed = _listening(_send_line)
    return [
        message_system(
            "tcp",
            lambda name: {"type": "tcp", "connect": server.address},
            lambda name: {"type": "tcp", "listen": listen(name)},
            payloads=received,
            feed=feed,
        )
    ]


def without_server() -> list[System]:
    """Returns UDP and ZeroMQ, whose other ends are sockets of this process."""
    return [_udp(), _zeromq()]


def _udp() -> System:
    @cache
    def inbox(name: str) -> Inbox:
        return Inbox()

    listen, feed = _listening(_send_datagram)
    return message_system(
        "udp",
        lambda name: {"type": "udp", "connect": f"127.0.0.1:{inbox(name).port}"},
        lambda name: {"type": "udp", "listen": listen(name)},
        payloads=cache(lambda name: inbox(name).datagrams()),
        feed=feed,
        letters=TOO_LONG_FOR_UDP,
    )


class Inbox:
    """A socket that collects datagrams until they are asked for."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._found: list[bytes] = []
        self._thread = Thread(target=self._collect, daemon=True)
        self._thread.start()

    def datagrams(self) -> list[bytes]:
        """Returns all datagrams, and closes the socket."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        return self._found

    def _collect(self) -> None:
        with self._socket:
            while data := self._socket.recv(70_000):
                self._found.append(data)


def _zeromq() -> System:
    @cache
    def end(name: str) -> End:
        return End("PULL", bind=f"tcp://127.0.0.1:{free_port()}").__enter__()

    @cache
    def received(name: str) -> list[bytes]:
        with end(name) as taking:
            return [parts[-1] for parts in taking.taken()]

    listen = cache(lambda name: f"tcp://127.0.0.1:{free_port()}")

    def send(name: str, payloads: list[bytes]) -> None:
        with End("PUSH", connect=listen(name)) as sending:
            sending.send(*([payload] for payload in payloads))

    return message_system(
        "zeromq",
        lambda name: {"type": "zeromq", "socket": "push", "connect": end(name).endpoint},
        lambda name: {"type": "zeromq", "socket": "pull", "listen": listen(name)},
        payloads=received,
        feed=send,
    )


def _listening(send: Send) -> tuple[Callable[[str], str], Callable[[str, list[bytes]], None]]:
    """Returns the address at which the source of a name listens, and the function that sends."""
    port = cache(lambda name: free_port())

    def feed(name: str, payloads: list[bytes]) -> None:
        for payload in payloads:
            while not send(("127.0.0.1", port(name)), payload):
                time.sleep(0.05)

    return lambda name: f"127.0.0.1:{port(name)}", feed


def _send_line(address: tuple[str, int], payload: bytes) -> bool:
    try:
        with socket.create_connection(address, 10) as connection:
            connection.sendall(payload + b"\n")
    except ConnectionRefusedError:
        return False
    return True


def _send_datagram(address: tuple[str, int], payload: bytes) -> bool:
    """Sends a datagram. Returns False if no socket is bound to the address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(address)
        sender.send(payload)
        time.sleep(0.001)
        return sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
