"""Partition values: the texts of columns that data files do not contain.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.lakes.grouping import group_rows

MAX_DIRECTORY_BYTES = 200
Values = Mapping[str, str | None]


def group(
    rows: pa.RecordBatch, columns: Sequence[str]
) -> Iterator[tuple[Values, npt.NDArray[np.int64] | None]]:
    """Yields the values of each partition with the indexes of its rows; None for all rows."""
    if not columns:
        yield {}, None
        return
    found = [rows.column(name) for name in columns]
    for indexes in group_rows(found):
        first = [to_texts(column.slice(int(indexes[0]), 1))[0].as_py() for column in found]
        yield dict(zip(columns, first, strict=True)), indexes


def to_texts(values: pa.Array) -> pa.Array:
    """Returns partition values as texts."""
    type_ = values.type
    if pa.types.is_decimal(type_):
        texts = [None if value is None else f"{value:f}" for value in values.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_timestamp(type_):
        local = values.cast(pa.timestamp("us")).cast(pa.string())
        if type_.tz is None:
            return local
        return pc.binary_join_element_wise(pc.replace_substring(local, " ", "T"), "Z", "")
    return values.cast(pa.string())


def from_text(text: str | None, type_: pa.DataType) -> pa.Scalar:
    """Returns a partition value of a text. Raises ArrowInvalid."""
    if not text:
        return pa.scalar(None, type_)
    if pa.types.is_timestamp(type_):
        local = pa.array([text.removesuffix("Z")]).cast(pa.timestamp("us"))
        return (local.cast(type_) if type_.tz is None else pc.assume_timezone(local, type_.tz))[0]
    return pa.scalar(text).cast(type_)


def directory(values: Values) -> str:
    """Returns the directory of a partition. Readers use the values in the log, not those in it."""
    names = [
        f"{quote(name, '')}={quote(value or '__HIVE_DEFAULT_PARTITION__', '')}"
        for name, value in values.items()
    ]
    return "".join(f"{name}/" for name in names if len(name) <= MAX_DIRECTORY_BYTES)
