"""The contract of sinks for values: types, texts, names, sizes, payloads and bad rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.sdk import BatchId
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import requires_opaque_payloads, requires_rows, run_if
from penstock.testing.contract.rows import Row, make_large_row, make_rows, sort_by_id
from penstock.testing.contract.sink_harness import ReadRows, commit_writer
from penstock.testing.contract.sink_pipeline import SinkPipelineContract


class SinkValuesContract(SinkPipelineContract):
    """The part of `SinkContract` that compares values."""

    @requires_opaque_payloads
    def test_opaque_payloads(self, create_sink: Any, rows: ReadRows) -> None:
        """Checks that the transport leaves payloads unchanged: all bytes, empty, 1 MiB."""
        expected = sample.make_payloads(self.effective_payload_kind, self.max_payload_size)
        sink, batch = create_sink(), BatchId("query-1", 0)
        writer = self.create_writer(sink, batch)
        encoded = pa.RecordBatch.from_pylist(make_rows(*range(len(expected))), sample.SIMPLE)
        assert not writer.write(encoded, pa.array(expected, pa.binary()))
        sink.commit(batch, [commit_writer(writer)])
        sink.complete()
        self.format = "raw"
        assert sorted(row["value"] for row in rows(sample.RAW)) == sorted(expected)

    @requires_rows
    def test_every_type(self, create_sink: Any, rows: ReadRows) -> None:
        self._assert_equal(create_sink(), rows, sample.make_typed_rows(), sample.EVERY_TYPE)

    @requires_rows
    def test_special_texts(self, create_sink: Any, rows: ReadRows) -> None:
        self._assert_equal(create_sink(), rows, sample.make_special_texts())

    @requires_rows
    def test_special_column_names(self, create_sink: Any, rows: ReadRows) -> None:
        self._assert_equal(create_sink(), rows, sample.make_special_names(), sample.SPECIAL_NAMES)

    @requires_rows
    def test_large_value(self, create_sink: Any, rows: ReadRows) -> None:
        self._assert_equal(create_sink(), rows, make_large_row())

    @run_if(lambda contract: contract.bad_row is not None, lambda _: "no bad_row")
    def test_bad_row_is_rejected(self, create_sink: Any, rows: ReadRows) -> None:
        """Checks that a writer returns a failure for the bad row and writes all other rows."""
        assert self.bad_row is not None
        sink, batch = create_sink(), BatchId("query-1", 0)
        writer = self.create_writer(sink, batch)
        good = make_rows(1, 2)
        failures = self.write_rows(sink, writer, [good[0], self.bad_row, good[1]])
        assert [failure.index for failure in failures] == [1]
        sink.commit(batch, [commit_writer(writer)])
        sink.complete()
        assert sort_by_id(rows(sample.SIMPLE)) == good

    def _assert_equal(
        self, sink: Any, rows: ReadRows, expected: list[Row], schema: pa.Schema = sample.SIMPLE
    ) -> None:
        """Writes rows, and checks that the same rows are read."""
        self.write_batch(sink, 0, expected, schema=schema)
        sink.complete()
        assert sort_by_id(rows(schema)) == expected
