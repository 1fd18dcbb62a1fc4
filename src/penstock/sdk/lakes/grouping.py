"""Division of rows by the values of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def group_rows(columns: Sequence[pa.Array]) -> Iterator[npt.NDArray[np.int64]]:
    """Yields the indexes of the rows with equal values in all columns (at least one)."""
    count = len(columns[0])
    codes = np.zeros(count, np.int64)
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = codes * max(len(encoded.dictionary), 1)
        codes += encoded.indices.to_numpy(zero_copy_only=False)
        _, codes = np.unique(codes, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    for indexes in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        if len(indexes):
            yield indexes
