"""Options of the Redis source and sink."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.connectors.redis.offsets import EntryId
from penstock.sdk import Config, PositiveDuration, ReceivingConfig, Secret, StartAt
from penstock.sdk.columns.template import KeyTemplate, Template
from penstock.sdk.network.address import url_validator
from penstock.sdk.network.auth import Auth
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls

Name = Annotated[str, Field(min_length=1)]
Names = Name | Annotated[list[str], Field(min_length=1)]
SINK_TARGETS = ("stream", "list", "hash", "key", "channel")
"""The options of the sink that name the destination."""
_PORT = 6379
_SOURCE_REQUIRES = {
    "group": "stream",
    "consumer": "group",
    "claim_after": "group",
    "start": "stream",
    "on_data_loss": "stream",
    "side": "list",
    "processing": "list",
}
_SINK_REQUIRES = {
    "field": ("stream", "hash"),
    "fields": ("stream",),
    "max_length": ("stream", "list"),
    "approximate": ("stream",),
    "side": ("list",),
    "ttl": ("key",),
}


class RedisAuth(Auth):
    """A password, with a user name where the server has ACL users."""

    alternatives = (("password",),)
    requires = {"username": "password"}

    username: str | None = None
    """The ACL user. `default` if only a password is set."""
    password: Secret | None = None
    """The password."""


class ConnectionConfig(Config):
    url: str | list[str]
    """The server, as `redis://host:port/database`, or `rediss://...` for TLS. For a cluster, one or
    several of its nodes: the first one that responds is used for discovery."""
    cluster: bool = False
    """Connect to a Redis Cluster."""
    auth: RedisAuth | None = None
    """The credentials. No authentication by default."""
    tls: TlsOption = None
    """Certificates and verification of a `rediss` URL. The scheme of the URL sets the default."""
    timeout: PositiveDuration = 10.0
    """The timeout of a response."""

    @field_validator("url")
    @classmethod
    def _check_urls(cls, url: str | list[str]) -> str | list[str]:
        urls = [url] if isinstance(url, str) else url
        validate = url_validator("redis", "rediss", user="auth.username and auth.password")
        for text in urls:
            path = urlsplit(validate(text)).path
            if path not in ("", "/") and not path.removeprefix("/").isdecimal():
                raise ValueError("expected a database number as the path: redis://HOST/1")
        if len({urlsplit(text).scheme for text in urls}) != 1:
            raise ValueError("expected at least one URL, and the same scheme in all URLs")
        return url

    @model_validator(mode="after")
    def _check_connection(self) -> Self:
        if not self.cluster and len(self._urls) > 1:
            raise ValueError("several URLs require cluster: true")
        if self.cluster and self.database:
            raise ValueError("a cluster only has database 0")
        tls = self.tls_settings
        if self.cluster and tls is not None and tls.key_password is not None:
            raise ValueError("cluster excludes tls.key_password")
        return self

    @property
    def database(self) -> int:
        """The database number."""
        return max(int(parts.path.strip("/") or 0) for parts in self._urls)

    @property
    def nodes(self) -> list[tuple[str, int]]:
        """Host and port of each URL."""
        return [(str(parts.hostname), parts.port or _PORT) for parts in self._urls]

    @property
    def address(self) -> str:
        """All hosts and ports, for messages."""
        return ", ".join(f"{host}:{port}" for host, port in self.nodes)

    @property
    def tls_settings(self) -> Tls | None:
        """The TLS settings; None without TLS. Raises ValueError if they contradict the URL."""
        return resolve_tls(self.tls, self._urls[0].scheme == "rediss")

    @property
    def _urls(self) -> list[SplitResult]:
        return [urlsplit(text) for text in ([self.url] if isinstance(self.url, str) else self.url)]


class RedisStartAt(StartAt):
    """A start position: a time or an entry ID."""

    offset: Annotated[str, Field(pattern=r"^\d{1,19}(-\d{1,19})?$")] | None = None
    """Start at the entry with this ID, such as `1700000000000-0`, or at the next one."""

    @property
    def first_id(self) -> EntryId:
        """The lowest entry ID to read."""
        if self.time is not None:
            return EntryId.at_time(self.time)
        return EntryId.parse(self.offset or "0")


class RedisSourceConfig(ConnectionConfig, ReceivingConfig):
    stream: Names | None = None
    """The streams to read: by ID ranges, or with `group` as a consumer of that group."""
    list: Names | None = None
    """The lists to pop messages from."""
    channel: Names | None = None
    """The channels to subscribe to."""
    pattern: Names | None = None
    """The channel patterns to subscribe to, such as `news.*`."""
    key: KeyTemplate | None = None
    """The keys of a lookup table, a template such as `customer:{id}`. By default the value of the
    column of the primary key."""
    hash: Template | None = None
    """The hashes of a lookup table, a template such as `customer:{id}`. With `field` this field is
    the payload; otherwise each field is a column."""
    group: Name | None = None
    """The consumer group, which is created if it does not exist. Its consumers share the entries of
    the streams."""
    consumer: str | None = None
    """The consumer name in the group. `PIPELINE.NODE` by default."""
    claim_after: PositiveDuration = 60.0
    """Claim pending entries of other consumers of the group after this idle time (XAUTOCLAIM)."""
    start: Literal["earliest", "latest"] | RedisStartAt = "earliest"
    """The start position of the first run, or of a new group: the `earliest` entry, the `latest`
    (only new entries), or a map with `timestamp` or `offset` (an entry ID). Later runs resume."""
    field: Name = "payload"
    """The field of an entry that is the payload. `*` is a JSON object of all fields. Of a hash a
    template, such as `{id}`."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """The action when entries were trimmed before they were read (without `group`). `continue`
    records the gap as a dead letter."""
    side: Literal["left", "right"] = "left"
    """The end of lists that messages are popped from."""
    processing: Name | None = None
    """The processing list, which holds messages of a list until they are on disk. A separate list
    for each list and node by default."""
    max_in_flight: int = Field(default=1000, ge=1)
    """The maximum number of unacknowledged messages of a stream or list."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        pubsub = self.channel is not None or self.pattern is not None
        keys = [self.key is not None, self.hash is not None]
        if [self.stream is not None, self.list is not None, pubsub, *keys].count(True) > 1:
            raise ValueError(
                "expected either stream, or list, or channel and pattern, or key, or hash"
            )
        if "field" in self.model_fields_set and self.stream is None and self.hash is None:
            raise ValueError("field requires stream or hash")
        for option, required in _SOURCE_REQUIRES.items():
            if option in self.model_fields_set and getattr(self, required) is None:
                raise ValueError(f"{option} requires {required}")
        if self.group is not None and "on_data_loss" in self.model_fields_set:
            raise ValueError("group excludes on_data_loss")
        if self.processing is not None and len(split_names(self.list)) > 1:
            raise ValueError("processing requires a single list")
        return self


class RedisSinkConfig(ConnectionConfig):
    stream: Template | None = None
    """The stream to add entries to, a template such as `orders:{country}`."""
    list: Template | None = None
    """The list to push messages to, a template."""
    hash: Template | None = None
    """The hash whose `field` is set, a template."""
    key: KeyTemplate | None = None
    """The key to set, a template such as `totals:{customer}`."""
    channel: Template | None = None
    """The channel to publish to, a template."""
    field: Template | None = None
    """The field of an entry that holds the payload (`payload` by default), or the field of a hash;
    a template."""
    fields: dict[str, Template] = {}
    """Additional fields of a stream's entries, templates."""
    max_length: int | None = Field(default=None, ge=1)
    """The maximum number of entries of a stream (MAXLEN) or of messages of a list. The oldest are
    removed."""
    approximate: bool = True
    """Let a stream temporarily exceed `max_length`, which is faster (MAXLEN ~)."""
    side: Literal["left", "right"] = "right"
    """The end of a list that messages are pushed to."""
    ttl: PositiveDuration | None = None
    """The time to live of a key. Unlimited by default."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        targets = [name for name in SINK_TARGETS if getattr(self, name) is not None]
        if len(targets) != 1:
            raise ValueError("expected one of stream, list, hash, key and channel")
        for option, required in _SINK_REQUIRES.items():
            if option in self.model_fields_set and targets[0] not in required:
                raise ValueError(f"{option} requires {' or '.join(required)}")
        if self.hash is not None and self.field is None:
            raise ValueError("hash requires field")
        return self


def reads_keys(config: RedisSourceConfig) -> bool:
    """Returns whether options are those of a lookup table."""
    return not (config.stream or config.list or config.channel or config.pattern)


def split_names(option: Names | None) -> tuple[str, ...]:
    """Returns the names of an option that is one name or several."""
    return () if option is None else (option,) if isinstance(option, str) else tuple(option)
