"""The options of the source: what is read, and how."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from penstock.connectors.redis.connection import ConnectionConfig
from penstock.sdk import Duration, ReceivingConfig

Names = Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(min_length=1)]
Start = Literal["earliest", "latest"] | Annotated[str, Field(pattern=r"^\d{1,19}(-\d{1,19})?$")]

_BELONGS = {
    "group": "stream",
    "consumer": "group",
    "claim_after": "group",
    "start": "stream",
    "field": "stream",
    "on_data_loss": "stream",
    "side": "list",
    "processing": "list",
}


class RedisSourceConfig(ConnectionConfig, ReceivingConfig):
    stream: Names | None = None
    """The streams to read: by ranges of ids, or with `group` as a consumer of that group."""
    list: Names | None = None
    """The lists to take messages from; they are gone from there then."""
    channel: Names | None = None
    """The channels to subscribe to."""
    pattern: Names | None = None
    """Subscribe to all channels that match, as in `news.*`."""
    group: Annotated[str, Field(min_length=1)] | None = None
    """The consumer group that shares the entries of streams with us; it is made if need be."""
    consumer: str | None = None
    """Our name in the group; `PIPELINE.NODE` if left out."""
    claim_after: Duration = Field(default=60.0, gt=0)
    """After so long we take over what another consumer of the group got and did not finish."""
    start: Start = "earliest"
    """Where to begin without a position (of ours, or of the group): with the `earliest` entry, the
    next one to come (`latest`), or an id."""
    field: Annotated[str, Field(min_length=1)] = "payload"
    """The field of an entry that is the payload; `*` makes a JSON object of all of them."""
    on_data_loss: Literal["fail", "skip"] = "fail"
    """What to do when entries were trimmed before they were read (without `group`). `skip` makes a
    dead letter of it."""
    side: Literal["left", "right"] = "left"
    """The end of lists that messages are taken from."""
    processing: Annotated[str, Field(min_length=1)] | None = None
    """The list that keeps messages of a list until they are on disk; a name for each list and
    node if left out."""
    in_flight: int = Field(default=1000, ge=1)
    """How many messages are fetched before the first of them is acknowledged."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        pubsub = self.channel is not None or self.pattern is not None
        if [self.stream is not None, self.list is not None, pubsub].count(True) != 1:
            raise ValueError("give either stream, or list, or channel and pattern")
        for option, needed in _BELONGS.items():
            if option in self.model_fields_set and getattr(self, needed) is None:
                raise ValueError(f"{option} goes together with {needed}")
        if self.group is not None and "on_data_loss" in self.model_fields_set:
            raise ValueError("on_data_loss does not go together with group")
        if self.processing is not None and len(names(self.list)) > 1:
            raise ValueError("processing is for one list, and there are several")
        return self


def names(given: Names | None) -> tuple[str, ...]:
    """An option that is one name or several."""
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)
