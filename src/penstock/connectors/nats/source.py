"""The source of NATS: subjects, streams and buckets."""

from __future__ import annotations

from penstock.connectors.nats import bucket, listening, sharing, stream
from penstock.connectors.nats.config import NatsSourceConfig
from penstock.sdk import Component, Context, ReceivingSource, Source

__all__ = ["NatsSource", "NatsSourceConfig"]


class NatsSource(Source[NatsSourceConfig]):
    """Reads NATS: a JetStream stream, a key-value bucket, or what is published to subjects.

    * `stream`: a message's sequence number is kept in the pipeline's state. With `consumer` that
      is also acknowledged, for the tools that show progress and for streams that keep messages
      until then.
    * `stream` with `queue_group`: a message goes to one of the group.
    * `bucket`: a row for each change of a key that the bucket still has. A deletion has no value,
      and `operation` of the metadata is `del` or `purge`: with the formats `raw` and `text` it is a
      row with a null, with the others a dead letter (`no-value`).
    * `subject` alone: what is published while we listen. Nobody keeps it for us: it is safe once it
      is in the journal, and counted as lost where that is full.

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
        "stream: ORDERS, queue_group: workers",
        "bucket: settings",
        "subject: orders.new",
    )
    capabilities = ReceivingSource.capabilities
    extra = "nats"
    clients = ("nats", "nkeys")

    @classmethod
    def of(
        cls, config: NatsSourceConfig, context: Context | None = None
    ) -> Component[NatsSourceConfig]:
        if config.bucket is not None:
            return bucket.BucketSource(config, context)
        if config.stream is None:
            return listening.SubjectSource(config, context)
        if config.queue_group is not None:
            return sharing.SharedSource(config, context)
        return stream.StreamSource(config, context)
