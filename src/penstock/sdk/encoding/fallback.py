"""Decoding of many payloads at a time, with a fallback to single payloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.binary_arrays import sort_failures, split_ranges
from penstock.sdk.columns.conform import collect_decoded, error_code, error_text
from penstock.sdk.record import Decoded, Failure

_ROWS = 8192
_BYTES = 1 << 20
_SMALL_PART = 16
_FALLBACK_RATIO = 16


def decode_with_fallback(
    payloads: pa.BinaryArray,
    schema: pa.Schema,
    read: Callable[[pa.BinaryArray], pa.RecordBatch],
    normalize: Callable[[bytes], bytes],
    read_normalized: Callable[[list[bytes]], pa.RecordBatch],
) -> Decoded:
    """Decodes payloads to one row each. No payload may be null.

    `read` decodes many payloads or raises any exception. After an exception, halves are tried. In
    small parts, and in large ones while many payloads fail, `normalize` converts each payload to
    a form for `read_normalized`, or raises a DecodeError. For a payload that `read` accepts, both
    must return the same value.
    """
    decoded = normalized = 0

    def attempt(part: pa.BinaryArray) -> object:
        nonlocal decoded, normalized
        try:
            rows = read(part)
        except Exception:
            if len(part) > _SMALL_PART and _FALLBACK_RATIO * normalized <= decoded:
                raise
            normalized += len(part)
            return _decode_singly(part, schema, normalize, read_normalized)
        decoded += len(part)
        return rows

    return decode_in_parts(payloads, schema, attempt, None)


def decode_in_parts(
    payloads: pa.BinaryArray,
    schema: pa.Schema,
    read: Callable[[pa.BinaryArray], object],
    convert_error: Callable[[Exception], DecodeError] | None,
) -> Decoded:
    """Decodes payloads with `bisect_failures`, in parts. No payload may be null.

    A part fits the cache of the processor, which doubles the speed of arrow-json. `read` returns
    a batch with one row for each payload, or a `Decoded`, or raises an exception.
    """

    def outcomes() -> Iterator[tuple[int, int, object]]:
        for start, stop in split_ranges(payloads, _ROWS, _BYTES):
            part = payloads.slice(start, stop - start)

            def attempt(low: int, high: int, part: pa.BinaryArray = part) -> object:
                return read(part.slice(low, high - low))

            for low, high, outcome in bisect_failures(len(part), attempt, convert_error):
                yield start + low, start + high, outcome

    return collect_decoded(outcomes(), schema)


def _decode_singly(
    payloads: pa.BinaryArray,
    schema: pa.Schema,
    normalize: Callable[[bytes], bytes],
    read_normalized: Callable[[list[bytes]], pa.RecordBatch],
) -> Decoded:
    texts: list[bytes] = []
    positions: list[int] = []
    failures: list[Failure] = []
    for position, payload in enumerate(payloads.to_pylist()):
        try:
            texts.append(normalize(payload))
            positions.append(position)
        except DecodeError as error:
            failures.append(Failure(position, error))

    def attempt(start: int, stop: int) -> pa.RecordBatch:
        return read_normalized(texts[start:stop])

    decoded = collect_decoded(bisect_failures(len(texts), attempt, _decode_error), schema)
    failures += [Failure(positions[failure[0]], failure.error) for failure in decoded.failures]
    index = range(len(texts)) if decoded.index is None else decoded.index.to_pylist()
    return Decoded(
        decoded.rows,
        pa.array([positions[number] for number in index], pa.int64()),
        sort_failures(failures),
    )


def _decode_error(error: Exception) -> DecodeError:
    return DecodeError(f"cannot be read: {error_text(error)}", code=error_code(error))
