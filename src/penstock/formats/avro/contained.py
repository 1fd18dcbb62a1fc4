"""Avro with object containers as payloads."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro.container import block, container_schema, header, read_container
from penstock.formats.avro.datum import codec, row_payload
from penstock.formats.avro.plain import PlainAvro
from penstock.sdk.columns.avro_types import arrow_schema, avro_schema
from penstock.sdk.columns.conform import conform_each
from penstock.sdk.encoding.arrow_files import spark_compatible
from penstock.sdk.encoding.json_texts import COLUMNS
from penstock.sdk.encoding.lines import MAX_LENGTH
from penstock.sdk.record import Decoded, DecodeFailure, Encoded, Failure, Rows

_MAX_VALUES = 1_000_000
"""The largest number of values of a payload."""


@dataclass
class _Run:
    """Values of one schema, with the payload index and the number within the payload of each."""

    columns: pa.Schema
    values: list[Any] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)

    def add(self, index: int, values: list[Any]) -> None:
        self.values += values
        self.index += [index] * len(values)
        self.parts += range(len(values))


class ContainedAvro(PlainAvro):
    """Avro that reads all records of a payload and writes one record per payload.

    A payload that cannot be read to its end yields no row. The text of a record that does not fit
    the columns is a container of that record.
    """

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        if self.config.as_json:
            return COLUMNS
        for payload in payloads.drop_null().to_pylist():
            try:
                return spark_compatible(arrow_schema(container_schema(io.BytesIO(payload))))
            except Exception as error:
                if isinstance(error, PlanError):
                    raise
        return None

    def rows(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Rows:
        bad: list[DecodeFailure] = []
        batches: list[pa.RecordBatch] = []
        index: list[np.ndarray] = []
        for run in _runs(payloads, bad, self.config.as_json):
            rows = self._rows(run.values, run.columns, schema)
            decoded = conform_each(rows, schema, self.config.conversion)
            payload_index = np.array(run.index, np.int64)
            for row, error in decoded.failures:
                text = _single_container(payloads[run.index[row]].as_py(), run.values[row])
                bad.append(DecodeFailure(run.index[row], text, run.parts[row], error))
            batches.append(decoded.rows)
            if decoded.index is not None:
                payload_index = payload_index[decoded.index.to_numpy()]
            index.append(payload_index)
        rows = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
        return Rows(
            rows[0] if rows else pa.RecordBatch.from_pylist([], schema),
            pa.array(np.concatenate([np.array([], np.int64), *index])),
            sorted(bad, key=lambda record: (record[0], record.part or 0)),
        )

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        rows, index, bad = self.rows(payloads, schema)
        return Decoded(rows, index, [Failure(record[0], record.error) for record in bad])

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        compression = self.config.compression
        head = header(self.datum or avro_schema(rows.schema), compression)
        encoded = super().encode(rows)
        payloads = [head + block([datum], compression) for datum in encoded.payloads.to_pylist()]
        return encoded._replace(payloads=pa.array(payloads, pa.binary()))


def _runs(payloads: pa.BinaryArray, bad: list[DecodeFailure], any_type: bool) -> Iterator[_Run]:
    """Yields the values of the payloads. Adds unreadable payloads to `bad`."""
    run: _Run | None = None
    for index, payload in enumerate(payloads.to_pylist()):
        try:
            columns, values = _read_container(payload, any_type)
        except DecodeError as error:
            bad.append(DecodeFailure(index, payload, None, error))
            continue
        if not values:
            continue
        if run is None or run.columns != columns:
            if run is not None:
                yield run
            run = _Run(columns)
        run.add(index, values)
    if run is not None:
        yield run


def _read_container(payload: bytes | None, any_type: bool) -> tuple[pa.Schema, list[Any]]:
    if payload is None:
        raise DecodeError("the record has no value", code="no-value")
    columns, values = pa.schema([]), []
    try:
        for part in read_container(io.BytesIO(payload), MAX_LENGTH, any_type=any_type):
            if part.error is not None:
                raise part.error
            columns = part.columns
            values += part.values
            if len(values) > _MAX_VALUES:
                raise DecodeError(
                    f"expected at most {_MAX_VALUES:,} values, found more", code="too-long"
                )
        return columns, values
    except PlanError as error:
        raise DecodeError(error.message, code=error.code) from error


def _single_container(payload: bytes, value: Any) -> bytes:
    """Returns a container of a single value of a payload."""
    datum = container_schema(io.BytesIO(payload))
    return header(datum, "none") + block([row_payload(value, codec(datum), b"")], "none")
