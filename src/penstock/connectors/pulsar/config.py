"""Options of the Pulsar source and sink."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.sdk import (
    ByteSize,
    Config,
    PositiveDuration,
    ReceivingConfig,
    Secret,
    StartAt,
    UserFile,
)
from penstock.sdk.columns.template import KeyTemplate, Template
from penstock.sdk.network.address import url_validator
from penstock.sdk.network.auth import Auth
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls

_TLS_SCHEME = "pulsar+ssl"
_PORTS = {"pulsar": 6650, _TLS_SCHEME: 6651}
_NAMESPACE = re.compile(r"[-=:.\w]+/[-=:.\w]+")
_READER_ONLY = ("on_data_loss",)
_CONSUMER_ONLY = ("journal", "consumer")


class OAuth2(Auth):
    """Client credentials of an OAuth 2.0 issuer."""

    alternatives = (("key_file",), ("client_id", "client_secret"))

    issuer_url: str
    """The URL of the issuer."""
    key_file: UserFile | None = None
    """A JSON file with `client_id` and `client_secret`."""
    client_id: str | None = None
    """The client ID."""
    client_secret: Secret | None = None
    """The client secret."""
    audience: str | None = None
    """The audience of the tokens."""
    scope: str | None = None
    """The scope of the tokens."""


class PulsarAuth(Auth):
    """Credentials of a Pulsar client. Use `tls.certificate` for TLS authentication."""

    alternatives = (("token",), ("username", "password"), ("oauth2",))

    token: Secret | None = None
    """A JSON Web Token."""
    username: str | None = None
    """The user name of basic authentication."""
    password: Secret | None = None
    """The password of basic authentication."""
    oauth2: OAuth2 | None = None
    """OAuth 2.0 client credentials."""


class PulsarAdmin(Config):
    """The admin API of the cluster, which lists topics for `penstock discover` and editors."""

    uses_outer_auth = True

    url: str
    """The URL: `http://HOST:8080`, or `https://HOST:8443`."""
    namespaces: list[str] = []
    """The namespaces whose topics are listed, as TENANT/NAMESPACE. By default all of them, which
    requires a superuser."""

    _check_url = field_validator("url")(url_validator("http", "https", user="auth"))

    @field_validator("namespaces")
    @classmethod
    def _check_namespaces(cls, namespaces: list[str]) -> list[str]:
        for name in namespaces:
            if not _NAMESPACE.fullmatch(name):
                raise ValueError(f'expected TENANT/NAMESPACE, not "{name}"')
        return namespaces


class ConnectionConfig(Config):
    url: str | list[str]
    """The broker, or several: `pulsar://host:port`, or `pulsar+ssl://host:port` with TLS."""
    auth: PulsarAuth | None = None
    """The credentials: a token, a user name and password, or OAuth 2.0."""
    tls: TlsOption = None
    """TLS settings: the CA certificate and the client certificate. By default TLS is used with
    `pulsar+ssl://`."""
    listener_name: str | None = None
    """The advertised listener of the brokers to connect to."""
    timeout: PositiveDuration = 10.0
    """The longest time to wait for a connection or a response of the broker."""
    admin: PulsarAdmin | None = None
    """The admin API, for the discovery of topics. Runs do not use it."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | list[str]) -> str | list[str]:
        urls = [url] if isinstance(url, str) else url
        parts = [urlsplit(text) for text in urls]
        if not parts or any(part.scheme not in _PORTS or not part.hostname for part in parts):
            raise ValueError("expected pulsar://HOST:PORT or pulsar+ssl://HOST:PORT")
        if len({part.scheme for part in parts}) > 1:
            raise ValueError("expected URLs with the same scheme")
        if any(part.username is not None for part in parts):
            raise ValueError("expected a URL without a user; set auth")
        for part in parts:
            part.port  # noqa: B018  raises ValueError
        return url

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        tls = self.resolved_tls
        if tls is not None and tls.key_password is not None:
            raise ValueError("tls.key_password is not supported by the Pulsar client")
        return self

    @property
    def urls(self) -> list[str]:
        """The URLs of all brokers."""
        return [self.url] if isinstance(self.url, str) else self.url

    @property
    def service_url(self) -> str:
        """The brokers as one URL, as the client library expects."""
        scheme = urlsplit(self.urls[0]).scheme
        return f"{scheme}://{','.join(urlsplit(url).netloc for url in self.urls)}"

    @property
    def resolved_tls(self) -> Tls | None:
        """The TLS settings of the connection; None without TLS."""
        return resolve_tls(self.tls, urlsplit(self.urls[0]).scheme == _TLS_SCHEME)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The host and the port of each broker."""
        parts = [urlsplit(url) for url in self.urls]
        return [(part.hostname or "", part.port or _PORTS[part.scheme]) for part in parts]

    @property
    def broker(self) -> str:
        """The brokers, for messages."""
        return f"the Pulsar broker {','.join(urlsplit(url).netloc for url in self.urls)}"


class PulsarStartAt(StartAt):
    """A start position in topics: a publish time, or message IDs."""

    offset: dict[str, str] | None = None
    """The message ID (`LEDGER:ENTRY` or `LEDGER:ENTRY:BATCH`) of the first message of each
    partition, by the full name of the partition. Other partitions start at the earliest
    message."""

    @field_validator("offset")
    @classmethod
    def _check_ids(cls, offset: dict[str, str] | None) -> dict[str, str] | None:
        for text in (offset or {}).values():
            numbers = text.split(":")
            if len(numbers) not in (2, 3) or not all(
                number.removeprefix("-").isdecimal() for number in numbers
            ):
                raise ValueError("expected message IDs of the form LEDGER:ENTRY:BATCH")
        return offset


class PulsarSourceConfig(ConnectionConfig, ReceivingConfig):
    topic: str | list[str]
    """The topic, or several: `orders`, or `persistent://TENANT/NAMESPACE/orders`."""
    subscription: str | None = None
    """A durable subscription, which is created if it does not exist. Its backlog shows the lag of
    the pipeline, and Pulsar retains the messages until they are written. Without a subscription
    the retention policy of the namespace applies."""
    subscription_type: Literal["exclusive", "shared", "failover", "key_shared"] | None = None
    """Consume messages of the subscription, together with its other consumers, instead of reading
    them by message ID."""
    start: Literal["earliest", "latest"] | PulsarStartAt = "earliest"
    """The start position of the first run and of a new subscription: `earliest`, `latest`,
    `{timestamp: TIME}`, or `{offset: {PARTITION: MESSAGE_ID}}`. Later runs resume."""
    consumer: str | None = None
    """The name of the consumer."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """The action when messages were deleted before they were read. `continue` records the gap as a
    dead letter."""

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if not self.topics:
            raise ValueError("at least one topic is required")
        if self.subscription == "":
            raise ValueError("the name of the subscription is empty")
        if self.consumes and self.subscription is None:
            raise ValueError("subscription_type requires subscription")
        if self.consumes and isinstance(self.start, PulsarStartAt):
            raise ValueError("subscription_type requires start: earliest or latest")
        for option in _READER_ONLY if self.consumes else _CONSUMER_ONLY:
            if option in self.model_fields_set:
                mode = "is not supported with" if self.consumes else "requires"
                raise ValueError(f"{option} {mode} subscription_type")
        return self

    @property
    def consumes(self) -> bool:
        """Whether messages are consumed from a subscription and journaled."""
        return self.subscription_type is not None

    @property
    def topics(self) -> list[str]:
        """All topics."""
        return [self.topic] if isinstance(self.topic, str) else self.topic


class Batching(Config):
    """Batching of messages in the producer."""

    max_records: int = Field(default=1000, ge=2)
    """The largest number of messages of a batch."""
    max_size: ByteSize = Field(default=128 << 10, ge=1)
    """The largest number of bytes of a batch."""
    by_key: bool = False
    """Whether a batch contains only messages with the same key, as `key_shared` subscriptions
    require."""


class PulsarSinkConfig(ConnectionConfig):
    topic: Template
    """The topic, a template: `orders-{country}`."""
    key: KeyTemplate | None = None
    """The key, a template: `"{user}"`. It selects the partition."""
    ordering_key: KeyTemplate | None = None
    """The ordering key, a template. It selects the consumer of `key_shared` subscriptions instead
    of the key."""
    headers: dict[str, Template] = {}
    """The headers (Pulsar: properties), templates."""
    event_time_column: str | None = None
    """The column with the event time."""
    delay: PositiveDuration | None = None
    """The delay of delivery to shared subscriptions."""
    batching: Literal[False] | Batching = Batching()
    """Batching in the producer; `false` sends each message by itself."""
    chunking: bool = False
    """Whether messages larger than the limit of the broker are sent in chunks. Requires
    `batching: false`."""
    compression: Literal["none", "lz4", "zlib", "zstd", "snappy"] = "none"
    """The compression of messages."""

    @model_validator(mode="after")
    def _check_chunking(self) -> Self:
        if self.chunking and self.batching is not False:
            raise ValueError("chunking requires batching: false")
        return self

    def templates(self) -> Iterator[tuple[tuple[str, ...], Template]]:
        """Yields each option that is a template, with its value."""
        for name in ("topic", "key", "ordering_key"):
            if (template := getattr(self, name)) is not None:
                yield (name,), template
        for name, template in self.headers.items():
            yield ("headers", name), template
