"""Events: persons, auctions and bids, each a struct with a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.nexmark import ids
from penstock.connectors.nexmark.channels import random_channels
from penstock.connectors.nexmark.texts import padding, phrase, pick, text_length
from penstock.connectors.nexmark.words import CITIES, FIRST_NAMES, FOUR_DIGITS, LAST_NAMES, STATES
from penstock.sdk.synthetic.clock import Clock
from penstock.sdk.synthetic.random import Integers, Stream

UTC = pa.timestamp("us", tz="UTC")
PERSON = pa.struct(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "email_address": pa.string(),
        "credit_card": pa.string(),
        "city": pa.string(),
        "state": pa.string(),
        "datetime": UTC,
        "extra": pa.string(),
    }
)
AUCTION = pa.struct(
    {
        "id": pa.int64(),
        "description": pa.string(),
        "item_name": pa.string(),
        "initial_bid": pa.int64(),
        "reserve": pa.int64(),
        "datetime": UTC,
        "expires": UTC,
        "seller": pa.int64(),
        "category": pa.int64(),
        "extra": pa.string(),
    }
)
BID = pa.struct(
    {
        "auction": pa.int64(),
        "bidder": pa.int64(),
        "price": pa.int64(),
        "channel": pa.string(),
        "url": pa.string(),
        "datetime": UTC,
        "extra": pa.string(),
    }
)
_FIRST_CATEGORY, _LAST_CATEGORY = 10, 14
_PERSON_BYTES, _AUCTION_BYTES, _BID_BYTES = 200, 500, 100
_NUMBER_BYTES = 8

Make = Callable[[Integers, Stream, Clock], pa.StructArray]


def persons(events: Integers, stream: Stream, clock: Clock) -> pa.StructArray:
    """Returns the persons that these events create."""

    def random_words(name: str, words: list[str]) -> pa.Array:
        return pick(words, events, stream.child(name))

    name = _join(" ", random_words("first", FIRST_NAMES), random_words("last", LAST_NAMES))
    user, host = (
        phrase(events, stream.child(part), size) for part, size in (("user", 7), ("host", 5))
    )
    email = pc.binary_join_element_wise(user, "@", host, ".com", "")
    card = _join(" ", *(random_words(f"card {index}", FOUR_DIGITS) for index in range(4)))
    city, state = random_words("city", CITIES), random_words("state", STATES)
    size = _NUMBER_BYTES + text_length(name, email, card, city, state)
    extra = padding(events, stream.child("extra"), size, _PERSON_BYTES)
    number = pa.array(ids.FIRST + ids.last_person(events))
    return _struct(PERSON, number, name, email, card, city, state, _times(clock, events), extra)


def auctions(events: Integers, stream: Stream, clock: Clock) -> pa.StructArray:
    """Returns the auctions that these events open."""
    item, text = phrase(events, stream.child("item"), 20), phrase(events, stream.child("text"), 100)
    bid = prices(events, stream.child("bid"))
    reserve = bid + prices(events, stream.child("reserve"))
    ahead = ids.OPEN_AUCTIONS * ids.ROUND // ids.AUCTIONS
    max_duration = max(2 * round(ahead * clock.step) - 1, 0)
    expires = clock.at(events) + 1000 + stream.child("length").integers(events, 0, max_duration)
    size = 6 * _NUMBER_BYTES + text_length(item, text)
    return _struct(
        AUCTION,
        pa.array(ids.FIRST + ids.last_auction(events)),
        text,
        item,
        pa.array(bid),
        pa.array(reserve),
        _times(clock, events),
        pa.array(expires, UTC),
        pa.array(ids.random_persons(events, stream.child("seller"), hot=0)),
        pa.array(stream.child("category").integers(events, _FIRST_CATEGORY, _LAST_CATEGORY)),
        padding(events, stream.child("extra"), size, _AUCTION_BYTES),
    )


def bids(events: Integers, stream: Stream, clock: Clock) -> pa.StructArray:
    """Returns the bids of these events."""
    channel, url = random_channels(events, stream.child("channel"))
    size = np.full(len(events), 4 * _NUMBER_BYTES)
    return _struct(
        BID,
        pa.array(ids.random_auctions(events, stream.child("auction"))),
        pa.array(ids.random_persons(events, stream.child("bidder"), hot=1)),
        pa.array(prices(events, stream.child("price"))),
        channel,
        url,
        _times(clock, events),
        padding(events, stream.child("extra"), size, _BID_BYTES),
    )


def prices(events: Integers, stream: Stream) -> Integers:
    """Returns prices from 1 to 1,000,000 in cents, with a log-uniform distribution."""
    cents: Integers = np.round(10 ** (stream.uniform(events) * 6) * 100).astype(np.int64)
    return cents


def _join(separator: str, *parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator)


def _times(clock: Clock, events: Integers) -> pa.Array:
    return pa.array(clock.at(events), UTC)


def _struct(kind: pa.StructType, *columns: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(columns, fields=list(kind))
