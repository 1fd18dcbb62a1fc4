"""Senders to a receiving run, which keep the acknowledged messages."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException
from itertools import islice
from typing import Any

from servers.mosquitto import Mosquitto
from servers.nats import Nats
from servers.rabbitmq import Rabbit
from servers.server import Server, free_port

PAUSE = 0.05
GROUP = 100


class Sender(ABC):
    """`options` are those of the source, `acknowledged` the numbers that are safe.

    When it is `ended` it waits no more.
    """

    options: dict[str, Any]

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.ended = threading.Event()

    @abstractmethod
    def send(self, numbers: Iterable[int]) -> None:
        """Sends each until it is acknowledged."""


class HttpSender(Sender):
    """Posts from several threads."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.options = {"type": "http", "listen": f"127.0.0.1:{port}"}
        self._port, self._own = port, threading.local()

    def send(self, numbers: Iterable[int]) -> None:
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(self._until_taken, numbers):
                pass

    def _until_taken(self, number: int) -> None:
        while not self._taken(number):
            if self.ended.wait(PAUSE):
                return
        self.acknowledged.add(number)

    def _taken(self, number: int) -> bool:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        self._own.connection = None
        try:
            connection.request("POST", "/", b'{"number": %d}' % number)
            answer = connection.getresponse()
            answer.read()
        except (OSError, HTTPException):
            connection.close()
            return False
        self._own.connection = connection
        return answer.status == 200


class MqttSender(Sender):
    """Publishes with QoS 1; the broker acknowledges, and keeps what is not taken yet."""

    def __init__(self, broker: Mosquitto) -> None:
        super().__init__()
        self.options = {"type": "mqtt", **broker.login, "topic": "allowed/numbers"}
        self._broker = broker

    def send(self, numbers: Iterable[int]) -> None:
        self._await_session()
        client = self._broker.client()
        waiting = []
        for number in numbers:
            waiting.append(
                (number, client.publish("allowed/numbers", b'{"number": %d}' % number, 1))
            )
            if len(waiting) >= 100:
                self._settle(waiting)
        self._settle(waiting)
        client.disconnect()
        client.loop_stop()

    def _settle(self, waiting: list) -> None:  # type: ignore[type-arg]
        for number, message in waiting:
            message.wait_for_publish(60)
            self.acknowledged.add(number)
        waiting.clear()

    def _await_session(self) -> None:
        """The broker keeps messages of a subscription, from its start."""
        while not re.search(r"penstock-received-mqtt \S* ?\d ", self._broker.log.read_text()):
            if self.ended.wait(PAUSE):
                return


class GroupSender(Sender):
    """Publishes groups of messages, each until the broker has confirmed all of it."""

    def __init__(self, options: dict[str, Any], publish: Callable[[list[bytes]], object]) -> None:
        super().__init__()
        self.options = options
        self._publish = publish

    def send(self, numbers: Iterable[int]) -> None:
        rest = iter(numbers)
        while group := list(islice(rest, GROUP)):
            self._publish([b'{"number": %d}' % number for number in group])
            self.acknowledged.update(group)


SERVERS: dict[str, type[Server]] = {"mqtt": Mosquitto, "rabbitmq": Rabbit, "jetstream": Nats}
"""The servers between senders and sources."""


@contextmanager
def sender(source: str, server: Any = None) -> Iterator[Sender]:
    """A sender to a source through a running server, or through one of its own."""
    if source == "http":
        yield HttpSender(free_port())
    elif source not in SERVERS:
        raise SystemExit(f"there is no sender for {source}")
    elif server is not None:
        yield _through(source, server)
    else:
        with SERVERS[source]() as own:
            yield _through(source, own)


def _through(source: str, server: Any) -> Sender:
    if source == "mqtt":
        return MqttSender(server)
    if source == "rabbitmq":
        queue = server.new_queue()
        options = {"type": "rabbitmq", **server.login, "queue": queue}
        return GroupSender(options, partial(server.publish, queue))
    stream = server.new_stream()
    options = {"type": "nats", **server.login, "stream": stream}
    return GroupSender(options, partial(server.put, f"{stream}.a"))
