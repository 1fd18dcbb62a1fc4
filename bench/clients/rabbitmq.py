"""RabbitMQ with aio-pika."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from clients.system import Ready, System
from penstock.connectors.rabbitmq import RabbitmqSink, RabbitmqSource, RabbitmqStreamSource
from servers.rabbitmq import Rabbit

GROUP = 1000


class RabbitmqQueue(System):
    name, source, sink = "rabbitmq", RabbitmqSource, RabbitmqSink
    messages = 10_000
    kind = "classic"
    arguments: ClassVar[dict[str, Any]] = {}

    @classmethod
    def server(cls) -> Any:
        return Rabbit()

    def __init__(self, server: Any) -> None:
        self._login, self._queue = server.login, server.new_queue(self.kind)
        self._connection = {
            "url": server.url, "login": self._login["auth"]["username"],
            "password": self._login["auth"]["password"],
        }  # fmt: skip

    def options(self) -> dict[str, Any]:
        return {**self._login, "queue": self._queue}

    def sink_options(self) -> dict[str, Any]:
        return {**self._login, "routing_key": self._queue}

    async def _connected(self) -> Any:
        import aio_pika

        login, password = self._connection["login"], self._connection["password"]
        url = self._connection["url"].replace("//", f"//{login}:{password}@")
        return await aio_pika.connect(url)

    def send(self, payloads: list[bytes]) -> None:
        from aio_pika import DeliveryMode, Message

        async def send() -> None:
            async with await self._connected() as connection:
                exchange = (await connection.channel()).default_exchange
                for at in range(0, len(payloads), GROUP):
                    await asyncio.gather(
                        *(
                            exchange.publish(
                                Message(payload, delivery_mode=DeliveryMode.PERSISTENT), self._queue
                            )
                            for payload in payloads[at : at + GROUP]
                        )
                    )

        asyncio.run(send())

    def take(self, count: int, ready: Ready) -> int:
        async def take() -> int:
            async with await self._connected() as connection:
                channel = await connection.channel()
                await channel.set_qos(prefetch_count=GROUP)
                queue = await channel.get_queue(self._queue)
                ready()
                taken = 0
                async with queue.iterator(arguments=self.arguments) as messages:
                    async for message in messages:
                        await message.ack()
                        taken += 1
                        if taken == count:
                            return taken
            return taken

        return asyncio.run(take())


class RabbitmqStream(RabbitmqQueue):
    name, source, sink = "rabbitmq_stream", RabbitmqStreamSource, None
    kind = "stream"
    arguments: ClassVar[dict[str, Any]] = {"x-stream-offset": "first"}

    def options(self) -> dict[str, Any]:
        return {**self._login, "stream": self._queue}
