"""The source of Pulsar: topics, by the ids of messages or by a subscription."""

from __future__ import annotations

from penstock.connectors.pulsar import subscription, topic
from penstock.connectors.pulsar.config import PulsarSourceConfig
from penstock.sdk import Component, Context, ReceivingSource, Source

__all__ = ["PulsarSource", "PulsarSourceConfig"]


class PulsarSource(Source[PulsarSourceConfig]):
    """Reads topics of Pulsar.

    * Without `subscription_type` a message's id is kept in the pipeline's state. Name a
      `subscription`, so that Pulsar keeps the messages until they have been written: those that it
      deletes while a pipeline is down, as retention says, are missed without a word.
    * With `subscription_type` a message goes to one of the subscription's consumers.

    ```yaml
    type: pulsar
    url: pulsar://localhost:6650
    topic: persistent://public/default/orders
    subscription: orders-pipeline
    metadata: [key, publish_time, properties]
    ```
    """

    variants = ("topic: orders", "subscription: workers, subscription_type: shared")
    capabilities = ReceivingSource.capabilities
    extra = "pulsar"
    clients = ("pulsar",)

    @classmethod
    def of(
        cls, config: PulsarSourceConfig, context: Context | None = None
    ) -> Component[PulsarSourceConfig]:
        if config.received:
            return subscription.SubscriptionSource(config, context)
        return topic.TopicSource(config, context)
