"""The sink of ZeroMQ sockets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.zeromq.endpoint import Endpoint, EndpointConfig
from penstock.connectors.zeromq.sending import Outlet
from penstock.connectors.zeromq.start import WORDS
from penstock.core.errors import raise_all
from penstock.sdk import (
    BatchId,
    Capability,
    Context,
    Duration,
    Failure,
    Receipt,
    Rejected,
    Sink,
    Writer,
)
from penstock.sdk.kit.handing import handed, taken
from penstock.sdk.kit.template import Template


class ZeromqSinkConfig(EndpointConfig):
    socket: Literal["pub", "push"] = "pub"
    """Our end: `pub` where the others subscribe (SUB), `push` where they pull (PULL)."""
    topic: Template | None = None
    """The first part of messages; `{column}` in it is replaced by the row's value. None if left
    out."""
    subscribers: int = Field(default=1, ge=0)
    """How many subscriptions a batch waits for (`pub`); a program that subscribes to two topics
    counts twice."""
    patience: Duration = 60.0
    """How long the others may take nothing, while as much waits for them as `high_water_mark`
    says."""
    sync: Endpoint | list[Endpoint] | None = None
    """Start in step with programs of stream_data_processor: an endpoint for each of them (REP),
    at which it asks when it is called. For `socket: pub` with `bind`, in place of `subscribers`."""

    @model_validator(mode="after")
    def _in_step(self) -> Self:
        if self.sync is None:
            return self
        if self.socket != "pub" or self.bind is None:
            raise ValueError("sync is for who publishes and binds: give socket: pub and bind")
        if self.topic is not None:
            raise ValueError("with sync messages have one part: leave out topic")
        if "subscribers" in self.model_fields_set:
            raise ValueError("sync names an endpoint for each subscriber: leave out subscribers")
        if not self.endpoints or len({self.bind, *self.endpoints}) <= len(self.endpoints):
            raise ValueError("sync needs endpoints that differ, another one for each subscriber")
        return self

    @property
    def endpoints(self) -> list[str]:
        """Those of `sync`."""
        return [self.sync] if isinstance(self.sync, str) else self.sync or []


class ZeromqSink(Sink[ZeromqSinkConfig]):
    """Sends rows through a ZeroMQ socket: PUB or PUSH.

    A batch waits until its subscribers are there, and slow ones are waited for. Nobody tells
    whether a message arrived.

    Who connects does so for each batch, and is done when the system has all of it. Who binds keeps
    the socket: the driver sends, so a batch has to fit into its memory.

    With `sync` it starts as programs of stream_data_processor do. The first batch waits for up to
    `timeout` until each of the endpoints was asked, and calls (`connect`) every second; a run that
    ends by itself says `end`, one that is stopped does not. Such a subscriber asks only once, so
    it is kept who has asked: after a stop or a crash the next run waits until as many subscribe
    again, and calls once before it sends. Subscribers that were started meanwhile begin there; so
    do all after `end` or `--fresh`, when each has to ask again. A row that is just `connect` or
    `end` becomes a dead letter.

    ```yaml
    type: zeromq
    from: late
    bind: tcp://0.0.0.0:5555
    topic: flights.{carrier}
    subscribers: 2
    ```
    """

    acknowledges = None
    variants = ("connect: tcp://collector.example.com:5555", "bind: tcp://0.0.0.0:5555")
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "zeromq"
    clients = ("zmq",)
    _outlet: Outlet | None = None

    def __init__(self, config: ZeromqSinkConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.bind is not None:
            self.parallelism = "the driver"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_outlet": None}

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        if self.config.topic is not None:
            raise_all(self.config.topic.mistakes(columns, "topic"))

    def check(self) -> None:
        """Needs an endpoint to bind, or those that we connect to."""
        if self._outlet is None:
            outlet = Outlet(self.config)
            try:
                outlet.await_others()
            finally:
                outlet.close()

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return ZeromqWriter(self.config, partition)

    def recover(self) -> None:
        if self.config.bind is not None:
            self._bound()

    def finish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if self.config.bind is not None and receipts:
            self._bound().send(taken(receipts))

    def complete(self) -> None:
        try:
            if self._outlet is not None:
                self._outlet.end()
        finally:
            self.close()

    def close(self) -> None:
        if self._outlet is not None:
            outlet, self._outlet = self._outlet, None
            outlet.finish()

    def _bound(self) -> Outlet:
        if self._outlet is None:
            self._outlet = Outlet(self.config, self.context.state)
        return self._outlet


class ZeromqWriter(Writer):
    """Sends rows where we connect, and hands them to the driver where we bind."""

    def __init__(self, config: ZeromqSinkConfig, partition: int) -> None:
        self._config, self._partition = config, partition
        self._outlet: Outlet | None = None
        self._held: list[list[bytes]] = []
        self._count = 0

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> Sequence[Failure]:
        messages, failures = self._messages(rows, payloads.to_pylist())
        self._count += len(messages)
        if self._config.bind is not None:
            self._held += messages
        elif messages:
            self._outlet = self._outlet or Outlet(self._config)
            self._outlet.send(messages)
        return failures

    def commit(self) -> Receipt:
        if self._config.bind is not None:
            return handed(self._partition, self._held)
        if self._outlet is not None:
            outlet, self._outlet = self._outlet, None
            outlet.finish()
        return {"messages": self._count}

    def abort(self) -> None:
        if self._outlet is not None:
            outlet, self._outlet = self._outlet, None
            outlet.close()

    def _messages(
        self, rows: pa.RecordBatch, payloads: list[bytes]
    ) -> tuple[list[list[bytes]], list[Failure]]:
        if self._config.topic is None:
            return self._alone(payloads)
        messages, failures = [], []
        topics = self._config.topic.fill(rows)
        for at, (topic, payload) in enumerate(zip(topics, payloads, strict=True)):
            if topic is None:
                failures.append(Failure(at, Rejected("the topic is null", code="topic")))
            else:
                messages.append([topic.encode(), payload])
        return messages, failures

    def _alone(self, payloads: list[bytes]) -> tuple[list[list[bytes]], list[Failure]]:
        words = WORDS if self._config.sync is not None else ()
        failures = [
            Failure(at, Rejected(f'"{payload.decode()}" is a word of sync', code="sync"))
            for at, payload in enumerate(payloads)
            if payload in words
        ]
        return [[payload] for payload in payloads if payload not in words], failures
