"""Directories of rows: values of columns, and a time by a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.files.config import TimePartition
from penstock.connectors.files.path_columns import HIVE_NULL

UNQUOTED = " ,.;+-_~!@$&()|<>"


@dataclass(frozen=True)
class Directories:
    """The directories of rows below the directory of a sink: that of the time, then columns."""

    columns: Sequence[str] = ()
    time: TimePartition | None = None

    @property
    def names(self) -> list[str]:
        """The columns that the directories depend on."""
        return [*([self.time.column] if self.time else []), *self.columns]

    @property
    def unstored(self) -> set[str]:
        """The columns that files do not contain."""
        hidden = [self.time.column] if self.time and not self.time.stored else []
        return {*self.columns, *hidden}

    def group(self, rows: pa.RecordBatch) -> Iterator[tuple[str, Any]]:
        """Yields each directory with the indexes of its rows; None for all rows."""
        parts = [
            pc.binary_join_element_wise(
                f"{quote(name, UNQUOTED)}=", directory_values(rows.column(name)), ""
            )
            for name in self.columns
        ]
        if self.time is not None:
            parts.insert(0, _time_directories(rows.column(self.time.column), self.time.pattern))
        if not parts:
            yield "", None
            return
        keys = pc.dictionary_encode(pc.binary_join_element_wise(*parts, "/"))
        codes = keys.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        boundaries = np.flatnonzero(np.diff(codes[order])) + 1
        for indexes in np.split(order, boundaries):
            if len(indexes):
                yield keys.dictionary[int(codes[indexes[0]])].as_py(), indexes


def _time_directories(times: pa.Array, pattern: str) -> pa.Array:
    """Returns the directories of times in UTC."""
    seconds = pc.floor_temporal(times.cast(pa.timestamp("us")), unit="second")
    texts = pc.strftime(seconds.cast(pa.timestamp("s")), format=pattern)
    return pc.fill_null(texts, HIVE_NULL)


def directory_values(column: pa.Array) -> pa.Array:
    """Returns the values of a column as quoted directory names."""
    distinct = pc.dictionary_encode(column, null_encoding="encode")
    names = [
        quote(_text(value), UNQUOTED) if value.is_valid else HIVE_NULL
        for value in distinct.dictionary
    ]
    return pa.array(names, pa.string()).take(distinct.indices)


def _text(scalar: pa.Scalar) -> str:
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):
        text = str(scalar.cast(pa.string()).as_py())
        return text.removesuffix("Z").removesuffix(".000000")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value)
