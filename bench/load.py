"""A stream of stamped records into a topic, and how long each took to come out of another."""

from __future__ import annotations

import threading
import time
from array import array
from datetime import UTC, datetime
from typing import Self

import numpy as np
from clicks_data import PARTITIONS
from confluent_kafka import Consumer, Producer, TopicPartition
from measure import Failed

TICK = 0.002
TIMEOUT_SECONDS = 60.0
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
USERS = 10_000
QUEUE = 1_000_000
"""How many records may wait until the broker takes them: their time goes on."""


class Load:
    """Sends records of 190 bytes and receives those of an `amount` of 20 and more, four in five.

    A record is stamped when it is handed to the producer, and its time ends when this process has
    it again.
    """

    def __init__(self, brokers: str, source: str, target: str) -> None:
        self._source = source
        self._producer = Producer(
            {
                "bootstrap.servers": brokers,
                "linger.ms": 1,
                "log_level": 0,
                "queue.buffering.max.messages": QUEUE,
            }
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": "bench",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(target, each, 0) for each in range(PARTITIONS)])
        self._next = 0
        self._due = 0
        self._arrived = 0
        self._times = array("d")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._receiver = threading.Thread(target=self._receive, daemon=True)

    def __enter__(self) -> Self:
        self._receiver.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._receiver.join()
        self._consumer.close()

    def send(self, rate: float, seconds: float) -> None:
        """Sends so many records a second for so long."""
        began, sent, total = time.monotonic(), 0, round(rate * seconds)
        while sent < total:
            due = min(total, int((time.monotonic() - began) * rate) + 1)
            if due > sent:
                self._produce(due - sent)
                sent = due
            time.sleep(max(TICK, began + sent / rate - time.monotonic()))
        time.sleep(max(0.0, began + seconds - time.monotonic()))

    def send_one(self) -> None:
        """Sends one record that comes out again."""
        while self._next % 100 < 20:
            self._next += 1
        self._produce(1)

    def wait(self, seconds: float = TIMEOUT_SECONDS) -> None:
        """Returns when all that was sent has come out. Raises Failed."""
        until = time.monotonic() + seconds
        while self._arrived < self._due:
            if time.monotonic() > until:
                raise Failed(f"{self._arrived:,} of {self._due:,} records have come out")
            time.sleep(0.01)

    def take(self) -> Times:
        """The times of the records that have come out since the last call."""
        with self._lock:
            times, self._times = self._times, array("d")
        return Times(times)

    def _produce(self, count: int) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for number in range(self._next, self._next + count):
            amount = number % 100
            self._due += amount >= 20
            self._producer.produce(
                self._source,
                b'{"id":%d,"sent":%d,"user":"user-%d","amount":%d,"at":"%s","agent":"%s"}'
                % (number, time.time_ns() // 1000, number * 7919 % USERS, amount, at.encode(),
                   AGENT.encode()),
                partition=number % PARTITIONS,
            )  # fmt: skip
        self._next += count
        self._producer.poll(0)

    def _receive(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            value = message.value()
            start = value.index(b'"sent":') + 7
            sent = int(value[start : value.index(b",", start)])
            with self._lock:
                self._times.append(time.time_ns() / 1e6 - sent / 1e3)
                self._arrived += 1


class Times:
    """Latencies in milliseconds."""

    def __init__(self, times: array[float]) -> None:
        self.count = len(times)
        self.p50, self.p99, self.worst = (
            map(float, np.percentile(times, [50, 99, 100])) if times else [float("nan")] * 3
        )
