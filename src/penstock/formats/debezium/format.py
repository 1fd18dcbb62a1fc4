"""The base of the formats of change events: an envelope in another format."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.formats.debezium.envelope import Columns, to_events, to_rows
from penstock.formats.debezium.unavailable import resolve_unavailable
from penstock.sdk import Decoded, Encoded, Failure, Format
from penstock.sdk.columns.binary_arrays import sort_failures


class ChangeEvents(Format[Any]):
    """The base of the formats of change events. `inner` is the format of the envelope."""

    carries_operations: ClassVar[bool] = True
    inner: Format[Any]

    @property
    def has_complete_changes(self) -> bool:
        return bool(self.config.before == "complete")

    def columns_of(self, schema: pa.Schema) -> Columns:
        """Returns the columns of rows of `schema`, by their role in an event."""
        config = self.config
        return Columns.of(schema, self.operation_column, config.time_column, self._source_column)

    @property
    def _source_column(self) -> str | None:
        return getattr(self.config, "source_column", None)

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        """Decodes events. A payload that is null follows the event of a delete and is skipped."""
        columns = self.columns_of(schema)
        present = np.flatnonzero(np.asarray(payloads.is_valid()))
        decoded = self.decode_events(payloads.drop_null(), columns)
        inner = present if decoded.index is None else present[decoded.index.to_numpy()]
        failures = [Failure(int(present[f.index]), f.error) for f in decoded.failures]
        events, unavailable = resolve_unavailable(decoded.rows, self.config.unavailable)
        rejected = {failure.index: failure.error for failure in unavailable}
        rows, index, bad = to_rows(events, columns, schema, rejected)
        failures += [Failure(int(inner[failure.index]), failure.error) for failure in bad]
        return Decoded(rows, pa.array(inner[index], pa.int64()), sort_failures(failures))

    def decode_events(self, payloads: pa.BinaryArray, columns: Columns) -> Decoded:
        """Decodes payloads, none of which is null, into the columns of an envelope."""
        envelope = columns.envelope()
        return self.inner.decode(payloads, envelope)

    def encode(self, rows: pa.RecordBatch) -> Encoded:
        events = to_events(
            rows, self.columns_of(rows.schema), self.primary_key, complete=self.complete_changes
        )
        encoded = self.encode_events(events.batch)
        index = events.rows if encoded.index is None else events.rows[encoded.index.to_numpy()]
        failures = [Failure(int(events.rows[f.index]), f.error) for f in encoded.failures]
        failures = sort_failures([*events.failures, *failures])
        return Encoded(encoded.payloads, pa.array(index, pa.int64()), failures)

    def encode_events(self, events: pa.RecordBatch) -> Encoded:
        """Encodes the columns of events, one payload each."""
        return self.inner.encode(self.encoded_events(events))

    def encoded_events(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the columns of events as `inner` encodes them."""
        return events

    def prepare(self, columns: pa.Schema) -> None:
        empty = pa.RecordBatch.from_pylist([], columns)
        events = to_events(empty, self.columns_of(columns), self.primary_key)
        self.inner.prepare(self.encoded_events(events.batch).schema)
