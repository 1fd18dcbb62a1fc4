"""Pulsar sink."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.connectors.pulsar.config import PulsarSinkConfig
from penstock.connectors.pulsar.writer import PulsarWriter, Sender
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer
from penstock.sdk.columns.checks import check_column
from penstock.sdk.columns.template import check_templates


class PulsarSink(Sink[PulsarSinkConfig]):
    """Sends messages to topics of Apache Pulsar.

    A message that the broker rejects because of its size or the name of its topic becomes a dead
    letter.

    ```yaml
    type: pulsar
    from: orders
    url: pulsar://localhost:6650
    topic: persistent://public/default/orders
    key: "{customer}"
    headers: {country: "{country}"}
    ```
    """

    acknowledges = "the broker has confirmed each message"
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "pulsar"
    client_modules = ("pulsar",)

    def topic(self) -> str | None:
        return self.config.topic.constant

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        errors = check_templates(self.config.templates(), columns)
        if self.config.event_time_column is not None:
            errors += check_column(
                self.config.event_time_column, columns, "event_time_column",
                accepts=pa.types.is_timestamp, expected="expected a TIMESTAMP",
            )  # fmt: skip
        raise_all(errors)

    def check(self) -> None:
        sender = self.open()
        try:
            sender.check(self.config.topic.constant)
        finally:
            sender.close()

    def open(self) -> Sender:
        return Sender(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return PulsarWriter(client, self.config)
