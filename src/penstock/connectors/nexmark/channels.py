"""Channels of bids, and their URLs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.nexmark.texts import slug
from penstock.sdk.synthetic.random import Integers, Stream

_HOT = {"Google": "abo/eoci", "Facebook": "eoax/oad", "Baidu": "abo/jack", "Apple": "abo/micah"}
_COLD_CHANNELS = 10_000


def random_channels(rows: Integers, stream: Stream) -> tuple[pa.Array, pa.Array]:
    """Returns a channel and its URL for each row; half of the rows have a hot channel."""
    hot = stream.child("hot").integers(rows, 0, 1) > 0
    hot_index = stream.child("few").integers(rows, 0, len(_HOT) - 1)
    cold_index = len(_HOT) + stream.child("many").integers(rows, 0, _COLD_CHANNELS - 1)
    index = pa.array(np.where(hot, hot_index, cold_index))
    names, urls = _channels(stream.seed)
    return names.take(index), urls.take(index)


@cache
def _channels(seed: int) -> tuple[pa.Array, pa.Array]:
    numbers, stream = np.arange(_COLD_CHANNELS), Stream(seed, "channel")
    texts = pa.array(numbers).cast(pa.string())
    parts = [slug(numbers, stream.child(index), 5) for index in range(3)]
    paths = pc.binary_join_element_wise(*parts, "/")
    plain = pa.array(stream.child("plain").uniform(numbers) < 0.1)
    query = pc.if_else(plain, "", pc.binary_join_element_wise("&channel_id=", texts, ""))
    names = pc.binary_join_element_wise("channel", texts, "-")
    hot = pa.array([f"{path}/cidro" for path in _HOT.values()])
    return pa.concat_arrays([pa.array(list(_HOT)), names]), pa.concat_arrays(
        [_url(hot, pa.array([""] * len(_HOT))), _url(paths, query)]
    )


def _url(path: pa.Array, query: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(
        "https://www.nexmark.com/", path, "/item.htm?query=1", query, ""
    )
