"""Which persons and auctions there are at an event, and which of them events refer to.

Events come in rounds of fifty: a person, three auctions, forty-six bids.
"""

from __future__ import annotations

import numpy as np

from penstock.sdk.kit.random import Integers, Stream

ROUND, PERSONS, AUCTIONS = 50, 1, 3
FIRST = 1000
"""The number of the first person and of the first auction."""
LEAD = 10
"""So many persons and auctions are referred to before they appear."""
ACTIVE_PERSONS = 1000
OPEN_AUCTIONS = 100
HUNDRED = 100


def last_person(events: Integers) -> Integers:
    """The latest person at each event, counted from 0."""
    return events // ROUND


def last_auction(events: Integers) -> Integers:
    """The latest auction at each event that is not a person, counted from 0."""
    rounds, place = np.divmod(events, ROUND)
    last: Integers = rounds * AUCTIONS + np.minimum(place - PERSONS, AUCTIONS - 1)
    return last


def some_person(events: Integers, stream: Stream, hot: int) -> Integers:
    """A person for each event: three of four times that at place `hot` of the latest hundred."""
    last = last_person(events)
    active = np.minimum(last + 1, ACTIVE_PERSONS)
    some = last + 1 - active + _below(active + LEAD, events, stream)
    return _mixed(last // HUNDRED * HUNDRED + hot, some, 1 / 4, events, stream)


def some_auction(events: Integers, stream: Stream) -> Integers:
    """An auction for each event: every other time the first of the latest hundred."""
    last = last_auction(events)
    first = np.maximum(last - OPEN_AUCTIONS, 0)
    some = first + _below(last + 1 - first + LEAD, events, stream)
    return _mixed(last // HUNDRED * HUNDRED, some, 1 / 2, events, stream)


def _mixed(
    hot: Integers, some: Integers, share: float, events: Integers, stream: Stream
) -> Integers:
    cold = stream.child("cold").uniform(events) < share
    mixed: Integers = FIRST + np.where(cold, some, hot)
    return mixed


def _below(bound: Integers, events: Integers, stream: Stream) -> Integers:
    drawn: Integers = (stream.uniform(events) * bound).astype(np.int64)
    return drawn
