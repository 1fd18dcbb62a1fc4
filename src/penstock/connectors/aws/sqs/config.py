"""Options of the SQS source and sink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from pydantic import Field, model_validator

from penstock.sdk import Duration, ReceivingConfig, Retry
from penstock.sdk.aws.queue import QueueConfig
from penstock.sdk.columns.template import KeyTemplate, Template


class SqsSourceConfig(QueueConfig, ReceivingConfig):
    wait: Duration = Field(default=20.0, ge=0, le=20)
    """The wait time of long polling."""
    visibility_timeout: Duration = Field(default=60.0, ge=1, le=43_200)
    """The time for which a received message is hidden from other consumers. It is extended while
    the journal is full."""
    concurrency: int = Field(default=4, ge=1, le=100)
    """The number of parallel receive requests."""


class SqsSinkConfig(QueueConfig):
    message_group: KeyTemplate | None = None
    """The message group ID, a template. Messages of a group keep their order. Required by FIFO
    queues."""
    deduplication_id: KeyTemplate | None = None
    """The deduplication ID, a template. A FIFO queue drops a message whose ID was sent within the
    last five minutes. Without it the queue requires content-based deduplication."""
    delay: Duration | None = Field(default=None, ge=0, le=900)
    """The time before messages become visible. By default the delay of the queue. Not supported
    by FIFO queues."""
    headers: dict[str, Template] = Field(default={}, max_length=10)
    """The headers (SQS: message attributes), templates."""
    retry: Retry = Retry.model_validate({"attempts": 12, "backoff": "100ms", "max_backoff": "5s"})
    """Retry of messages that the service could not accept."""

    @model_validator(mode="after")
    def _check_fifo(self) -> Self:
        if self.fifo and self.message_group is None:
            raise ValueError("a FIFO queue requires message_group")
        if self.fifo and self.delay is not None:
            raise ValueError("delay is not supported by FIFO queues")
        if not self.fifo and self.deduplication_id is not None:
            raise ValueError("deduplication_id requires a FIFO queue, whose name ends in .fifo")
        return self

    def templates(self) -> Iterator[tuple[tuple[str, ...], Template]]:
        """Yields each option that is a template, with its value."""
        for name in ("message_group", "deduplication_id"):
            template = getattr(self, name)
            if template is not None:
                yield (name,), template
        for name, template in self.headers.items():
            yield ("headers", name), template
