"""RabbitMQ, a broker of AMQP 0-9-1."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from servers.certificates import Authority
from servers.install import program
from servers.process import Process
from servers.server import Server, free_port

USER, PASSWORD = "made-up-user", "made-up-password"
OTHER_HOST = "made/up"
_SCRIPT = "/usr/lib/rabbitmq/bin/rabbitmq-server"
_SETTINGS = """
listeners.tcp.1 = 127.0.0.1:{port}
listeners.ssl.1 = 127.0.0.1:{tls_port}
ssl_options.certfile = {certificate}
ssl_options.keyfile = {certificate}
definitions.import_backend = local_filesystem
definitions.local.path = {data}/definitions.json
max_message_size = 20000000
cluster_partition_handling = ignore
"""
_SECONDS_UNTIL_KNOWN = 5
_DEFINITIONS = {
    "users": [
        {"name": USER, "password": PASSWORD, "tags": [], "limits": {}},
    ],
    "vhosts": [{"name": "/"}, {"name": OTHER_HOST}],
    "permissions": [
        {"user": USER, "vhost": "/", "configure": ".*", "write": "^(?!forbidden).*",
         "read": "^(?!forbidden).*"},
        {"user": USER, "vhost": OTHER_HOST, "configure": ".*", "write": ".*", "read": ".*"},
    ],
}  # fmt: skip


class Rabbit(Server):
    """The broker at `url`, for USER with PASSWORD, who may declare all, and read and write what is

    not called `forbidden...`; with TLS, by `authority`, at `tls_port`.
    """

    name = "rabbitmq"
    title = "RabbitMQ 3.10 (Debian 12)"
    seconds_to_start = 120

    def __init__(self, port: int | None = None) -> None:
        super().__init__(port)
        self.authority = Authority(self.directory.path)
        self._certificate = self.authority.issue("broker")
        self._ports = {name: str(free_port()) for name in ("epmd", "node")}
        self._epmd: Process | None = None
        self._queues: dict[str, str] = {}
        self._made = 0.0
        self.tls_port = free_port()

    def command(self) -> Sequence[str]:
        """With its settings and users, and beside it the daemon that Erlang would leave behind."""
        program("rabbitmq-server", "rabbitmq-server")
        data = self.directory.path
        settings = _SETTINGS.format(
            port=self.port, tls_port=self.tls_port, certificate=self._certificate, data=data
        )
        (data / "rabbitmq.conf").write_text(settings)
        (data / "definitions.json").write_text(json.dumps(_DEFINITIONS))
        (data / "plugins").write_text("[].")
        (data / "env").touch()
        if self._epmd is None:
            epmd = [program("epmd", "erlang-base"), "-address", "127.0.0.1"]
            self._epmd = Process([*epmd, "-port", self._ports["epmd"]], data / "epmd.log")
        return [_SCRIPT]

    def environment(self) -> Mapping[str, str]:
        """RUNNING_UNDER_SYSTEMD makes the broker itself the process, not its script."""
        data = str(self.directory.path)
        return {
            "HOME": data,
            "RUNNING_UNDER_SYSTEMD": "1",
            "NOTIFY_SOCKET": "",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": self._ports["epmd"],
            "RABBITMQ_DIST_PORT": self._ports["node"],
            "RABBITMQ_NODENAME": f"tests{self.port}@localhost",
            "RABBITMQ_BASE": data,
            "RABBITMQ_MNESIA_BASE": f"{data}/data",
            "RABBITMQ_LOG_BASE": f"{data}/logs",
            "RABBITMQ_CONFIG_FILE": f"{data}/rabbitmq",
            "RABBITMQ_CONF_ENV_FILE": f"{data}/env",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{data}/plugins",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none",
        }  # fmt: skip

    def ready(self) -> None:
        """Looks at the queues that it has."""
        for host in {"/", *self._queues.values()}:
            self.do(partial(self._look, [q for q, at in self._queues.items() if at == host]), host)

    async def _look(self, queues: list[str], channel: Any) -> None:
        for queue in queues:
            await channel.declare_queue(queue, passive=True)

    def kill(self) -> None:
        """Not while a queue is new.

        RabbitMQ 3.10 enters a queue of a quorum in a table that Erlang writes to the disk some
        three seconds later; if it is killed before that, the queue has no leader ever after.
        """
        time.sleep(max(0, self._made + _SECONDS_UNTIL_KNOWN - time.monotonic()))
        super().kill()

    def close(self) -> None:
        super().close()
        if self._epmd is not None:
            self._epmd.kill()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"amqp://127.0.0.1:{self.port}"

    @property
    def login(self) -> dict[str, Any]:
        """The options that reach it."""
        return {"url": self.url, "auth": {"username": USER, "password": PASSWORD}}

    def do(self, work: Callable[[Any], Awaitable[Any]], host: str = "/") -> Any:
        """What `work(channel)` returns, with a channel of the tests' own."""
        import aio_pika

        logging.getLogger("aiormq").setLevel(logging.CRITICAL)

        async def done() -> Any:
            connection = await aio_pika.connect(
                host="127.0.0.1", port=self.port, login=USER, password=PASSWORD, virtualhost=host,
                timeout=5,
            )  # fmt: skip
            async with connection:
                return await work(await connection.channel(on_return_raises=True))

        return asyncio.run(done())

    def new_queue(self, kind: str = "classic", host: str = "/", **arguments: Any) -> str:
        """Returns an unused durable queue."""
        name = f"{kind}-{uuid.uuid4().hex[:12]}"
        given = {"x-queue-type": kind, **arguments}
        self.do(lambda c: c.declare_queue(name, durable=True, arguments=given), host)
        self._queues[name] = host
        self._made = time.monotonic()
        return name

    def delete(self, queue: str) -> None:
        """Deletes a queue."""
        self.do(lambda channel: channel.queue_delete(queue), self._queues.pop(queue))

    def publish(
        self, queue: str, payloads: list[bytes], exchange: str = "", host: str = "/", **about: Any
    ) -> None:
        """Publishes messages; returns when the broker has them."""
        from aio_pika import Message

        async def work(channel: Any) -> None:
            to = channel.default_exchange if not exchange else await channel.get_exchange(exchange)
            for payload in payloads:
                await to.publish(Message(payload, delivery_mode=2, **about), queue, mandatory=False)

        self.do(work, host)

    def messages(self, queue: str, host: str = "/") -> list[Any]:
        """What is in a queue, which is empty then."""

        async def work(channel: Any) -> list[Any]:
            found = []
            source = await channel.get_queue(queue)
            while (message := await source.get(fail=False, no_ack=True)) is not None:
                found.append(message)
            return found

        return list(self.do(work, host))


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[Rabbit]:
    """One broker for all tests that ask for it."""
    with Rabbit() as broker:
        yield broker
