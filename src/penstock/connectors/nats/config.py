"""Options of the NATS source and sink."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from penstock.connectors.nats.subjects import (
    as_list,
    check_filters,
    check_name,
    subject_error,
)
from penstock.sdk import (
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
from penstock.sdk.network.tls import TlsOption, resolve_tls

Name = Annotated[str, AfterValidator(check_name)]
Filters = Annotated[str | list[str], AfterValidator(check_filters)]
_REPLAYED_ONLY = ("start", "on_data_loss", "consumer")
_QUEUE_SETTINGS = ("ack_wait", "max_deliver", "max_ack_pending")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class NatsAuth(Auth):
    """Credentials: a user name and password, a token, an nkey, or a credentials file."""

    alternatives = (("username", "password"), ("token",), ("nkey",), ("creds",))
    requires = {"jwt": "nkey"}

    username: str | None = None
    """The user name."""
    password: Secret | None = None
    """The password."""
    token: Secret | None = None
    """The token."""
    nkey: Secret | None = None
    """The seed of an nkey (`SU...`), which signs the server's challenge."""
    jwt: Secret | None = None
    """The user JWT. `nkey` is the seed of the user's nkey."""
    creds: UserFile | None = None
    """A credentials file (`.creds`) with a user JWT and the seed of its nkey."""


class ConnectionConfig(Config):
    url: str | list[str]
    """The server, as `nats://host:port`, or several servers of a cluster. `tls://` requires TLS."""
    auth: NatsAuth | None = None
    """The credentials. No authentication by default."""
    tls: TlsOption = None
    """TLS: `true` to require TLS, `false` to forbid it, or certificates and verification. By
    default TLS is used for `tls://`, and for `nats://` where the server requires it."""
    timeout: PositiveDuration = 10.0
    """The timeout of connecting and of a response."""

    @field_validator("url")
    @classmethod
    def _check_urls(cls, url: str | list[str]) -> str | list[str]:
        validate = url_validator("nats", "tls", user="auth.username and auth.password")
        for text in as_list(url):
            validate(text)
        if not url:
            raise ValueError("expected at least one URL")
        return url

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        resolve_tls(self.tls, self._tls_scheme)
        return self

    @property
    def servers(self) -> list[str]:
        """The URLs."""
        return as_list(self.url)

    @property
    def server_names(self) -> str:
        """The servers, for messages."""
        return f"the NATS server {', '.join(urlsplit(url).netloc for url in self.servers)}"

    @property
    def requires_tls(self) -> bool:
        """Whether a connection without TLS is an error."""
        return resolve_tls(self.tls, self._tls_scheme) is not None

    @property
    def connection(self) -> ConnectionConfig:
        """These options without those of a source or sink."""
        names = ConnectionConfig.model_fields
        return ConnectionConfig.model_construct(**{name: getattr(self, name) for name in names})

    @property
    def _tls_scheme(self) -> bool | None:
        """Whether the scheme requires TLS; None where the server decides."""
        return any(url.startswith("tls:") for url in self.servers) or None


class NatsStartAt(StartAt):
    """A start position: a time or a sequence number."""

    offset: int | None = Field(default=None, ge=1)
    """Start at the message with this sequence number, or at the next one."""


class ConsumerSettings(Config):
    """Settings of a durable consumer, which apply when it is created.

    Omitted settings have the defaults of JetStream.
    """

    ack_wait: PositiveDuration | None = None
    """Redeliver a message that is not acknowledged after this time, as while the journal is full.
    30 seconds by default."""
    max_deliver: int | None = Field(default=None, ge=1)
    """The maximum number of deliveries of a message. A message without an acknowledgement after
    the last delivery is lost to the consumer. Unlimited by default."""
    max_ack_pending: int | None = Field(default=None, ge=1)
    """The maximum number of unacknowledged messages of the consumer."""
    inactive_threshold: PositiveDuration | None = None
    """Delete the consumer, with its progress, after this time of inactivity. Never by default."""
    num_replicas: int | None = Field(default=None, ge=1)
    """The number of replicas of the consumer. That of the stream by default."""
    description: str | None = None
    """A description for tools."""

    def non_default(self) -> dict[str, Any]:
        """Returns the settings that are not None, by the client's parameter names."""
        return {name: value for name, value in self if value is not None}


class NatsSourceConfig(ConnectionConfig, ReceivingConfig):
    subject: Filters | None = None
    """The subjects. `*` matches one token, `>` all further tokens. With `stream`, a filter of its
    subjects; all subjects by default."""
    group: Name | None = None
    """The queue group, whose members share the messages. With `stream`, the durable consumer that
    its members share; it is created if it does not exist."""
    stream: Name | None = None
    """The JetStream stream to read."""
    bucket: Name | None = None
    """The key-value bucket whose changes are read."""
    keys: Filters | None = None
    """The keys of the bucket, with the wildcards `*` and `>`. All keys by default."""
    start: Literal["earliest", "latest"] | NatsStartAt = "earliest"
    """The start position of the first run in a stream or bucket: the `earliest` message, the
    `latest` (only new messages), or a map with `timestamp` or `offset` (a sequence number). Later
    runs resume."""
    consumer: Name | None = None
    """A durable consumer that reports the progress in the stream. It is created if it does not
    exist."""
    consumer_settings: ConsumerSettings = ConsumerSettings()
    """Settings for creating the durable consumer of `consumer`, or of `group` with `stream`. An
    existing consumer is not changed."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """The action when messages of the stream were deleted before they were read. `continue` records
    the gap as a dead letter."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.stream is not None and self.bucket is not None:
            raise ValueError("expected either stream or bucket")
        if self.bucket is None and self.keys is not None:
            raise ValueError("keys requires bucket")
        if self.bucket is not None and self.subject is not None:
            raise ValueError("bucket excludes subject; use keys")
        if self.stream is None and self.bucket is None and self.subject is None:
            raise ValueError("expected subject, stream or bucket")
        if self.group is not None and self.bucket is not None:
            raise ValueError("bucket excludes group")
        if self.group is not None and self.stream is not None and len(self.subjects) > 1:
            raise ValueError("group with stream requires a single subject")
        for option in _REPLAYED_ONLY if self.receives else ("journal",):
            if option in self.model_fields_set:
                sources = (
                    "bucket, or stream without group" if option in _REPLAYED_ONLY
                    else "subject without stream, or stream with group"
                )  # fmt: skip
                raise ValueError(f"{option} requires {sources}")
        return self

    @model_validator(mode="after")
    def _check_consumer_settings(self) -> Self:
        names = self.consumer_settings.model_fields_set
        queue = self.stream is not None and self.group is not None
        if names and not queue and self.consumer is None:
            raise ValueError("consumer_settings requires consumer, or stream and group")
        for name in _QUEUE_SETTINGS:
            if name in names and not queue:
                raise ValueError(f"consumer_settings.{name} requires stream and group")
        return self

    @property
    def receives(self) -> bool:
        """Whether messages cannot be read again, and are kept in a journal."""
        return self.bucket is None and (self.stream is None or self.group is not None)

    @property
    def subjects(self) -> list[str]:
        """The subject filters."""
        return as_list(self.subject)

    @property
    def key_filters(self) -> list[str]:
        """The key filters."""
        return as_list(self.keys)


class NatsSinkConfig(ConnectionConfig):
    subject: Template | None = None
    """The subject, a template such as `orders.{country}`."""
    stream: Name | None = None
    """The JetStream stream that must acknowledge the messages."""
    bucket: Name | None = None
    """The key-value bucket to write to, instead of publishing to a subject."""
    key: KeyTemplate | None = None
    """The key in the bucket, a template such as `user.{id}`. The primary key, joined with dots, by
    default."""
    headers: dict[str, Template] = {}
    """The headers of messages, templates."""
    message_id: Template | None = None
    """The message ID, a template. A stream drops a message whose ID it has received within its
    duplicate window. By default the ID is derived from the batch and the row, so that a repeated
    batch is dropped."""

    @field_validator("subject")
    @classmethod
    def _check_subject(cls, subject: Template | None) -> Template | None:
        constant = None if subject is None else subject.constant
        if constant is not None and (error := subject_error(constant)) is not None:
            raise ValueError(error)
        return subject

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, Template]) -> dict[str, Template]:
        for name in headers:
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f'"{name}" is not a valid header name')
        return headers

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if (self.subject is None) == (self.bucket is None):
            raise ValueError("expected either subject or bucket")
        if self.bucket is not None and self.stream is not None:
            raise ValueError("bucket excludes stream")
        if self.key is not None and self.bucket is None:
            raise ValueError("key requires bucket")
        if self.message_id is not None and self.acknowledging_stream is None:
            raise ValueError("message_id requires stream or bucket")
        return self

    @property
    def acknowledging_stream(self) -> str | None:
        """The stream that acknowledges messages; None for a plain subject."""
        return self.stream if self.bucket is None else f"KV_{self.bucket}"
