"""The Nexmark source."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
from pydantic import Field

from penstock.connectors.nexmark import ids
from penstock.connectors.nexmark.events import AUCTION, BID, PERSON, Make, auctions, bids, persons
from penstock.sdk import Duration
from penstock.sdk.synthetic.clock import Clock, StartTime
from penstock.sdk.synthetic.random import Integers, Stream
from penstock.sdk.synthetic.source import SyntheticConfig, SyntheticSource

_STRIDE = 953
"""A prime stride visits all events of a group whose size is not a multiple of the stride."""


class NexmarkSourceConfig(SyntheticConfig):
    start_time: StartTime = dt.datetime(2015, 7, 15, tzinfo=dt.UTC)
    """The time of the first event; `now` means the wall clock time at which events are due."""
    interval: Duration | None = Field(default=None, gt=0)
    """The event time between two events. By default that of `rate`, or of 10,000 events a
    second."""
    shuffle: int = Field(default=1, ge=1, lt=_STRIDE)
    """The number of consecutive events that are shuffled; 1 keeps the order of event time."""
    seed: int = 0
    """The seed of the random numbers. The same seed generates the same events."""


class NexmarkSource(SyntheticSource[NexmarkSourceConfig]):
    """Generates the events of the Nexmark benchmark, a simulated auction site.

    Of fifty rows one has a `person`, three an `auction` and forty-six a `bid`; the other columns
    are null. Hot sellers, bidders and auctions follow the benchmark. The event time is the field
    `datetime` of each event, and the metadata `time`. Rows are a function of the options and the
    row number, so they can be read again.

    ```yaml
    type: nexmark
    rate: 10000
    start_time: now
    metadata: {at: time}
    ```
    """

    default_rate = 10_000.0

    def schema(self) -> pa.Schema:
        return pa.schema([("person", PERSON), ("auction", AUCTION), ("bid", BID)])

    def generate(
        self, rows: Integers, clock: Clock, columns: frozenset[str] | None
    ) -> pa.RecordBatch:
        events, event_clock = self._event_numbers(rows), self._event_clock(clock)
        index = events % ids.ROUND
        is_person, is_bid = index < ids.PERSONS, index >= ids.PERSONS + ids.AUCTIONS
        kinds: dict[str, tuple[Make, np.ndarray]] = {
            "person": (persons, is_person),
            "auction": (auctions, ~(is_person | is_bid)),
            "bid": (bids, is_bid),
        }
        arrays = []
        for field in self.schema():
            make, selected = kinds[field.name]
            if columns is None or field.name in columns:
                stream = Stream(self.config.seed, field.name)
                values = make(events[selected], stream, event_clock)
                arrays.append(_scatter(values, selected))
            else:
                arrays.append(pa.nulls(len(rows), field.type))
        return pa.record_batch(arrays, schema=self.schema())

    def times(self, rows: Integers, clock: Clock) -> Integers:
        return self._event_clock(clock).at(self._event_numbers(rows))

    def _event_clock(self, clock: Clock) -> Clock:
        return clock.with_options(self.config.start_time, self.config.interval)

    def _event_numbers(self, rows: Integers) -> Integers:
        group = self.config.shuffle
        return rows // group * group + rows * _STRIDE % group


def _scatter(values: pa.Array, selected: np.ndarray) -> pa.Array:
    """Returns the values at the selected rows, and null elsewhere."""
    indexes = np.cumsum(selected) - 1
    return values.take(pa.array(indexes, mask=~selected))
