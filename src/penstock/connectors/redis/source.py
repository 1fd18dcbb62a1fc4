"""The source of Redis: streams, consumer groups, lists and channels."""

from __future__ import annotations

from penstock.connectors.redis.config import RedisSourceConfig, reads_keys
from penstock.connectors.redis.keys import KeySource
from penstock.connectors.redis.list import ListSource
from penstock.connectors.redis.listing import list_names
from penstock.connectors.redis.pubsub import PubSubSource
from penstock.connectors.redis.receiver import ConsumerGroupSource
from penstock.connectors.redis.stream import StreamSource
from penstock.sdk import Capability, Component, Context, Source
from penstock.sdk.messages.listing import ListedTopics


class RedisSource(Source[RedisSourceConfig], ListedTopics):
    """Reads streams, lists, channels or keys of a Redis server or cluster.

    * `stream`: entries are read by ID, and a run resumes at its offset. The streams do not change,
      and other readers are not affected.
    * `stream` with `group`: the consumers of the group share the entries. Pending entries of a dead
      consumer are claimed.
    * `list`: messages are moved to a processing list and removed once they are on disk.
    * `channel`, `pattern`: messages that are published while the pipeline is stopped are lost.
      Messages that do not fit into the journal count as lost.
    * with `lookup: true`: a lookup table. A batch is joined with the values of its keys (MGET). The
      value is decoded by `format`. The key is the column of the primary key, or `key`, a template.
      `hash` reads hashes, whose fields are columns (HGETALL), or one `field` (HGET). The columns of
      the primary key need not be in the value. A value that cannot be decoded is a dead letter, and
      no row. The metadata column `key` is the name of the key or hash.

    ```yaml
    type: redis
    url: redis://localhost:6379
    stream: [orders, returns]
    field: body
    format: json
    schema: customer STRING, amount DOUBLE
    metadata: [stream, id]
    ```
    """

    optional_capabilities = {Capability.LOOKUP_BY_KEY: "key, hash, or no stream, list and channel"}
    variants = ("stream: orders", "stream: orders, group: workers", "list: jobs", "channel: news")
    capabilities = StreamSource.capabilities
    extra = "redis"
    client_modules = ("redis",)
    listed_options = ("stream", "list", "channel")

    @classmethod
    def create(
        cls, config: RedisSourceConfig, context: Context | None = None
    ) -> Component[RedisSourceConfig]:
        if reads_keys(config):
            return KeySource(config, context)
        if config.list is not None:
            return ListSource(config, context)
        if config.stream is None:
            return PubSubSource(config, context)
        return (ConsumerGroupSource if config.group is not None else StreamSource)(config, context)

    @classmethod
    def topic_names(cls, config: RedisSourceConfig, option: str) -> list[str]:
        return list_names(config, option)
