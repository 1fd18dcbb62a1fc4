"""RabbitMQ queues, streams and exchanges over AMQP 0-9-1."""

from penstock.connectors.rabbitmq.sink import RabbitmqSink
from penstock.connectors.rabbitmq.source import RabbitmqSource
from penstock.connectors.rabbitmq.stream import RabbitmqStreamSource

__all__ = ["RabbitmqSink", "RabbitmqSource", "RabbitmqStreamSource"]
