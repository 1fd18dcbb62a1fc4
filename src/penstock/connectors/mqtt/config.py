"""Options of the MQTT source and sink."""

from __future__ import annotations

import re
import ssl
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from penstock.sdk import ByteSize, Config, Duration, PositiveDuration, ReceivingConfig, Secret
from penstock.sdk.columns.template import Template
from penstock.sdk.messages.repeated_keys import RepeatedKeys
from penstock.sdk.network.address import url_validator
from penstock.sdk.network.auth import Auth
from penstock.sdk.network.tls import TlsOption, resolve_tls

CONNECT_SECONDS = 10.0
"""The timeout of connecting and of subscribing."""
MAX_PACKET_SIZE = 0xFFFFFFFF
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_MAX_TEXT_BYTES = 65_535
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
"""Characters with which a broker may close the connection (MQTT 5.0, section 1.5.4)."""


class MqttAuth(Auth):
    """A user name, with a password where the broker requires one."""

    alternatives = (("username",),)
    requires = {"password": "username"}

    username: str | None = None
    """The user name."""
    password: Secret | None = None
    """The password."""


class ConnectionConfig(Config):
    url: Annotated[
        str, AfterValidator(url_validator(*_PORTS, user="auth.username and auth.password"))
    ]
    """The broker, as `mqtt://host:port`, or `mqtts://host:port` for TLS."""
    auth: MqttAuth | None = None
    """The credentials. An anonymous connection by default."""
    tls: TlsOption = None
    """Certificates and verification of an `mqtts` URL. The scheme of the URL sets the default."""
    version: Literal["3.1.1", "5"] = "5"
    """The version of MQTT."""
    keep_alive: Duration = Field(default=60.0, ge=1)
    """The keep-alive interval. The connection is reset after a longer silence."""
    qos: Literal[0, 1, 2] = 1
    """The quality of service: 0 is at most once, 1 at least once, 2 exactly once up to the next
    hop."""

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        resolve_tls(self.tls, self._encrypted)
        return self

    @property
    def host(self) -> str:
        """The broker's host name."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The broker's port."""
        parts = urlsplit(self.url)
        return parts.port or _PORTS[parts.scheme]

    @property
    def v5(self) -> bool:
        """Whether the protocol is MQTT 5."""
        return self.version == "5"

    @property
    def _encrypted(self) -> bool:
        return urlsplit(self.url).scheme == "mqtts"

    def ssl_context(self) -> ssl.SSLContext | None:
        """Returns the SSL context; None without TLS. Raises Permanent for an unusable file."""
        tls = resolve_tls(self.tls, self._encrypted)
        return None if tls is None else tls.context()


class Will(Config):
    """The Last Will: a message that the broker publishes if the connection ends abnormally."""

    topic: str
    """The topic of the message."""
    payload: str = ""
    """The text of the message."""
    qos: int = Field(default=0, ge=0, le=2)
    """The quality of service of the message."""
    retain: bool = False
    """Retain the message for later subscribers."""


class MqttSourceConfig(ConnectionConfig, RepeatedKeys, ReceivingConfig):
    topic: str | list[str]
    """The topic filters to subscribe to. `+` matches one level, `#` all further levels."""
    client_id: str | None = None
    """The client identifier, which names the session at the broker. `penstock-PIPELINE-NODE` by
    default."""
    session_ttl: Duration | None = Field(default=None, ge=0)
    """The time for which the broker keeps the session and its messages after a disconnect (MQTT 5:
    Session Expiry Interval). Unlimited by default."""
    clean_start: bool = False
    """Discard the session at each start (Clean Start)."""
    max_message_size: ByteSize = Field(default=16 << 20, ge=1, le=MAX_PACKET_SIZE)
    """The maximum size of a message, headers included. By default a larger message becomes a dead
    letter. A set value is the Maximum Packet Size of MQTT 5: the broker drops larger messages."""
    retained: bool = True
    """Receive messages that were retained before the subscription."""
    will: Will | None = None
    """The Last Will of the connection."""

    @field_validator("topic")
    @classmethod
    def _check_filters(cls, topic: str | list[str]) -> str | list[str]:
        filters = [topic] if isinstance(topic, str) else topic
        if not filters:
            raise ValueError("expected at least one topic")
        for topic_filter in filters:
            if (error := topic_filter_error(topic_filter)) is not None:
                raise ValueError(f'"{topic_filter}": {error}')
        return topic

    @model_validator(mode="after")
    def _check_version(self) -> Self:
        if self.max_packet_size is not None and not self.v5:
            raise ValueError('max_message_size requires version: "5"')
        return self

    @property
    def max_packet_size(self) -> int | None:
        """The Maximum Packet Size for the broker; None without a limit."""
        return self.max_message_size if "max_message_size" in self.model_fields_set else None

    @property
    def filters(self) -> list[str]:
        """The topic filters."""
        return [self.topic] if isinstance(self.topic, str) else self.topic


class MqttSinkConfig(ConnectionConfig):
    topic: Template
    """The topic, a template such as `rooms/{room}/set`."""
    retain: bool = False
    """Retain the last message of each topic for later subscribers."""
    client_id: str | None = None
    """The prefix of the client identifiers; each process appends a random suffix. `penstock` by
    default."""
    content_type: str | None = None
    """The content type of messages, such as `application/json` (MQTT 5)."""
    headers: dict[str, Template] = {}
    """The headers of messages, templates (MQTT 5: User Properties)."""
    ttl: Duration | None = Field(default=None, ge=1)
    """The time for which the broker keeps a message for disconnected subscribers (MQTT 5: Message
    Expiry Interval). Unlimited by default."""
    max_in_flight: int = Field(default=100, ge=1, le=65_535)
    """The maximum number of unacknowledged messages of a connection."""
    timeout: PositiveDuration = 30.0
    """The timeout of an acknowledgement."""

    @field_validator("topic")
    @classmethod
    def _check_topic(cls, topic: Template) -> Template:
        if topic.constant is not None and (error := topic_error(topic.constant)) is not None:
            raise ValueError(error)
        return topic


def topic_error(topic: str) -> str | None:
    """Returns the error of a topic name (MQTT 5.0, section 4.7); None for a valid name."""
    if not topic or len(topic.encode()) > _MAX_TEXT_BYTES:
        return "expected a topic of 1 to 65,535 bytes"
    if _CONTROL.search(topic):
        return "expected a topic without line breaks and control characters"
    if "+" in topic or "#" in topic:
        return "expected a topic without the wildcards + and #"
    return None


def header_error(name: str, value: str) -> str | None:
    """Returns the error of a header's value (a User Property); None for a valid value."""
    if len(value.encode()) > _MAX_TEXT_BYTES:
        return f'expected a header "{name}" of at most 65,535 bytes'
    if _CONTROL.search(value):
        return f'expected a header "{name}" without line breaks and control characters'
    return None


def topic_filter_error(topic: str) -> str | None:
    """Returns the error of a topic filter (MQTT 5.0, section 4.7); None for a valid filter."""
    levels = topic.split("/")
    if any("#" in level for level in levels[:-1]) or ("#" in levels[-1] and levels[-1] != "#"):
        return "expected # only as the entire last level: a/b/#"
    if any("+" in level and level != "+" for level in levels):
        return "expected + only as an entire level: a/+/c"
    return topic_error(topic.replace("+", "x").replace("#", "x"))
