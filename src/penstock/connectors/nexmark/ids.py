"""IDs of persons and auctions: existing IDs at an event, and IDs that an event refers to.

A round of events has fifty: one person, three auctions and forty-six bids.
"""

from __future__ import annotations

import numpy as np

from penstock.sdk.synthetic.random import Integers, Stream

ROUND, PERSONS, AUCTIONS = 50, 1, 3
FIRST = 1000
"""The ID of the first person and of the first auction."""
LEAD = 10
"""The number of persons and auctions that are referred to before they exist."""
ACTIVE_PERSONS = 1000
OPEN_AUCTIONS = 100
HUNDRED = 100


def last_person(events: Integers) -> Integers:
    """Returns the index of the latest person at each event."""
    return events // ROUND


def last_auction(events: Integers) -> Integers:
    """Returns the index of the latest auction at each event after the person of a round."""
    rounds, indexes = np.divmod(events, ROUND)
    last: Integers = rounds * AUCTIONS + np.minimum(indexes - PERSONS, AUCTIONS - 1)
    return last


def random_persons(events: Integers, stream: Stream, hot: int) -> Integers:
    """Returns a person for each event; three of four are number `hot` of the latest hundred."""
    last = last_person(events)
    active = np.minimum(last + 1, ACTIVE_PERSONS)
    cold_ids = last + 1 - active + _random_below(active + LEAD, events, stream)
    return _mix(last // HUNDRED * HUNDRED + hot, cold_ids, 1 / 4, events, stream)


def random_auctions(events: Integers, stream: Stream) -> Integers:
    """Returns an auction for each event; half of them are the first of the latest hundred."""
    last = last_auction(events)
    first = np.maximum(last - OPEN_AUCTIONS, 0)
    cold_ids = first + _random_below(last + 1 - first + LEAD, events, stream)
    return _mix(last // HUNDRED * HUNDRED, cold_ids, 1 / 2, events, stream)


def _mix(
    hot: Integers, cold_ids: Integers, share: float, events: Integers, stream: Stream
) -> Integers:
    cold = stream.child("cold").uniform(events) < share
    ids: Integers = FIRST + np.where(cold, cold_ids, hot)
    return ids


def _random_below(bound: Integers, events: Integers, stream: Stream) -> Integers:
    numbers: Integers = (stream.uniform(events) * bound).astype(np.int64)
    return numbers
