"""The options of the source."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, model_validator

from penstock.connectors.nats.connection import ConnectionConfig
from penstock.connectors.nats.durable import OF_ACKS, ConsumerSettings
from penstock.connectors.nats.start import Start
from penstock.connectors.nats.subjects import listed, need_filters, need_name
from penstock.sdk import ReceivingConfig

Name = Annotated[str, AfterValidator(need_name)]
Filters = Annotated[str | list[str], AfterValidator(need_filters)]
_ONLY_KEPT = ("start", "on_data_loss", "consumer")
_ONLY_RECEIVED = ("journal",)


class NatsSourceConfig(ConnectionConfig, ReceivingConfig):
    subject: Filters | None = None
    """The subjects; `*` stands for one word, `>` for all that follow. Of a stream: which of its
    subjects are read; all if left out."""
    queue_group: Name | None = None
    """Share the messages with others that name the same group, as those of a work queue. Of a
    stream: by a durable consumer of that name, which is made if need be."""
    stream: Name | None = None
    """A JetStream stream to read, instead of listening to what is published."""
    bucket: Name | None = None
    """A key-value bucket to read, as the changes of its keys."""
    key: Filters | None = None
    """The keys of the bucket, with `*` and `>` as in subjects; all if left out."""
    start: Start = "earliest"
    """Where the first run begins in a stream or bucket; later ones resume."""
    consumer: Name | None = None
    """A durable consumer by which the stream's progress is shown; it is made if need be."""
    consumer_settings: ConsumerSettings = ConsumerSettings()
    """How the durable consumer of `consumer`, or of a stream's `queue_group`, is made; one that is
    there is left as it is."""
    on_data_loss: Literal["fail", "skip"] = "fail"
    """What to do when messages of the stream are gone before they were read. `skip` makes a dead
    letter of it."""

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        given = self.model_fields_set
        if self.stream is not None and self.bucket is not None:
            raise ValueError("give either stream or bucket")
        if self.bucket is None and self.key is not None:
            raise ValueError("key is for a bucket")
        if self.bucket is not None and self.subject is not None:
            raise ValueError("a bucket has keys: write key instead of subject")
        if self.stream is None and self.bucket is None and self.subject is None:
            raise ValueError("give subject, stream or bucket")
        if self.queue_group is not None and self.bucket is not None:
            raise ValueError("queue_group is for subjects and streams")
        if self.queue_group is not None and self.stream is not None and len(self.subjects) > 1:
            raise ValueError("a queue_group of a stream reads one subject")
        for option in _ONLY_KEPT if self.received else _ONLY_RECEIVED:
            if option in given:
                way = "with" if option in _ONLY_RECEIVED else "without"
                raise ValueError(f"{option} is for what is read {way} a journal")
        return self

    @model_validator(mode="after")
    def _durable(self) -> Self:
        settings = self.consumer_settings.model_fields_set
        shared = self.stream is not None and self.queue_group is not None
        if settings and not shared and self.consumer is None:
            raise ValueError("consumer_settings needs consumer, or stream and queue_group")
        for option in OF_ACKS:
            if option in settings and not shared:
                raise ValueError(f"{option} is for a stream with queue_group")
        return self

    @property
    def received(self) -> bool:
        """Whether messages are kept in a journal, because nobody can read them again."""
        return self.bucket is None and (self.stream is None or self.queue_group is not None)

    @property
    def subjects(self) -> list[str]:
        return listed(self.subject)

    @property
    def filtered_keys(self) -> list[str]:
        return listed(self.key)
