"""The source of the events of the Nexmark benchmark."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
from pydantic import Field

from penstock.connectors.nexmark import ids
from penstock.connectors.nexmark.events import AUCTION, BID, PERSON, Make, auctions, bids, persons
from penstock.sdk import Duration
from penstock.sdk.kit.clock import Clock, Start
from penstock.sdk.kit.paced import PacedConfig, PacedSource
from penstock.sdk.kit.random import Integers, Stream

_STRIDE = 953
"""A prime: stepping by it visits all of a group, unless the group's size is a multiple of it."""


class NexmarkSourceConfig(PacedConfig):
    start: Start = dt.datetime(2015, 7, 15, tzinfo=dt.UTC)
    """The time of the first event; `now` is the time when they are due, as a clock on the wall."""
    interval: Duration | None = Field(default=None, gt=0)
    """The event time between two events; as the rate says if left out, or 10,000 a second."""
    shuffle: int = Field(default=1, ge=1, lt=_STRIDE)
    """Of how many events in a row the order, and so the times, are mixed up; 1 is in order."""
    seed: int = 0
    """Another seed, other events; the same seed, the same events."""


class NexmarkSource(PacedSource[NexmarkSourceConfig]):
    """Makes the events of the Nexmark benchmark, a simulated auction site.

    Of fifty rows one has a `person`, three an `auction` and forty-six a `bid`, the other two
    columns being null; hot sellers, bidders and auctions are as the benchmark has them. The event
    time is in the field `datetime` of each, and in the metadata `time`. A row depends on nothing
    but the options and its number, so rows can be read again.

    ```yaml
    type: nexmark
    rate: 10000
    start: now
    metadata: {at: time}
    ```
    """

    usual_rate = 10_000.0

    def schema(self) -> pa.Schema:
        return pa.schema([("person", PERSON), ("auction", AUCTION), ("bid", BID)])

    def made(self, rows: Integers, clock: Clock, wanted: frozenset[str] | None) -> pa.RecordBatch:
        events, told = self._events(rows), self._told(clock)
        place = events % ids.ROUND
        is_person, is_bid = place < ids.PERSONS, place >= ids.PERSONS + ids.AUCTIONS
        kinds: dict[str, tuple[Make, np.ndarray]] = {
            "person": (persons, is_person),
            "auction": (auctions, ~(is_person | is_bid)),
            "bid": (bids, is_bid),
        }
        made = []
        for field in self.schema():
            make, chosen = kinds[field.name]
            if wanted is None or field.name in wanted:
                stream = Stream(self.config.seed, field.name)
                made.append(_spread(make(events[chosen], stream, told), chosen))
            else:
                made.append(pa.nulls(len(rows), field.type))
        return pa.record_batch(made, schema=self.schema())

    def times(self, rows: Integers, clock: Clock) -> Integers:
        return self._told(clock).at(self._events(rows))

    def _told(self, clock: Clock) -> Clock:
        return clock.told(self.config.start, self.config.interval)

    def _events(self, rows: Integers) -> Integers:
        group = self.config.shuffle
        return rows // group * group + rows * _STRIDE % group


def _spread(values: pa.Array, chosen: np.ndarray) -> pa.Array:
    """The values at the places that are chosen, and null elsewhere."""
    at = np.cumsum(chosen) - 1
    return values.take(pa.array(at, mask=~chosen))
