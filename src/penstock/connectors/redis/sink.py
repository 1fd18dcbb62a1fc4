"""The sink: rows become entries, messages, fields or keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.redis.connection import ConnectionConfig, client, connected
from penstock.connectors.redis.writing import (
    Command,
    Entry,
    HashField,
    ListItem,
    Publication,
    RedisWriter,
    Value,
)
from penstock.core.errors import OptionError, raise_all
from penstock.sdk import BatchId, Capability, Duration, Sink, Writer
from penstock.sdk.kit.template import Template

_KINDS = ("stream", "list", "hash", "key", "channel")
_BELONGS = {
    "field": ("stream", "hash"),
    "fields": ("stream",),
    "max_length": ("stream", "list"),
    "approximate": ("stream",),
    "side": ("list",),
    "ttl": ("key",),
}


class RedisSinkConfig(ConnectionConfig):
    stream: Template | None = None
    """The stream to add entries to. `{column}` in it is replaced by the row's value, here and in
    the next four: `orders:{country}`."""
    list: Template | None = None
    """The list to push messages to."""
    hash: Template | None = None
    """The hash to set a `field` of."""
    key: Template | None = None
    """The key to set."""
    channel: Template | None = None
    """The channel to publish to."""
    field: Template | None = None
    """The field of an entry that holds the payload (`payload` if left out), or the field of a hash;
    `{column}` in it is replaced by the row's value."""
    fields: dict[str, Template] = {}
    """Further fields of a stream's entries; `{column}` in them is replaced by the row's value."""
    max_length: int | None = Field(default=None, ge=1)
    """The most entries of a stream, or messages of a list; the oldest go."""
    approximate: bool = True
    """Whether a stream may be longer than `max_length` for a while, which costs the server less."""
    side: Literal["left", "right"] = "right"
    """The end of a list that messages are added to."""
    ttl: Annotated[Duration, Field(ge=0.001)] | None = None
    """How long a key lives; for ever if left out."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [each for each in _KINDS if getattr(self, each) is not None]
        if len(given) != 1:
            raise ValueError("give one of stream, list, hash, key and channel")
        for option, kinds in _BELONGS.items():
            if option in self.model_fields_set and given[0] not in kinds:
                raise ValueError(f"{option} goes together with {' or '.join(kinds)}")
        if self.hash is not None and self.field is None:
            raise ValueError("hash needs field, too")
        return self


class RedisSink(Sink[RedisSinkConfig]):
    """Writes rows to a Redis server or cluster: as entries of streams (XADD), messages of lists

    (RPUSH, LPUSH), fields of hashes (HSET), keys (SET), or to whoever listens to a channel
    (PUBLISH).

    A batch is done when the server has answered all of its commands; what is durable then is up to
    the server (`appendfsync`). Rows that it refuses by themselves, such as those for a key that
    holds something else, become dead letters.

    A field of a hash or a key that is written twice is there once. With `mode: upsert` the primary
    key has to be in the name of the key or field.

    ```yaml
    type: redis
    from: totals
    url: redis://localhost:6379
    key: totals:{customer}
    ttl: 1 day
    ```
    """

    acknowledges = "the server has answered each command"
    variants = (
        "stream: orders",
        "list: jobs",
        'hash: totals, field: "{customer}"',
        'key: "totals:{customer}"',
        "channel: news",
    )
    capabilities = frozenset({Capability.BYTES})
    by_option = {
        Capability.UPSERT: "key, or hash and field",
        Capability.ORDERED: "stream, list or channel",
    }
    extra = "redis"
    clients = ("redis",)
    most_rows = 1000

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        keyed = self.config.key is not None or self.config.hash is not None
        self.capabilities = self.capabilities | {Capability.UPSERT if keyed else Capability.ORDERED}
        if self.config.channel is not None:
            self.acknowledges = "the server has taken the messages, for those who listen then"

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        texts = [
            ((name,), text)
            for name in (*_KINDS, "field")
            if (text := getattr(self.config, name)) is not None
        ]
        more = [(("fields", name), text) for name, text in self.config.fields.items()]
        raise_all(
            each for option, text in (*texts, *more) for each in text.mistakes(columns, *option)
        )
        named = frozenset[str]().union(*(text.columns for _, text in texts))
        missing = [name for name in self.primary_key if name not in named]
        if self.mode == "upsert" and missing:
            raise OptionError.of(
                texts[0][0][0],
                message=f"rows that differ in {', '.join(missing)} would replace each other",
                code="primary-key",
                hint=f"put {{{missing[0]}}} into it",
            )

    def check(self) -> None:
        with connected(self.config) as made:
            made.ping()

    def open(self) -> Any:
        return client(self.config, alone=self.config.channel is not None)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return RedisWriter(client, self.config, self._command())

    def _command(self) -> Command:
        config = self.config
        if config.stream is not None:
            return Entry(config.stream, config.field or Template("payload"), config.fields,
                         config.max_length, config.approximate)  # fmt: skip
        if config.list is not None:
            return ListItem(config.list, config.side, config.max_length)
        if config.hash is not None and config.field is not None:
            return HashField(config.hash, config.field)
        if config.key is not None:
            return Value(config.key, config.ttl)
        assert config.channel is not None
        return Publication(config.channel)
