"""Avro whose payloads are object containers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro import Avro
from penstock.formats.avro.container import block, blocks, header, schema_of
from penstock.formats.avro.datum import codec, payload_of, rows_of
from penstock.sdk.kit.avrotypes import arrow_schema, avro_schema
from penstock.sdk.kit.columns import conform_each
from penstock.sdk.kit.tables import portable
from penstock.sdk.record import Bad, Decoded, Encoded, Failure, Rows


@dataclass
class _Run:
    """Values of one schema: the `part`th of the payload at `index`, for each."""

    whole: pa.Schema
    values: list[Any] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)

    def add(self, index: int, values: list[Any]) -> None:
        self.values += values
        self.index += [index] * len(values)
        self.parts += range(len(values))


class ContainedAvro(Avro):
    """Reads all records of each payload, and writes one into each.

    A payload that cannot be read to its end gives no row. The text of a record that does not fit
    the columns is a container of that record alone.
    """

    def infer(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        for payload in payloads.drop_null().to_pylist():
            try:
                return portable(arrow_schema(schema_of(payload)))
            except Exception as error:
                if isinstance(error, PlanError):
                    raise
        return None

    def rows(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Rows:
        bad: list[Bad] = []
        batches: list[pa.RecordBatch] = []
        index: list[np.ndarray] = []
        for run in _runs(payloads, bad):
            found = conform_each(rows_of(run.values, run.whole), schema)
            places = np.array(run.index, np.int64)
            for at, error in found.failures:
                text = _alone(payloads[run.index[at]].as_py(), run.values[at])
                bad.append(Bad(run.index[at], text, run.parts[at], error))
            batches.append(found.rows)
            index.append(places if found[1] is None else places[found[1].to_numpy()])
        rows = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
        return Rows(
            rows[0] if rows else pa.RecordBatch.from_pylist([], schema),
            pa.array(np.concatenate([np.array([], np.int64), *index])),
            sorted(bad, key=lambda each: (each[0], each.part or 0)),
        )

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        rows, index, bad = self.rows(payloads, schema)
        return Decoded(rows, index, [Failure(each[0], each.error) for each in bad])

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        compression = self.config.compression
        begin = header(self.datum or avro_schema(rows.schema), compression)
        encoded = super().encode(rows)
        payloads = [begin + block([each], compression) for each in encoded.payloads.to_pylist()]
        return encoded._replace(payloads=pa.array(payloads, pa.binary()))


def _runs(payloads: pa.BinaryArray, bad: list[Bad]) -> Iterator[_Run]:
    """What is in the payloads; those that cannot be read are added to `bad`."""
    run: _Run | None = None
    for index, payload in enumerate(payloads.to_pylist()):
        try:
            whole, values = _contents(payload)
        except DecodeError as error:
            bad.append(Bad(index, payload, None, error))
            continue
        if not values:
            continue
        if run is None or run.whole != whole:
            if run is not None:
                yield run
            run = _Run(whole)
        run.add(index, values)
    if run is not None:
        yield run


def _contents(payload: bytes | None) -> tuple[pa.Schema, list[Any]]:
    if payload is None:
        raise DecodeError("the record has no value", code="no-value")
    whole, found = pa.schema([]), []
    try:
        for values, _, of, error in blocks(io.BytesIO(payload)):
            if error is not None:
                raise error
            whole = of
            found += values
        return whole, found
    except PlanError as error:
        raise DecodeError(error.message, code=error.code) from error


def _alone(payload: bytes, value: Any) -> bytes:
    """A container of one of the values in a payload."""
    datum = schema_of(payload)
    return header(datum, "none") + block([payload_of(value, codec(datum), b"")], "none")
