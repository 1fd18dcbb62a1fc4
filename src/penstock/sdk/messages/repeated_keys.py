"""Keys that a message repeats, such as query parameters and headers, as maps with unique keys."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.config import Config


class RepeatedKeys(Config):
    """An option of sources whose messages have maps of texts in their metadata."""

    repeated_keys: Literal["last", "array"] = "last"
    """The value of a key that a message repeats in its metadata, such as a header: the `last` one,
    or all in an `array`. With `array` maps have the type MAP<STRING, ARRAY<STRING>>."""


def metadata_field(field: pa.Field, config: Config) -> pa.Field:
    """Returns the field of a metadata column with the type that `repeated_keys` requires."""
    is_array = isinstance(config, RepeatedKeys) and config.repeated_keys == "array"
    if not (is_array and pa.types.is_map(field.type)):
        return field
    return field.with_type(pa.map_(field.type.key_type, pa.list_(field.type.item_type)))


def unique_keys(maps: pa.MapArray, type_: pa.MapType) -> pa.MapArray:
    """Returns maps in which each key is unique, in the order of first occurrence.

    The items are the last ones, or lists of all items where `type_` has lists.
    """
    if pa.types.is_list(type_.item_type):
        rows = [row if row is None else list(_lists(row).items()) for row in maps.to_pylist()]
    elif _has_repeated_keys(maps):
        rows = [row if row is None else list(dict(row).items()) for row in maps.to_pylist()]
    else:
        return maps.cast(type_)
    return pa.array(rows, type_)


def _lists(items: list[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    lists: dict[Any, list[Any]] = {}
    for key, value in items:
        lists.setdefault(key, []).append(value)
    return lists


def _has_repeated_keys(maps: pa.MapArray) -> bool:
    pairs = pa.struct([("key", maps.type.key_type), ("value", maps.type.item_type)])
    lists = maps.cast(pa.list_(pairs))
    rows = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    codes = lists.flatten().field("key").dictionary_encode().indices.to_numpy()
    identities = rows * (int(codes.max(initial=0)) + 1) + codes
    return len(np.unique(identities)) < len(identities)
