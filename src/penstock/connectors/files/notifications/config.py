"""Options of notifications."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.sdk import Duration, PositiveDuration
from penstock.sdk.aws.queue import QueueConfig


class NotificationsConfig(QueueConfig):
    """A queue of Amazon SQS with notifications of new objects."""

    listing: Literal["start", "never"] = "start"
    """Lists all files at the `start` of each run, which finds objects whose notifications were
    lost or have expired, or `never`."""
    visibility_timeout: Duration = Field(default=60.0, ge=1, le=43_200)
    """The time for which a received message is hidden from other consumers, until its files are
    recorded and it is deleted."""
    interval: PositiveDuration = 1.0
    """The time between two requests for messages, with `watch`."""
