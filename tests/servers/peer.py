"""A program at the other end of TCP connections: keeps received data, and sends given data."""

from __future__ import annotations

import json
import selectors
import socket
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from servers.server import Server, free_port


class Peer(Server):
    """Listens at `address` for those who send, and at `giving_address` for those who take.

    What comes is kept over its restarts, each connection for itself.
    """

    name = "peer"
    title = "a program at the other end of TCP connections"

    def __init__(self, port: int | None = None, certificate: Path | None = None) -> None:
        super().__init__(port)
        self._giving, self._control = free_port(), free_port()
        self._certificate = certificate

    def command(self) -> Sequence[str]:
        """This file, as a program."""
        ports = map(str, (self.port, self._giving, self._control))
        certificate = [str(self._certificate)] if self._certificate else []
        program = [sys.executable, "-m", "servers.peer"]
        return [*program, *ports, str(self.directory.path), *certificate]

    def environment(self) -> Mapping[str, str]:
        """So that this module is found."""
        return {"PYTHONPATH": str(Path(__file__).parents[1])}

    def ready(self) -> None:
        """Asks for nothing."""
        self._ask({})

    def kill(self) -> None:
        """Kills the program, after received data are on disk. Senders receive nothing."""
        self._ask({})
        super().kill()

    @property
    def address(self) -> str:
        """Where it takes."""
        return f"127.0.0.1:{self.port}"

    @property
    def giving_address(self) -> str:
        """Where it gives."""
        return f"127.0.0.1:{self._giving}"

    def give(self, *data: bytes) -> None:
        """Sends data to all connections, at least one."""
        assert self._ask({"give": [each.hex() for each in data]}), "no connection is open"

    def drop(self) -> None:
        """Closes all connections."""
        self._ask({"drop": True})

    def kept(self) -> list[bytes]:
        """What has come, each connection for itself, in their order."""
        self._ask({})
        paths = sorted(self.directory.path.glob("*.kept"), key=lambda path: int(path.stem))
        return [data for path in paths if (data := path.read_bytes())]

    def clear(self) -> None:
        """Removes the received data."""
        for path in self.directory.path.glob("*.kept"):
            path.write_bytes(b"")

    def _ask(self, asked: dict[str, Any]) -> Any:
        with socket.create_connection(("127.0.0.1", self._control), 60) as connection:
            connection.sendall(json.dumps(asked).encode() + b"\n")
            with connection.makefile("rb") as answer:
                return json.loads(answer.readline())


class Serving:
    """The program. What a test asks is done when everything is read that has come by then."""

    def __init__(self, directory: Path, tls: ssl.SSLContext | None) -> None:
        self._directory, self._tls = directory, tls
        self._ready = selectors.DefaultSelector()
        self._asked: list[socket.socket] = []
        self._giving: list[socket.socket] = []

    def serve(self, taking: int, giving: int, control: int) -> None:
        """Runs until it is killed."""
        for port, accept in ((taking, self._take), (giving, self._give_to), (control, self._hear)):
            listening = socket.create_server(("127.0.0.1", port), backlog=100)
            self._ready.register(listening, selectors.EVENT_READ, partial(accept, listening))
        while True:
            events = self._ready.select(0 if self._asked else None)
            for key, _ in events:
                key.data()
            if not events:
                self._answer(self._asked.pop(0))

    def _take(self, listening: socket.socket) -> None:
        number = len([*self._directory.glob("*.kept")])
        file = (self._directory / f"{number}.kept").open("ab", buffering=0)
        self._accepted(listening, lambda data: file.write(data) if data else file.close())

    def _give_to(self, listening: socket.socket) -> None:
        if (taker := self._accepted(listening, lambda data: None)) is not None:
            self._giving.append(taker)

    def _hear(self, listening: socket.socket) -> None:
        self._asked.append(listening.accept()[0])

    def _accepted(self, listening: socket.socket, keep: Any) -> socket.socket | None:
        connection = listening.accept()[0]
        connection.settimeout(5)
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return None
        connection.setblocking(False)
        self._ready.register(
            connection, selectors.EVENT_READ, partial(_read, self, connection, keep)
        )
        return connection

    def leave(self, connection: socket.socket) -> None:
        """Closes a connection."""
        self._ready.unregister(connection)
        connection.close()
        if connection in self._giving:
            self._giving.remove(connection)

    def _answer(self, test: socket.socket) -> None:
        with test, test.makefile("rb") as line:
            asked = json.loads(line.readline())
            to = [*self._giving]
            for taker in to:
                taker.settimeout(60)
                try:
                    for each in asked.get("give", ()):
                        taker.sendall(bytes.fromhex(each))
                    taker.setblocking(False)
                except OSError:
                    self.leave(taker)
            if asked.get("drop"):
                for key in [*self._ready.get_map().values()]:
                    if key.data.func is _read:
                        self.leave(key.fileobj)
            test.sendall(json.dumps(len(to)).encode() + b"\n")


def _read(serving: Serving, connection: socket.socket, keep: Any) -> None:
    while True:
        try:
            data = connection.recv(1 << 20)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            data = b""
        keep(data)
        if not data:
            serving.leave(connection)
            return


@pytest.fixture(scope="session")
def peer_program() -> Iterator[Peer]:
    """One for all tests that ask for it."""
    with Peer() as peer:
        yield peer


@pytest.fixture
def peer(peer_program: Peer) -> Iterator[Peer]:
    """The program, which has got nothing yet."""
    yield peer_program
    peer_program.clear()


if __name__ == "__main__":
    context = None
    if len(sys.argv) > 5:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[5])
    Serving(Path(sys.argv[4]), context).serve(*map(int, sys.argv[1:4]))
