"""The channels that bids come through, and their addresses."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.nexmark.texts import slug
from penstock.sdk.kit.random import Integers, Stream

_HOT = {"Google": "abo/eoci", "Facebook": "eoax/oad", "Baidu": "abo/jack", "Apple": "abo/micah"}
_OTHERS = 10_000


def some_channel(rows: Integers, stream: Stream) -> tuple[pa.Array, pa.Array]:
    """A channel for each row and its address: every other time one of the four hot ones."""
    hot = stream.child("hot").integers(rows, 0, 1) > 0
    few = stream.child("few").integers(rows, 0, len(_HOT) - 1)
    many = len(_HOT) + stream.child("many").integers(rows, 0, _OTHERS - 1)
    at = pa.array(np.where(hot, few, many))
    names, urls = _channels(stream.seed)
    return names.take(at), urls.take(at)


@cache
def _channels(seed: int) -> tuple[pa.Array, pa.Array]:
    numbers, stream = np.arange(_OTHERS), Stream(seed, "channel")
    texts = pa.array(numbers).cast(pa.string())
    parts = [slug(numbers, stream.child(k), 5) for k in range(3)]
    paths = pc.binary_join_element_wise(*parts, "/")
    plain = pa.array(stream.child("plain").uniform(numbers) < 0.1)
    query = pc.if_else(plain, "", pc.binary_join_element_wise("&channel_id=", texts, ""))
    names = pc.binary_join_element_wise("channel", texts, "-")
    hot = pa.array([f"{path}/cidro" for path in _HOT.values()])
    return pa.concat_arrays([pa.array(list(_HOT)), names]), pa.concat_arrays(
        [_address(hot, pa.array([""] * len(_HOT))), _address(paths, query)]
    )


def _address(path: pa.Array, query: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(
        "https://www.nexmark.com/", path, "/item.htm?query=1", query, ""
    )
