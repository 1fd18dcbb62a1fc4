"""The source of NATS: subjects, streams and buckets."""

from __future__ import annotations

from penstock.connectors.nats.bucket import BucketSource
from penstock.connectors.nats.client import pooled_connection
from penstock.connectors.nats.config import NatsSourceConfig
from penstock.connectors.nats.listing import list_names
from penstock.connectors.nats.queue_receiver import QueueConsumerSource
from penstock.connectors.nats.receiver import SubscriberSource
from penstock.connectors.nats.stream import StreamSource
from penstock.sdk import Component, Context, ReceivingSource, Source
from penstock.sdk.messages.listing import ListedTopics


class NatsSource(Source[NatsSourceConfig], ListedTopics):
    """Reads a JetStream stream, a key-value bucket, or subjects of NATS.

    * `stream`: messages are read by sequence number, and a run resumes at its offset. `consumer`
      names a durable consumer that is acknowledged as well, for tools that show progress and for
      streams with interest retention.
    * `stream` with `group`: the members of the group share the messages.
    * `bucket`: a row for each change of a key in the bucket's history. A deletion has no value, and
      the metadata column `operation` is `del` or `purge`: with the formats `raw` and `text` it is a
      row with a null, with other formats a dead letter (`no-value`).
    * `subject` alone: messages that are published while the pipeline is stopped are lost. Messages
      that do not fit into the journal count as lost.

    ```yaml
    type: nats
    url: nats://localhost:4222
    stream: ORDERS
    subject: [orders.new, orders.changed]
    metadata: [subject, sequence]
    ```
    """

    variants = (
        "stream: ORDERS",
        "stream: ORDERS, group: workers",
        "bucket: settings",
        "subject: orders.new",
    )
    capabilities = ReceivingSource.capabilities
    extra = "nats"
    client_modules = ("nats", "nkeys")
    listed_options = ("stream", "subject", "bucket")

    @classmethod
    def create(
        cls, config: NatsSourceConfig, context: Context | None = None
    ) -> Component[NatsSourceConfig]:
        if config.bucket is not None:
            return BucketSource(config, context)
        if config.stream is None:
            return SubscriberSource(config, context)
        return (StreamSource if config.group is None else QueueConsumerSource)(config, context)

    @classmethod
    def topic_names(cls, config: NatsSourceConfig, option: str) -> list[str]:
        connection = pooled_connection(config)
        return connection.run("list streams", lambda client: list_names(client, config, option))
