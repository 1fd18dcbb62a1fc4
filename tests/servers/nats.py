"""NATS with JetStream."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from servers.install import program
from servers.server import Server

T = TypeVar("T")
USER, PASSWORD = "made-up-user", "made-up-password"
LARGEST = 8 << 20
_SETTINGS = """
host: 127.0.0.1
port: {port}
max_payload: 8MB
max_pending: 1GB
{streams}
{access}
{tls}
"""
_STREAMS = 'jetstream {{ store_dir: "{data}/streams", max_file: 10GB }}'
_ACCESS = f"""
authorization {{
  users: [ {{
    user: {USER}, password: {PASSWORD}
    permissions: {{ publish: {{ deny: "forbidden.>" }}, subscribe: {{ deny: "forbidden.>" }} }}
  }} ]
}}
"""
_TLS = """
tls {{ cert_file: "{certificate}", key_file: "{certificate}" }}
"""


class Nats(Server):
    """The server at `url`, for USER with PASSWORD, who may do all but touch `forbidden.>`.

    `access` names others instead, one of which has the `login`; such a server has no JetStream.
    With a certificate it requires TLS.
    """

    name = "nats"
    title = "NATS 2.9 with JetStream (Debian 12)"

    def __init__(
        self, port: int | None = None, certificate: Path | None = None, access: str | None = None,
        **login: Any,
    ) -> None:  # fmt: skip
        super().__init__(port)
        self._certificate, self._access = certificate, access
        self._login = login or {"user": USER, "password": PASSWORD}

    def command(self) -> Sequence[str]:
        """With its settings."""
        data, certificate = self.directory.path, self._certificate
        tls = "" if certificate is None else _TLS.format(certificate=certificate)
        streams = _STREAMS.format(data=data) if self._access is None else ""
        text = _SETTINGS.format(
            port=self.port, streams=streams, access=self._access or _ACCESS, tls=tls
        )
        settings = data / "nats.conf"
        settings.write_text(text)
        return [program("nats-server", "nats-server"), "-c", str(settings)]

    def ready(self) -> None:
        """Connects, and asks JetStream about itself where there is one."""
        self.ask(lambda nats: nats.jetstream().account_info() if self._access is None else _idle())

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def login(self) -> dict[str, Any]:
        """The options that reach it."""
        return {"url": self.url, "auth": {"username": USER, "password": PASSWORD}}

    def new_name(self) -> str:
        """Returns an unused name."""
        return f"n{uuid.uuid4().hex[:12]}"

    def ask(self, call: Callable[[Any], Awaitable[T]]) -> T:
        """What a call with a connected client of the tests' own gives."""
        return asyncio.run(self._ask(call))

    def new_stream(self, **settings: Any) -> str:
        """A stream that takes the subjects that begin with its name."""
        name = self.new_name()
        given = {"name": name, "subjects": [f"{name}.>"], **settings}
        self.ask(lambda nats: nats.jetstream().add_stream(**given))
        return name

    def new_bucket(self, **settings: Any) -> str:
        """A bucket that keeps the last ten values of each key."""
        name = self.new_name()
        given = {"bucket": name, "history": 10, **settings}
        self.ask(lambda nats: nats.jetstream().create_key_value(**given))
        return name

    def publish(
        self, subject: str, payloads: Sequence[bytes], headers: dict[str, str] | None = None
    ) -> None:
        """Publishes messages; returns when the server has them."""

        async def publish(nats: Any) -> None:
            for payload in payloads:
                await nats.publish(subject, payload, headers=headers)
            await nats.flush(60)
            await nats.flush(60)

        self.ask(publish)

    def put(self, subject: str, payloads: Sequence[bytes]) -> None:
        """Publishes messages, each of which a stream has confirmed."""

        async def put(nats: Any) -> None:
            for payload in payloads:
                await nats.jetstream(timeout=60).publish(subject, payload)

        self.ask(put)

    def messages(self, stream: str) -> list[Any]:
        """All messages of a stream."""

        async def read(nats: Any) -> list[Any]:
            streams = nats.jetstream(timeout=60)
            state = (await streams.stream_info(stream)).state
            there = range(max(state.first_seq, 1), state.last_seq + 1)
            return [await streams.get_msg(stream, sequence) for sequence in there]

        return self.ask(read)

    async def _ask(self, call: Callable[[Any], Awaitable[T]]) -> T:
        import nats

        client = await nats.connect(
            self.url, allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0,
            error_cb=_quiet, **self._login,
        )  # fmt: skip
        try:
            return await call(client)
        finally:
            await client.close()


async def _idle() -> None:
    """It is connected."""


async def _quiet(error: Exception) -> None:
    """The call raises it."""


@pytest.fixture(scope="session")
def nats() -> Iterator[Nats]:
    """One server for all tests that ask for it."""
    with Nats() as server:
        yield server
