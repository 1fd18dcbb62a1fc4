"""Options of the RabbitMQ sources and sink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from penstock.sdk import (
    ByteSize,
    Config,
    Duration,
    PositiveDuration,
    ReceivingConfig,
    Secret,
    StartAt,
)
from penstock.sdk.columns.template import Template
from penstock.sdk.network.address import url_validator
from penstock.sdk.network.auth import PasswordAuth
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls

PORTS = {"amqp": 5672, "amqps": 5671}
_GUEST = PasswordAuth(username="guest", password=Secret("guest"))


def _check_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.path.strip("/") or parts.query:
        raise ValueError(
            "expected a URL without path and parameters; set the virtual host as virtual_host"
        )
    return url


class ConnectionConfig(Config):
    url: Annotated[
        str,
        AfterValidator(url_validator(*PORTS, user="the option auth")),
        AfterValidator(_check_path),
    ]
    """The broker: `amqp://host:port`, or `amqps://host:port` with TLS."""
    auth: PasswordAuth = _GUEST
    """The user name and password. By default `guest` and `guest`."""
    virtual_host: str = "/"
    """The virtual host."""
    tls: TlsOption = None
    """TLS settings: the CA certificate and the client certificate. By default TLS is used with
    `amqps://`."""
    keep_alive: Duration = Field(default=60.0, ge=1, le=65_535)
    """The keep-alive interval (RabbitMQ: heartbeat). After two missing heartbeats the connection
    is closed and opened again."""
    timeout: PositiveDuration = 30.0
    """The longest time to wait for a response of the broker."""

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        self.resolved_tls  # noqa: B018  raises ValueError
        return self

    @property
    def resolved_tls(self) -> Tls | None:
        """The TLS settings of the connection; None without TLS."""
        return resolve_tls(self.tls, urlsplit(self.url).scheme == "amqps")

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The host and the port of the broker."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or PORTS[parts.scheme]

    @property
    def address(self) -> str:
        """The host and the port as text."""
        host, port = self.host_and_port
        return f"{host}:{port}"


class ExchangeConfig(Config):
    """Properties of an exchange that is created if it does not exist."""

    type: str = "topic"
    """The type: direct, fanout, topic, headers, or a type of a plugin."""
    durable: bool = True
    """Whether the exchange survives a restart of the broker."""
    auto_delete: bool = False
    """Whether the exchange is deleted with the last queue that is bound to it."""
    arguments: dict[str, Any] = {}
    """Further arguments, such as `alternate-exchange`."""


class QueueConfig(Config):
    """Properties of a queue that is created if it does not exist."""

    type: Literal["classic", "quorum"] = "classic"
    """The type: `classic` is stored by one broker of a cluster, `quorum` is replicated."""
    durable: bool = True
    """Whether the queue survives a restart of the broker."""
    auto_delete: bool = False
    """Whether the queue is deleted with its last consumer."""
    arguments: dict[str, Any] = {}
    """Further arguments, such as `x-max-length` and `x-dead-letter-exchange`."""


class Binding(Config):
    """A binding of the queue to an exchange."""

    exchange: str = Field(min_length=1)
    """The exchange."""
    routing_key: str | list[str] = ""
    """The routing key, or several. In bindings of a topic exchange `*` matches one word and `#`
    any number of words."""
    headers: dict[str, str | int | bool] = {}
    """The headers to match, for an exchange of type headers."""
    match: Literal["all", "any"] = "all"
    """Whether all headers must match, or any."""
    create: ExchangeConfig | bool = False
    """Create the exchange if it does not exist."""


class RabbitmqSourceConfig(ConnectionConfig, ReceivingConfig):
    queue: str = Field(min_length=1)
    """The queue, classic or quorum."""
    max_in_flight: int = Field(default=500, ge=1, le=65_535)
    """The largest number of unacknowledged messages, which are held in memory (RabbitMQ: prefetch
    count)."""
    create: QueueConfig | bool = False
    """Create the queue if it does not exist."""
    bind: list[Binding] = []
    """Bindings of the queue to exchanges. They are created and never removed."""
    priority: int | None = None
    """The consumer priority. Messages go to the consumers with the highest priority."""
    exclusive: bool = False
    """Whether the consumer is the only one of the queue."""


class RabbitmqStartAt(StartAt):
    """A start position in a stream.

    A timestamp starts at the chunk of messages that contains it, or at the next chunk.
    """

    offset: int | None = Field(default=None, ge=0)
    """Start at the message with this offset."""


class RabbitmqStreamConfig(ConnectionConfig):
    stream: str = Field(min_length=1)
    """The stream (a queue of type stream)."""
    start: Literal["earliest", "latest"] | RabbitmqStartAt = "earliest"
    """The start position of the first run: `earliest` (RabbitMQ: first), `latest` (RabbitMQ:
    next), `{timestamp: TIME}` or `{offset: OFFSET}`. Later runs resume."""
    max_in_flight: int = Field(default=1000, ge=1, le=65_535)
    """The largest number of unacknowledged messages, which are held in memory (RabbitMQ: prefetch
    count)."""
    max_records: int | None = Field(default=None, ge=1)
    """The largest number of messages of a batch."""
    max_message_size: ByteSize = Field(default=16 << 20, ge=1)
    """The maximum size of a message. A larger message becomes a dead letter with the head of its
    payload."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """The action when messages were deleted before they were read. `continue` records the gap as
    a dead letter."""


class RabbitmqSinkConfig(ConnectionConfig):
    exchange: Template = Template("")
    """The exchange, a template. By default the default exchange, whose routing keys are the names
    of queues."""
    routing_key: Template = Template("")
    """The routing key, a template: `order.{country}`."""
    headers: dict[str, Template] = {}
    """The headers, templates. A header whose column is null is omitted."""
    message_id: Template | None = None
    """The message ID, a template, with which a consumer detects duplicates."""
    content_type: str | None = None
    """The content type of the payload: `application/json`."""
    type: Template | None = None
    """The message type, a template."""
    priority: int | None = Field(default=None, ge=0, le=255)
    """The priority, for priority queues."""
    ttl: Duration | None = Field(default=None, ge=0)
    """The time after which a queue drops the message (RabbitMQ: expiration)."""
    persistent: bool = True
    """Whether durable queues store the message on disk."""
    mandatory: bool = True
    """Whether a message that is not routed to a queue becomes a dead letter. Otherwise the message
    is lost."""
    create: ExchangeConfig | bool = False
    """Create the exchange if it does not exist."""
    max_in_flight: int = Field(default=256, ge=1)
    """The largest number of messages that are sent before the first is confirmed."""

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if not self.exchange and not self.routing_key:
            raise ValueError("exchange is required, or routing_key with the name of a queue")
        if self.create and not self.exchange.constant:
            raise ValueError("create requires exchange without columns")
        return self

    def templates(self) -> Iterator[tuple[tuple[str, ...], Template]]:
        """Yields each option that is a template, with its value."""
        for name in ("exchange", "routing_key", "message_id", "type"):
            if (template := getattr(self, name)) is not None:
                yield (name,), template
        for name, template in self.headers.items():
            yield ("headers", name), template
