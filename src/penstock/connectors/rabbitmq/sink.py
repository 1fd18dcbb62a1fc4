"""RabbitMQ sink."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.connectors.rabbitmq.config import RabbitmqSinkConfig
from penstock.connectors.rabbitmq.writer import Publisher, RabbitmqWriter
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer
from penstock.sdk.columns.template import check_templates


class RabbitmqSink(Sink[RabbitmqSinkConfig]):
    """Publishes messages to exchanges of a RabbitMQ broker, or directly to a queue or stream.

    Messages that are not routed to a queue (`mandatory`) and messages that the broker rejects
    become dead letters.

    ```yaml
    type: rabbitmq
    from: orders
    url: amqps://broker.example.com
    exchange: shop
    routing_key: order.{country}
    headers: {source: penstock, customer: "{customer}"}
    create: {type: topic}
    ```
    """

    acknowledges = "the broker has confirmed each message"
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "rabbitmq"
    client_modules = ("aio_pika",)

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        raise_all(check_templates(self.config.templates(), columns))

    def check(self) -> None:
        Publisher(self.config, create=False).close()

    def open(self) -> Publisher:
        return Publisher(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return RabbitmqWriter(client, self.config)
