"""The source: one of four, as the options say."""

from __future__ import annotations

from penstock.connectors.redis.channels import ChannelSource
from penstock.connectors.redis.group import GroupSource
from penstock.connectors.redis.lists import ListSource
from penstock.connectors.redis.options import RedisSourceConfig
from penstock.connectors.redis.streams import StreamSource
from penstock.sdk import Component, Context, Source


class RedisSource(Source[RedisSourceConfig]):
    """Reads streams, lists or channels of a Redis server or cluster.

    * `stream`: entries are read by their ids, and can be read again. Nothing changes on the server,
      and whoever else reads the streams is not disturbed.
    * `stream` with `group`: the entries are shared with the other consumers of the group. Those of
      a consumer that died are taken over.
    * `list`: messages are moved to a list of ours, and removed there once they are on disk.
    * `channel`, `pattern`: what is published while we are away is lost, and so is what a full
      journal cannot take, which is counted.

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

    variants = ("stream: orders", "stream: orders, group: workers", "list: jobs", "channel: news")
    capabilities = StreamSource.capabilities
    extra = "redis"
    clients = ("redis",)

    @classmethod
    def of(
        cls, config: RedisSourceConfig, context: Context | None = None
    ) -> Component[RedisSourceConfig]:
        if config.list is not None:
            return ListSource(config, context)
        if config.stream is None:
            return ChannelSource(config, context)
        return (GroupSource if config.group is not None else StreamSource)(config, context)
