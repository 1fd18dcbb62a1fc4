"""The sink of Redis: entries of streams, messages, hash fields and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.client import connection, create_client
from penstock.connectors.redis.config import SINK_TARGETS, RedisSinkConfig
from penstock.connectors.redis.writer import (
    AddEntry,
    Command,
    Publish,
    PushMessage,
    RedisWriter,
    SetHashField,
    SetKey,
)
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer
from penstock.sdk.columns.checks import check_primary_key
from penstock.sdk.columns.template import Template


class RedisSink(Sink[RedisSinkConfig]):
    """Writes rows to a Redis server or cluster.

    A row is an entry of a stream (XADD), a message of a list (RPUSH, LPUSH), a field of a hash
    (HSET), the value of a key (SET), or a message of a channel (PUBLISH).

    A batch is done when the server has responded to all commands. Durability depends on the
    server's `appendfsync`. Rows whose command the server rejects, such as a push to a key of
    another type, become dead letters.

    A hash field or key that is written twice has the value of the last row in source order. With
    `mode: upsert` the name of the key or field must contain the primary key, and a delete removes
    the key (DEL) or the field (HDEL).

    ```yaml
    type: redis
    from: totals
    url: redis://localhost:6379
    key: totals:{customer}
    ttl: 1 day
    ```
    """

    acknowledges = "the server has responded to each command"
    variants = (
        "stream: orders",
        "list: jobs",
        'hash: totals, field: "{customer}"',
        'key: "totals:{customer}"',
        "channel: news",
    )
    capabilities = frozenset({Capability.BYTES})
    optional_capabilities = {
        Capability.UPSERT: "key, or hash and field",
        Capability.DELETE: "key, or hash and field",
        Capability.ORDERED: "stream, list or channel",
    }
    extra = "redis"
    client_modules = ("redis",)
    max_rows_per_write = 1000

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        keyed = self.config.key is not None or self.config.hash is not None
        added = {Capability.UPSERT, Capability.DELETE} if keyed else {Capability.ORDERED}
        self.capabilities = self.capabilities | added
        if self.config.channel is not None:
            self.acknowledges = "the server has accepted the messages, for current subscribers"

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        templates = [
            ((option,), template)
            for option in (*SINK_TARGETS, "field")
            if (template := getattr(self.config, option)) is not None
        ]
        fields = [(("fields", name), template) for name, template in self.config.fields.items()]
        raise_all(
            error
            for option, template in (*templates, *fields)
            for error in template.check(columns, *option)
        )
        overwriting = self.overwriting_columns
        if self.mode == "upsert" and overwriting is not None:
            raise_all(check_primary_key(self.primary_key, overwriting, templates[0][0][0]))

    @property
    def overwriting_columns(self) -> Sequence[str] | None:
        config = self.config
        if config.key is None and config.hash is None:
            return None
        templates = (config.key, config.hash, config.field)
        return sorted({name for template in templates if template for name in template.columns})

    def check(self) -> None:
        with connection(self.config) as client:
            client.ping()

    def open(self) -> Any:
        return create_client(self.config, single_node=self.config.channel is not None)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return RedisWriter(client, self.config, self._command())

    def _command(self) -> Command:
        config = self.config
        if config.stream is not None:
            return AddEntry(config.stream, config.field or Template("payload"), config.fields,
                            config.max_length, config.approximate)  # fmt: skip
        if config.list is not None:
            return PushMessage(config.list, config.side, config.max_length)
        if config.hash is not None and config.field is not None:
            return SetHashField(config.hash, config.field)
        if config.key is not None:
            return SetKey(config.key, config.ttl)
        assert config.channel is not None
        return Publish(config.channel)
