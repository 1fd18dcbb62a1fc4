"""Settings of a durable consumer, for when it is made."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from penstock.sdk import Config, Duration

OF_ACKS = ("ack_wait", "max_deliver", "max_ack_pending")
"""Those about single messages and their acks."""


class ConsumerSettings(Config):
    """What JetStream is told of a consumer; it has its own defaults for what is left out."""

    ack_wait: Duration | None = Field(default=None, gt=0)
    """How long a message may be without its ack, as it is while the journal is full, until it is
    given once more; 30 seconds if left out."""
    max_deliver: int | None = Field(default=None, ge=1)
    """How often a message is given. After that it is given to nobody, even if nobody kept it."""
    max_ack_pending: int | None = Field(default=None, ge=1)
    """How many messages may be without their acks at once, with all who share them."""
    inactive_threshold: Duration | None = Field(default=None, gt=0)
    """After so long without being asked for messages the consumer is removed, and how far it has
    come is forgotten; never if left out."""
    num_replicas: int | None = Field(default=None, ge=1)
    """How many servers keep the consumer; as many as its stream if left out."""
    description: str | None = None
    """What tools show beside its name."""

    def given(self) -> dict[str, Any]:
        """Those that are not left out, by the client's own names."""
        return {name: value for name, value in self if value is not None}
