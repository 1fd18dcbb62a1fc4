"""Sending of messages, with subscribers and synchronization."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.zeromq.client import MonitoredSocket
from penstock.connectors.zeromq.config import ZeromqSinkConfig
from penstock.connectors.zeromq.sync import CONNECT, CONTROL_MESSAGES, END, SyncServer
from penstock.sdk import Failure, Receipt, Rejected, Transient, Writer
from penstock.sdk.messages.packing import pack_messages

_SUBSCRIBED = 1
_POLL_MILLISECONDS = 20
_CONNECT_INTERVAL = 1.0
_ANSWER_LINGER = 1.0


class ZeromqWriter(Writer):
    """Sends the rows of a partition with `connect`; passes them to the driver with `listen`."""

    def __init__(self, config: ZeromqSinkConfig, partition: int) -> None:
        self._config, self._partition = config, partition
        self._sender: Sender | None = None
        self._packed: list[list[bytes]] = []
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        messages, failures = self._messages(rows, payloads.to_pylist())
        self._count += len(messages)
        if self._config.listen is not None:
            self._packed += messages
        elif messages:
            self._sender = self._sender or Sender(self._config)
            self._sender.send(messages)
        return failures

    def commit(self) -> Receipt:
        if self._config.listen is not None:
            return pack_messages(self._partition, self._packed)
        if self._sender is not None:
            sender, self._sender = self._sender, None
            sender.flush_and_close()
        return {"messages": self._count}

    def abort(self) -> None:
        if self._sender is not None:
            sender, self._sender = self._sender, None
            sender.close()

    def _messages(
        self, rows: pa.RecordBatch, payloads: list[bytes]
    ) -> tuple[list[list[bytes]], list[Failure]]:
        if self._config.topic is None:
            return self._messages_without_topic(payloads)
        messages, failures = [], []
        topics = self._config.topic.render(rows)
        for index, (topic, payload) in enumerate(zip(topics, payloads, strict=True)):
            if topic is None:
                failures.append(Failure(index, Rejected("the topic is null", code="invalid-topic")))
            else:
                messages.append([topic.encode(), payload])
        return messages, failures

    def _messages_without_topic(
        self, payloads: list[bytes]
    ) -> tuple[list[list[bytes]], list[Failure]]:
        reserved = CONTROL_MESSAGES if self._config.sync is not None else ()
        failures = [
            Failure(
                index,
                Rejected(
                    f'"{payload.decode()}" is a control message of sync', code="control-message"
                ),
            )
            for index, payload in enumerate(payloads)
            if payload in reserved
        ]
        return [[payload] for payload in payloads if payload not in reserved], failures


class Sender:
    """Sends to all subscribers (PUB), or to one of the pulling peers (PUSH).

    With `sync`, `state` is the directory that keeps the synchronized subscribers.
    """

    def __init__(self, config: ZeromqSinkConfig, state: Path | None = None) -> None:
        self._config = config
        self._publishes = config.socket == "pub"
        options = {"xpub_verboser": True, "xpub_nodrop": True} if self._publishes else {}
        self._monitored_socket = MonitoredSocket(
            config, "XPUB" if self._publishes else "PUSH", **options
        )
        self._monitored_socket.socket.sndtimeo = round(config.write_timeout * 1000)
        self._subscriptions = 0
        self._synchronized = False
        self._sync: SyncServer | None = None
        if config.sync_endpoints:
            try:
                self._sync = SyncServer(config, config.sync_endpoints, state)
            except BaseException:
                self._monitored_socket.close()
                raise

    def await_peers(self) -> None:
        """Returns once the handshake with each peer of `connect` has succeeded."""
        self._monitored_socket.await_peers()

    def send(self, messages: Iterable[list[bytes]]) -> None:
        """Waits for peers and subscribers. Returns once all messages are in the queues."""
        self._monitored_socket.await_peers()
        if self._sync is not None:
            self._await_synchronization(self._sync)
        elif self._publishes:
            self._await_subscribers()
        for parts in messages:
            self._send(parts)

    def send_end(self) -> None:
        """Sends `end` to the subscribers of `sync`."""
        if self._sync is not None:
            self._sync.answer()
            self._send([END])
            self._sync.reset()

    def flush_and_close(self) -> None:
        """Passes all queued messages to the operating system and closes the socket."""
        flushed = self._monitored_socket.close(self._config.write_timeout)
        if self._sync is not None:
            self._sync.close(_ANSWER_LINGER)
        if not flushed:
            raise Transient(
                "could not flush the queued messages within write_timeout",
                code="timeout",
                hint="Check that the peers receive, or increase write_timeout.",
            )

    def close(self) -> None:
        """Closes the socket and discards queued messages."""
        self._monitored_socket.close()
        if self._sync is not None:
            self._sync.close()

    def _send(self, parts: list[bytes]) -> None:
        import zmq

        try:
            self._monitored_socket.socket.send_multipart(parts)
        except zmq.Again:
            raise Transient(
                "could not send: no peer accepted the message within write_timeout",
                code="timeout",
                hint="Check that the peers receive, or increase write_timeout.",
            ) from None

    def _await_subscribers(self) -> None:
        deadline = time.monotonic() + self._config.timeout
        while self._count_subscriptions() < self._config.min_subscribers:
            self._monitored_socket.socket.poll(_POLL_MILLISECONDS)
            if time.monotonic() > deadline:
                raise self._too_few_subscribers(
                    self._config.min_subscribers, "Start the subscribers, or lower min_subscribers."
                )

    def _await_synchronization(self, sync: SyncServer) -> None:
        """Returns once each endpoint of `sync` had a request and has a subscription.

        `connect` is the first message of each subscriber, also of a subscriber that replaces
        another subscriber.
        """
        sync.answer()
        subscriptions, expected = self._count_subscriptions(), len(self._config.sync_endpoints)
        if self._synchronized:
            return
        deadline, due = time.monotonic() + self._config.timeout, 0.0
        while sync.missing or subscriptions < expected:
            if time.monotonic() >= due:
                self._send([CONNECT])
                due = time.monotonic() + _CONNECT_INTERVAL
            sync.answer(_POLL_MILLISECONDS)
            subscriptions = self._count_subscriptions()
            if time.monotonic() > deadline:
                raise self._not_synchronized(sync.missing)
        self._send([CONNECT])
        self._synchronized = True

    def _count_subscriptions(self) -> int:
        """Processes subscription messages. Returns the number of subscriptions."""
        while self._monitored_socket.socket.poll(0):
            change = self._monitored_socket.socket.recv()
            self._subscriptions += 1 if change[0] == _SUBSCRIBED else -1
        return self._subscriptions

    def _not_synchronized(self, missing: list[str]) -> Transient:
        if not missing:
            return self._too_few_subscribers(
                len(self._config.sync_endpoints),
                "Start the subscribers, or remove endpoints from sync.",
            )
        return Transient(
            f"no subscriber sent a request to {', '.join(missing)} within timeout",
            code="no-subscribers",
            hint="Start or restart the subscribers: each sends only one request, at the first "
            "connect message.",
        )

    def _too_few_subscribers(self, expected: int, hint: str) -> Transient:
        return Transient(
            f"expected {expected} subscribers, found {self._subscriptions}",
            code="no-subscribers",
            hint=hint,
        )
