"""Avro with object containers as payloads."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro.container import block, container_schema, header, read_container
from penstock.formats.avro.datum import codec, row_payload
from penstock.formats.avro.plain import PlainAvro, declared_columns
from penstock.formats.avro.rows import RowReader, Value
from penstock.sdk.columns.avro_schemas import records_of
from penstock.sdk.columns.avro_types import avro_schema
from penstock.sdk.encoding.json_texts import COLUMNS
from penstock.sdk.encoding.lines import MAX_LENGTH
from penstock.sdk.record import Decoded, DecodeFailure, Encoded, Failure, Rows

_MAX_VALUES = 1_000_000
"""The largest number of values of a payload."""


@dataclass
class _Run:
    """Values of one schema, with the payload index and the number within the payload of each."""

    datum: Any
    reader: RowReader
    values: list[Value] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)

    def add(self, index: int, values: list[Value]) -> None:
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
                return declared_columns(container_schema(io.BytesIO(payload)), self.config)
            except Exception as error:
                if isinstance(error, PlanError):
                    raise
        return None

    def rows(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Rows:
        bad: list[DecodeFailure] = []
        batches: list[pa.RecordBatch] = []
        index: list[np.ndarray] = []
        for run in self._runs(payloads, schema, bad):
            decoded = run.reader.decode(run.values)
            payload_index = np.array(run.index, np.int64)
            for row, error in decoded.failures:
                text = _single_container(run.datum, run.values[row])
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

    def _runs(
        self, payloads: pa.BinaryArray, schema: pa.Schema, bad: list[DecodeFailure]
    ) -> Iterator[_Run]:
        """Yields the values of the payloads. Adds unreadable payloads to `bad`."""
        run: _Run | None = None
        for index, payload in enumerate(payloads.to_pylist()):
            datums: list[Any] = []

            def make_reader(
                datum: Any, datums: list[Any] = datums, run: _Run | None = run
            ) -> RowReader:
                datums.append(datum)
                same = run is not None and run.datum == datum
                return run.reader if run is not None and same else self._reader(datum, schema)

            try:
                reader, values = _read_container(payload, make_reader)
            except DecodeError as error:
                bad.append(DecodeFailure(index, payload, None, error))
                continue
            if reader is None or not values:
                continue
            if run is None or run.reader is not reader:
                if run is not None:
                    yield run
                run = _Run(datums[0], reader)
            run.add(index, values)
        if run is not None:
            yield run


def _read_container(
    payload: bytes | None, make_reader: Callable[[Any], RowReader]
) -> tuple[RowReader | None, list[Value]]:
    if payload is None:
        raise DecodeError("the record has no value", code="no-value")
    reader, values = None, []
    for part in read_container(io.BytesIO(payload), make_reader, MAX_LENGTH):
        if part.error is not None:
            raise part.error
        reader = part.reader
        values += part.values
        if len(values) > _MAX_VALUES:
            raise DecodeError(
                f"expected at most {_MAX_VALUES:,} values, found more", code="too-large"
            )
    return reader, values


def _single_container(datum: Any, value: Value) -> bytes:
    """Returns a container of a single value."""
    written = value.datum
    if isinstance(datum, list):
        written = records_of(datum)[value.branch][0], value.datum
    return header(datum, "none") + block([row_payload(written, codec(datum), b"")], "none")
