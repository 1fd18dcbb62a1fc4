"""NATS with nats-py."""

from __future__ import annotations

import asyncio
from typing import Any

from clients.system import Ready, System
from penstock.connectors.nats import NatsSink, NatsSource
from servers.nats import PASSWORD, USER, Nats

GROUP = 1000


class _OnNats(System):
    source, sink = NatsSource, NatsSink

    @classmethod
    def server(cls) -> Any:
        return Nats()

    def __init__(self, server: Any) -> None:
        self._login = server.login
        self._connection = {
            "servers": server.url, "user": USER, "password": PASSWORD,
        }  # fmt: skip

    async def _connected(self) -> Any:
        import nats

        return await nats.connect(**self._connection)


class NatsSubject(_OnNats):
    name = "nats (core)"
    how = "drops"

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self._subject = server.new_name()

    def options(self) -> dict[str, Any]:
        return {**self._login, "subject": self._subject}

    def send(self, payloads: list[bytes]) -> None:
        async def send() -> None:
            client = await self._connected()
            for payload in payloads:
                await client.publish(self._subject, payload)
            await client.flush()
            await client.close()

        asyncio.run(send())

    def take(self, count: int, ready: Ready) -> int:
        async def take() -> int:
            client = await self._connected()
            there = await client.subscribe(self._subject, pending_msgs_limit=-1)
            await client.flush()
            ready()
            for _ in range(count):
                await there.next_msg(30)
            await client.close()
            return count

        return asyncio.run(take())


class JetStream(_OnNats):
    name = "nats (JetStream)"

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self._stream = server.new_stream()

    def options(self) -> dict[str, Any]:
        return {**self._login, "stream": self._stream}

    def sink_options(self) -> dict[str, Any]:
        return {**self._login, "subject": f"{self._stream}.a", "stream": self._stream}

    def send(self, payloads: list[bytes]) -> None:
        async def send() -> None:
            client = await self._connected()
            streams = client.jetstream(timeout=60)
            for at in range(0, len(payloads), GROUP):
                some = payloads[at : at + GROUP]
                await asyncio.gather(*(streams.publish(f"{self._stream}.a", p) for p in some))
            await client.close()

        asyncio.run(send())

    def take(self, count: int, ready: Ready) -> int:
        async def take() -> int:
            client = await self._connected()
            there = await client.jetstream().pull_subscribe(f"{self._stream}.a", "bench")
            ready()
            taken = 0
            while taken < count:
                for message in await there.fetch(GROUP, timeout=30):
                    await message.ack()
                    taken += 1
            await client.close()
            return taken

        return asyncio.run(take())
