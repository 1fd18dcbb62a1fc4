"""Decoding many payloads at once where all is well, and one by one where it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.sdk.isolate import isolate
from penstock.sdk.kit.arrays import in_order, parts
from penstock.sdk.kit.columns import code_of, gather, reason
from penstock.sdk.record import Decoded, Failure

_ROWS = 8192
_BYTES = 1 << 20
_FEW = 16
_RARE = 16


def decode_closely(
    payloads: pa.BinaryArray,
    schema: pa.Schema,
    read: Callable[[pa.BinaryArray], pa.RecordBatch],
    mend: Callable[[bytes], bytes],
    read_mended: Callable[[list[bytes]], pa.RecordBatch],
) -> Decoded:
    """Rows of `payloads`, none of which is null.

    `read` makes one row of each payload, or raises. Where it raises, parts are tried. In small
    parts, and in large ones as long as many payloads need it, `mend` puts each payload into a
    form for `read_mended`, or raises the DecodeError that says what is wrong with it. Whatever
    `read` takes alone has to come out of `mend` with the same value.
    """
    plainly = closely = 0

    def attempt(some: pa.BinaryArray) -> object:
        nonlocal plainly, closely
        try:
            rows = read(some)
        except Exception:
            if len(some) > _FEW and _RARE * closely <= plainly:
                raise
            closely += len(some)
            return _singly(some, schema, mend, read_mended)
        plainly += len(some)
        return rows

    return decode_parts(payloads, schema, attempt, None)


def decode_parts(
    payloads: pa.BinaryArray,
    schema: pa.Schema,
    read: Callable[[pa.BinaryArray], object],
    blame: Callable[[Exception], DecodeError] | None,
) -> Decoded:
    """Rows of `payloads`, none of which is null, by `isolate` over parts of a good size.

    That is one that fits the processor's cache, which doubles the speed of arrow-json.
    `read` gives one row for each payload or raises, or gives a `Decoded`.
    """

    def outcomes() -> Iterator[tuple[int, int, object]]:
        for start, stop in parts(payloads, _ROWS, _BYTES):
            part = payloads.slice(start, stop - start)

            def attempt(low: int, high: int, part: pa.BinaryArray = part) -> object:
                return read(part.slice(low, high - low))

            for low, high, outcome in isolate(len(part), attempt, blame):
                yield start + low, start + high, outcome

    return gather(outcomes(), schema)


def _singly(
    payloads: pa.BinaryArray,
    schema: pa.Schema,
    mend: Callable[[bytes], bytes],
    read_mended: Callable[[list[bytes]], pa.RecordBatch],
) -> Decoded:
    texts: list[bytes] = []
    places: list[int] = []
    failures: list[Failure] = []
    for place, payload in enumerate(payloads.to_pylist()):
        try:
            texts.append(mend(payload))
            places.append(place)
        except DecodeError as error:
            failures.append(Failure(place, error))
    found = gather(isolate(len(texts), lambda a, b: read_mended(texts[a:b]), _reason), schema)
    failures += [Failure(places[f[0]], f.error) for f in found.failures]
    index = range(len(texts)) if found[1] is None else found[1].to_pylist()
    return Decoded(found.rows, pa.array([places[i] for i in index], pa.int64()), in_order(failures))


def _reason(error: Exception) -> DecodeError:
    return DecodeError(f"cannot be read: {reason(error)}", code=code_of(error))
