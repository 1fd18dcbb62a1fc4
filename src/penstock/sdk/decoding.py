"""Decoding of payloads, in this process or in forks, where a payload may crash its decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.conform import concat_batches
from penstock.sdk.forked import iterate_forked
from penstock.sdk.format import Format
from penstock.sdk.record import DecodeFailure, Rows
from penstock.sdk.source import Source
from penstock.sdk.tombstones import decode_with_deletes


def decode_payloads(source: Source[Any], batch: pa.RecordBatch, isolated: bool = False) -> Rows:
    """Decodes a batch of a source that declares BYTES into rows with the columns of the source.

    With `isolated` a payload that crashes its decoder is a failure (see `decode_in_fork`).
    """
    assert source.format is not None and source.columns is not None
    decode = decode_in_fork if isolated else type(source.format).rows
    if source.deletes_by_key:
        return decode_with_deletes(source, batch, decode)
    return decode(source.format, batch.column("payload"), source.columns)


def decode_in_fork(format_: Format[Any], payloads: pa.BinaryArray, schema: pa.Schema) -> Rows:
    """Decodes payloads as `Format.rows` does, in a fork of this process.

    A payload that crashes the fork is a failure with the code `decoder-crashed`. Finding the
    payload needs about `log2(len(payloads))` forks.
    """

    def attempt(start: int, stop: int) -> Rows:
        part = payloads.slice(start, stop - start)
        return next(iterate_forked(lambda: iter([format_.rows(part, schema)])))

    batches: list[pa.RecordBatch] = []
    index: list[np.ndarray] = [np.array([], np.int64)]
    failures: list[DecodeFailure] = []
    for start, stop, outcome in bisect_failures(len(payloads), attempt, _raise_unexpected):
        if isinstance(outcome, RecordError):
            failures.append(DecodeFailure(start, payloads[start].as_py(), None, outcome))
            continue
        rows, row_index, failed = outcome
        batches.append(rows)
        index.append(
            start + (np.arange(stop - start) if row_index is None else row_index.to_numpy())
        )
        failures += [failure._replace(index=start + failure.index) for failure in failed]
    return Rows(concat_batches(batches, schema), pa.array(np.concatenate(index)), failures)


def decode_record_in_fork(decode: Callable[[], pa.RecordBatch]) -> pa.RecordBatch:
    """Decodes one payload with `decode` in a fork of this process. Raises RecordError."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield decode()

    (rows,) = iterate_forked(batches)
    return rows


def _raise_unexpected(error: Exception) -> RecordError:
    raise error
