"""The events: persons, auctions and bids, each a struct with a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.nexmark import ids
from penstock.connectors.nexmark.channels import some_channel
from penstock.connectors.nexmark.texts import filling, length, phrase, pick
from penstock.connectors.nexmark.words import CITIES, FIRST_NAMES, FOUR_DIGITS, LAST_NAMES, STATES
from penstock.sdk.kit.clock import Clock
from penstock.sdk.kit.random import Integers, Stream

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
    """The persons that appear at these events."""

    def picked(name: str, words: list[str]) -> pa.Array:
        return pick(words, events, stream.child(name))

    name = _joined(" ", picked("first", FIRST_NAMES), picked("last", LAST_NAMES))
    user, host = (
        phrase(events, stream.child(part), most) for part, most in (("user", 7), ("host", 5))
    )
    email = pc.binary_join_element_wise(user, "@", host, ".com", "")
    card = _joined(" ", *(picked(f"card {k}", FOUR_DIGITS) for k in range(4)))
    city, state = picked("city", CITIES), picked("state", STATES)
    size = _NUMBER_BYTES + length(name, email, card, city, state)
    extra = filling(events, stream.child("extra"), size, _PERSON_BYTES)
    number = pa.array(ids.FIRST + ids.last_person(events))
    return _struct(PERSON, number, name, email, card, city, state, _times(clock, events), extra)


def auctions(events: Integers, stream: Stream, clock: Clock) -> pa.StructArray:
    """The auctions that are opened at these events."""
    item, text = phrase(events, stream.child("item"), 20), phrase(events, stream.child("text"), 100)
    bid = prices(events, stream.child("bid"))
    reserve = bid + prices(events, stream.child("reserve"))
    ahead = ids.OPEN_AUCTIONS * ids.ROUND // ids.AUCTIONS
    longest = max(2 * round(ahead * clock.step) - 1, 0)
    expires = clock.at(events) + 1000 + stream.child("length").integers(events, 0, longest)
    size = 6 * _NUMBER_BYTES + length(item, text)
    return _struct(
        AUCTION,
        pa.array(ids.FIRST + ids.last_auction(events)),
        text,
        item,
        pa.array(bid),
        pa.array(reserve),
        _times(clock, events),
        pa.array(expires, UTC),
        pa.array(ids.some_person(events, stream.child("seller"), hot=0)),
        pa.array(stream.child("category").integers(events, _FIRST_CATEGORY, _LAST_CATEGORY)),
        filling(events, stream.child("extra"), size, _AUCTION_BYTES),
    )


def bids(events: Integers, stream: Stream, clock: Clock) -> pa.StructArray:
    """The bids that are made at these events."""
    channel, url = some_channel(events, stream.child("channel"))
    size = np.full(len(events), 4 * _NUMBER_BYTES)
    return _struct(
        BID,
        pa.array(ids.some_auction(events, stream.child("auction"))),
        pa.array(ids.some_person(events, stream.child("bidder"), hot=1)),
        pa.array(prices(events, stream.child("price"))),
        channel,
        url,
        _times(clock, events),
        filling(events, stream.child("extra"), size, _BID_BYTES),
    )


def prices(events: Integers, stream: Stream) -> Integers:
    """Prices in cents, from one to a million, small ones as likely as large ones by magnitude."""
    drawn: Integers = np.round(10 ** (stream.uniform(events) * 6) * 100).astype(np.int64)
    return drawn


def _joined(between: str, *parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, between)


def _times(clock: Clock, events: Integers) -> pa.Array:
    return pa.array(clock.at(events), UTC)


def _struct(kind: pa.StructType, *columns: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(columns, fields=list(kind))
