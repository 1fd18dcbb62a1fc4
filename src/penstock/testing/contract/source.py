"""The contract of sources."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.catalyst.columns import to_arrow, to_spark
from penstock.sdk import Capability, Conjunct, Read
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import (
    once_per_pipeline,
    once_per_transport,
    provides,
    requires,
    requires_opaque_payloads,
    requires_rows,
    run_if,
)
from penstock.testing.contract.pipeline import Pipeline
from penstock.testing.contract.rows import Row, make_rows, sort_by_id
from penstock.testing.contract.source_harness import Put, SourceHarness, restore_offset

_requires_generated_rows = run_if(
    lambda contract: not provides(contract, "put"),
    lambda _: "another test checks the same with rows of `put`",
)
_requires_message_size = run_if(
    lambda contract: (
        "max_message_size" in contract.component.config_type.model_fields
        and not contract.has_journal
    ),
    lambda contract: f"{contract.component.__name__} has no max_message_size, or a journal has it",
)
_TEXT_IDS = sample.EVERY_TYPE.set(0, pa.field("id", pa.string()))
_RECORD_UNITS = ("records", "messages", "rows")


class SourceContract(SourceHarness):
    """The contract of sources. Set `component`, and define the fixtures `options` and `put`."""

    @pytest.fixture
    def initial_data(self, put: Put) -> None:
        """Puts a row, because some systems can only be checked if they have data."""
        put(make_rows(1), sample.SIMPLE)

    @pytest.mark.usefixtures("initial_data")
    def test_check(self, create_source: Any) -> None:
        source = create_source()
        source.check()
        source.close()

    def test_all_rows_are_read(self, create_source: Any, put: Put) -> None:
        put(make_rows(*range(10)), sample.SIMPLE)
        rows, _ = self.read_all(create_source())
        assert sort_by_id(rows) == make_rows(*range(10))

    @_requires_generated_rows
    @requires(Capability.REPLAY)
    def test_generated_range_is_replayable(self, create_source: Any) -> None:
        first = create_source(self.get_schema(create_source))
        start = restore_offset(first.initial_offset())
        end = restore_offset(first.limit_batch(start, first.latest_offset(start)))
        rows = self.read_range(first, start, end)
        second = create_source(self.get_schema(create_source))
        assert self.read_range(second, start, end) == rows

    @requires(Capability.REPLAY)
    def test_range_is_replayable(self, create_source: Any, put: Put) -> None:
        put(make_rows(*range(10)), sample.SIMPLE)
        source = create_source()
        start = restore_offset(source.initial_offset())
        end = restore_offset(source.latest_offset(start))
        rows = self.read_range(source, start, end)
        if Capability.TAIL in self.capabilities:
            put(make_rows(*range(10, 20)), sample.SIMPLE)
        assert self.read_range(create_source(), start, end) == rows
        assert len(rows) == 10

    def test_offsets_are_json_and_never_decrease(self, create_source: Any) -> None:
        first = create_source(self.get_schema(create_source))
        start = first.initial_offset()
        assert restore_offset(start) == start
        end = first.latest_offset(start)
        assert restore_offset(end) == end
        self.assert_ordered(first, start, end)
        self.assert_ordered(first, end, first.latest_offset(restore_offset(end)))
        second = create_source(self.get_schema(create_source))
        self.assert_ordered(second, restore_offset(end), second.latest_offset(restore_offset(end)))
        batch_end = second.limit_batch(restore_offset(start), restore_offset(end))
        self.assert_ordered(second, restore_offset(start), batch_end)
        self.assert_ordered(second, batch_end, restore_offset(end))
        assert first.lag(start, start) in (0, None)

    def test_offsets_and_lag_advance_with_rows(self, create_source: Any, put: Put) -> None:
        """Checks that the lag of a range is the number of its rows, or is greater than zero."""
        for id_ in range(0, 6, 3):
            put(make_rows(id_, id_ + 1, id_ + 2), sample.SIMPLE)
        first = create_source(**self.batch_limit)
        start = restore_offset(first.initial_offset())
        end = restore_offset(first.latest_offset(start))
        self.assert_ordered(first, end, first.latest_offset(end))
        lag = first.lag(start, end)
        batch_end = restore_offset(first.limit_batch(start, end))
        self.assert_ordered(first, start, batch_end)
        self.assert_ordered(first, batch_end, end)
        total = self.get_lag(first, start, batch_end) + self.get_lag(first, batch_end, end)
        assert total == (lag or 0), f"expected a lag of {lag}, found parts with a sum of {total}"
        if lag is not None:
            assert lag == 6 if first.lag_unit in _RECORD_UNITS else lag > 0
            assert first.lag(end, end) == 0 < first.lag(start, batch_end)
        if Capability.TAIL in self.capabilities:
            put(make_rows(6, 7, 8), sample.SIMPLE)
            second = create_source()
            later = restore_offset(second.latest_offset(end))
            self.assert_ordered(second, end, later)
            assert later != end
            if lag is not None:
                new = second.lag(end, later)
                assert new == 3 if first.lag_unit in _RECORD_UNITS else new > 0

    def test_resume_without_gap_or_duplicate(self, create_source: Any, put: Put) -> None:
        for id_ in range(4):
            put(make_rows(id_, id_), sample.SIMPLE)
        source = create_source(**self.batch_limit)
        start = restore_offset(source.initial_offset())
        batch_end = restore_offset(source.limit_batch(start, source.latest_offset(start)))
        rows = self.read_range(source, start, batch_end)
        source.close()
        rest, end = self.read_all(create_source(**self.batch_limit), batch_end)
        rows += rest
        count = 4
        if Capability.TAIL in self.capabilities:
            put(make_rows(4, 4), sample.SIMPLE)
            new, _ = self.read_all(create_source(), end)
            rows += new
            count = 5
        assert sort_by_id(rows) == make_rows(*sorted([*range(count)] * 2))

    def test_resume_at_shared_position(self, create_source: Any, put_at_same_position: Put) -> None:
        put_at_same_position(make_rows(0, 1, 2), sample.SIMPLE)
        source = create_source(**self.batch_limit)
        start = restore_offset(source.initial_offset())
        batch_end = restore_offset(source.limit_batch(start, source.latest_offset(start)))
        rows = self.read_range(source, start, batch_end)
        rest, end = self.read_all(create_source(**self.batch_limit), batch_end)
        rows += rest
        count = 3
        if Capability.TAIL in self.capabilities:
            put_at_same_position(make_rows(3), sample.SIMPLE)
            new, _ = self.read_all(create_source(), end)
            rows += new
            count = 4
        assert sort_by_id(rows) == make_rows(*range(count))

    @property
    def checks_killed_server(self) -> bool:
        return self.applies_unexcused("test_resume_after_server_crash", "put")

    @once_per_transport
    def test_resume_after_server_crash(
        self, options: dict[str, Any], create_source: Any, put: Put, server: Any
    ) -> None:
        put(make_rows(*range(10)), sample.SIMPLE)
        source = create_source()
        start = restore_offset(source.initial_offset())
        end = restore_offset(source.latest_offset(start))
        rows = self.read_range(source, start, end)
        source.close()
        server.kill()
        try:
            self.assert_check_is_transient(options)
        finally:
            server.start()
        create_source().check()
        if Capability.REPLAY in self.capabilities:
            assert self.read_range(create_source(), start, end) == rows
        put(make_rows(10), sample.SIMPLE)
        rest, _ = self.read_all(create_source(), end)
        assert sort_by_id(rows + rest) == make_rows(*range(11))

    @requires(Capability.LIMIT)
    def test_batch_limit(self, create_source: Any, put: Put) -> None:
        assert self.batch_limit, "expected options in `batch_limit`, found none"
        for id_ in range(3):
            put(make_rows(id_), sample.SIMPLE)
        batches, _ = self.read_batches(create_source(**self.batch_limit))
        assert [len(batch) for batch in batches] == [1, 1, 1]

    @requires(Capability.ORDERED)
    def test_order_is_preserved(self, create_source: Any, put: Put) -> None:
        put(make_rows(*range(100, 0, -1)), sample.SIMPLE)
        rows, _ = self.read_all(create_source())
        assert rows == make_rows(*range(100, 0, -1))

    @requires(Capability.TAIL)
    def test_new_rows_are_read(self, create_source: Any, put: Put) -> None:
        source = create_source()
        rows, offset = self.read_all(source)
        assert rows == []
        for id_ in range(3):
            put(make_rows(id_), sample.SIMPLE)
            rows, offset = self.read_all(source, offset)
            assert rows == make_rows(id_)

    @requires_opaque_payloads
    def test_opaque_payloads(self, create_source: Any, put: Put) -> None:
        """Checks that the transport leaves payloads unchanged: all bytes, empty, 1 MiB."""
        expected = sample.make_payloads(self.effective_payload_kind, self.max_payload_size)
        self.format = "raw"
        put([{"value": payload} for payload in expected], sample.RAW)
        rows, _ = self.read_all(create_source(sample.RAW))
        assert sorted(row["value"] for row in rows) == sorted(expected)

    @requires_rows
    def test_every_type(self, create_source: Any, put: Put) -> None:
        put(sample.make_typed_rows(), sample.EVERY_TYPE)
        rows, _ = self.read_all(create_source(sample.EVERY_TYPE))
        assert sort_by_id(rows) == sample.make_typed_rows()

    @requires_rows
    def test_special_texts(self, create_source: Any, put: Put) -> None:
        put(sample.make_special_texts(), sample.SIMPLE)
        rows, _ = self.read_all(create_source())
        assert sort_by_id(rows) == sample.make_special_texts()

    @requires_rows
    def test_special_column_names(self, create_source: Any, put: Put) -> None:
        put(sample.make_special_names(), sample.SPECIAL_NAMES)
        rows, _ = self.read_all(create_source(sample.SPECIAL_NAMES))
        assert rows == sample.make_special_names()

    @requires_rows
    def test_large_value(self, create_source: Any, put: Put) -> None:
        put(sample.make_large_row(), sample.SIMPLE)
        rows, _ = self.read_all(create_source())
        assert rows == sample.make_large_row()

    @_requires_message_size
    def test_message_above_max_message_size(self, create_source: Any, put: Put) -> None:
        put([{"id": 1, "name": "x" * 4096}], sample.SIMPLE)
        put(make_rows(2), sample.SIMPLE)
        rows, bad = self.read_available(create_source(max_message_size=2048))
        assert rows == make_rows(2)
        (record,) = bad
        assert record.error.code == "too-large" and len(record.payload or b"") <= 1024

    @_requires_generated_rows
    def test_metadata_of_generated_rows(self, create_source: Any) -> None:
        self.count_rows_with_metadata(create_source(self.get_schema(create_source)))

    def test_metadata(self, create_source: Any, put: Put) -> None:
        put(make_rows(1, 2), sample.SIMPLE)
        assert self.count_rows_with_metadata(create_source()) == 2

    def test_filter_pushdown(self, create_source: Any, put: Put) -> None:
        """Checks that a pushed filter keeps all matching rows and that skipped rows are counted."""
        put(make_rows(*range(10)), sample.SIMPLE)
        read, source = Read(frozenset({"id"}), (Conjunct("id", "<", 3),)), create_source()
        start = restore_offset(source.initial_offset())
        rows = self.read_range(source, start, restore_offset(source.latest_offset(start)), read)
        assert len(rows) + read.skipped == 10 and {0, 1, 2} <= {row["id"] for row in rows}

    @once_per_pipeline
    @pytest.mark.spark
    def test_pipeline_resumes_after_failure(
        self, options: dict[str, Any], create_source: Any, put: Put, pipeline: Any
    ) -> None:
        """Reads every type, nulls, all metadata and a bad record by Spark, over a failed run."""
        rows = sample.make_typed_rows()
        for row in rows[:2]:
            put([row], sample.EVERY_TYPE)
        if not self.rejects_bad_records:
            put([{**rows[2], "id": "not a number"}], _TEXT_IDS)
        metadata = create_source(sample.EVERY_TYPE).metadata_schema()
        run: Pipeline = pipeline(fails_on=2, metadata=metadata)
        source = {**self.create_node(options), **self.batch_limit}
        tails = Capability.TAIL in self.capabilities
        if not tails:
            put(rows[2:], sample.EVERY_TYPE)
        assert run.run(source=source).errors
        run.disable_failure()
        if tails:
            put(rows[2:], sample.EVERY_TYPE)
        assert not run.run(source=source).errors
        self.assert_output(run, rows, metadata)

    def assert_output(self, run: Pipeline, expected: list[Row], metadata: pa.Schema) -> None:
        """Checks the output of a pipeline: rows, types of metadata, and dead letters."""
        assert sort_by_id(run.read_output()) == expected
        assert run.read_metadata().schema.types == to_arrow(to_spark(metadata)).types
        assert run.count_dead_letters() == (0 if self.rejects_bad_records else 1)

    def test_close_is_idempotent(self, create_source: Any) -> None:
        source = create_source()
        source.close()
        source.close()
