"""The options of the source."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import model_validator

from penstock.connectors.pulsar.connection import ConnectionConfig
from penstock.sdk import Config, ReceivingConfig

_ONLY_READ = ("on_data_loss",)
_ONLY_RECEIVED = ("journal", "consumer_name")


class StartAt(Config):
    """A time to start from."""

    timestamp: datetime
    """At the first message that was published then or later. Without a zone it is UTC."""


class PulsarSourceConfig(ConnectionConfig, ReceivingConfig):
    topic: str | list[str]
    """The topics: `orders`, or `persistent://TENANT/NAMESPACE/orders`."""
    subscription: str | None = None
    """A durable subscription, which is made if need be. It shows how far the pipeline has come, and
    lets Pulsar keep what has not been written yet; without one Pulsar keeps messages as the
    namespace's retention says."""
    subscription_type: Literal["exclusive", "shared", "failover", "key_shared"] | None = None
    """Take the messages from the subscription, as other consumers of it may, instead of reading
    them by their ids."""
    start: Literal["earliest", "latest"] | StartAt = "earliest"
    """Where the first run begins, and a new subscription; later runs resume."""
    consumer_name: str | None = None
    """What the broker's tools call us."""
    on_data_loss: Literal["fail", "skip"] = "fail"
    """What to do when messages are gone before they were read. `skip` makes a dead letter of it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.topics:
            raise ValueError("give at least one topic")
        if self.subscription == "":
            raise ValueError("a subscription has a name")
        if self.received and self.subscription is None:
            raise ValueError("subscription_type needs subscription")
        if self.received and isinstance(self.start, StartAt):
            raise ValueError("a subscription_type starts at earliest or latest")
        for option in _ONLY_READ if self.received else _ONLY_RECEIVED:
            if option in self.model_fields_set:
                way = "without" if self.received else "with"
                raise ValueError(f"{option} is for reading {way} subscription_type")
        return self

    @property
    def received(self) -> bool:
        """Whether messages are handed out once, and kept in a journal."""
        return self.subscription_type is not None

    @property
    def topics(self) -> list[str]:
        return [self.topic] if isinstance(self.topic, str) else self.topic
