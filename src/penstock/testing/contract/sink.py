"""The contract of sinks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pyarrow as pa
import pytest

from penstock.sdk import BatchId, Capability
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import once_per_transport, requires
from penstock.testing.contract.rows import (
    make_large_row,
    make_rows,
    make_versions,
    sort_by_id,
)
from penstock.testing.contract.sink_harness import ReadRows, commit_writer, resident_megabytes
from penstock.testing.contract.sink_values import SinkValuesContract


class SinkContract(SinkValuesContract):
    """The contract of sinks. Set `component`, and define the fixtures `options` and `rows`."""

    def test_check(self, create_sink: Any) -> None:
        sink = create_sink()
        sink.check()
        sink.close()

    def test_all_rows_are_written(self, create_sink: Any, rows: ReadRows) -> None:
        sink = create_sink()
        sink.recover()
        self.write_batch(sink, 0, make_rows(1, 2), make_rows(3))
        self.write_batch(sink, 1, make_rows(4))
        sink.complete()
        assert sort_by_id(rows(sample.SIMPLE)) == make_rows(1, 2, 3, 4)

    def test_repeated_batch(self, create_sink: Any, rows: ReadRows) -> None:
        self.write_batch(create_sink(), 0, make_rows(1))
        self.write_batch(create_sink(), 1, make_rows(2), make_rows(3))
        sink = create_sink()
        sink.recover()
        self.write_batch(sink, 1, make_rows(2), make_rows(3))
        self.write_batch(sink, 2, make_rows(4))
        sink.complete()
        self.assert_delivered(rows(sample.SIMPLE), make_rows(1, 2, 3, 4))

    def test_repeated_commit(self, create_sink: Any, rows: ReadRows) -> None:
        sink = create_sink()
        batch = BatchId("query-1", 0)
        receipts = self.write_partitions(sink, batch, [make_rows(1), make_rows(2)])
        sink.commit(batch, receipts)
        sink.commit(batch, receipts)
        sink.complete()
        self.assert_delivered(rows(sample.SIMPLE), make_rows(1, 2))

    def test_crash_before_commit(self, create_sink: Any, rows: ReadRows) -> None:
        batch = BatchId("query-1", 0)
        self.write_partitions(create_sink(), batch, [make_rows(1), make_rows(2)])
        restarted = create_sink()
        restarted.recover()
        self.write_batch(restarted, 0, make_rows(1), make_rows(2))
        restarted.complete()
        self.assert_delivered(rows(sample.SIMPLE), make_rows(1, 2))

    @requires(Capability.EXACTLY_ONCE)
    def test_last_batch(self, create_sink: Any) -> None:
        sink = create_sink()
        assert sink.last_batch("query-1") is None
        for batch in (BatchId("query-1", 0, "a1"), BatchId("query-1", 1, "b2")):
            sink.commit(batch, self.write_partitions(sink, batch, [make_rows(batch.number)]))
        restarted = create_sink()
        assert restarted.last_batch("query-1") == BatchId("query-1", 1, "b2")
        assert restarted.last_batch("query-2") is None

    @requires(Capability.TRANSACTIONS)
    def test_uncommitted_rows_are_invisible(self, create_sink: Any, rows: ReadRows) -> None:
        sink = create_sink()
        self.write_batch(sink, 0, make_rows(1))
        self.write_partitions(sink, BatchId("query-1", 1), [make_rows(2), make_rows(3)])
        assert rows(sample.SIMPLE) == make_rows(1)

    @requires(Capability.EXACTLY_ONCE)
    def test_aborted_writer_leaves_no_rows(self, create_sink: Any, rows: ReadRows) -> None:
        sink = create_sink()
        aborted = self.create_writer(sink, BatchId("query-1", 0))
        self.write_rows(sink, aborted, make_rows(1, 2))
        aborted.abort()
        aborted.abort()
        self.write_batch(sink, 0, make_rows(1))
        sink.complete()
        assert rows(sample.SIMPLE) == make_rows(1)

    def test_abort_after_writer_commit(self, create_sink: Any, rows: ReadRows) -> None:
        """Checks a task whose writer committed and whose receipt was lost."""
        sink = create_sink()
        lost = self.create_writer(sink, BatchId("query-1", 0))
        self.write_rows(sink, lost, make_rows(1, 2))
        lost.commit()
        lost.abort()
        self.write_batch(sink, 0, make_rows(1, 2))
        restarted = create_sink()
        self.write_batch(restarted, 1, make_rows(3))
        restarted.complete()
        self.assert_delivered(rows(sample.SIMPLE), make_rows(1, 2, 3))

    @requires(Capability.ORDERED)
    def test_order_is_preserved(self, create_sink: Any, rows: ReadRows) -> None:
        """Checks the order in which `rows` returns the rows."""
        sink, batch = create_sink(), BatchId("query-1", 0)
        writer = self.create_writer(sink, batch)
        assert not self.write_rows(sink, writer, make_rows(*range(100, 0, -1)))
        sink.commit(batch, [commit_writer(writer)])
        sink.complete()
        assert rows(sample.SIMPLE) == make_rows(*range(100, 0, -1))

    @requires(Capability.UPSERT)
    def test_upsert_replaces_rows(self, create_sink: Any, table: ReadRows) -> None:
        update = [{"id": 1, "name": "new"}]
        for number, rows in enumerate([make_rows(1, 2), update, [*make_rows(3), *update]]):
            sink = create_sink()
            sink.mode, sink.primary_key = "upsert", ("id",)
            sink.check_schema(sample.SIMPLE)
            sink.recover()
            self.write_batch(sink, number, rows)
            sink.complete()
        assert sort_by_id(table(sample.SIMPLE)) == [*update, *make_rows(2, 3)]

    @requires(Capability.UPSERT)
    def test_last_row_of_overwriting_columns_remains(
        self, create_sink: Any, table: ReadRows
    ) -> None:
        """Writes, without a mode, the rows of each value of these columns by one writer."""
        sink = create_sink()
        if sink.overwriting_columns is None:
            pytest.skip("rows do not overwrite each other without mode: upsert")
        writers: dict[Any, list[Any]] = {}
        for row in make_versions(4):
            writers.setdefault(tuple(row[name] for name in sink.overwriting_columns), []).append(
                row
            )
        self.write_batch(sink, 0, *reversed(writers.values()))
        sink.complete()
        assert sort_by_id(table(sample.SIMPLE)) == make_versions(4)[-4:]

    @requires(Capability.DELETE)
    def test_delete_removes_rows(self, create_sink: Any, table: ReadRows) -> None:
        """Checks deletes of existing, unknown and deleted keys, also in a repeated batch."""
        one, two, three = make_rows(1, 2, 3)
        batches = [
            (0, [("i", one), ("i", two), ("i", three)]),
            (1, [("d", two), ("d", {"id": 9, "name": None}), ("u", one)]),
            (1, [("d", two), ("d", {"id": 9, "name": None}), ("u", one)]),
            (2, [("d", two), ("d", three)]),
            (3, [("i", three)]),
        ]
        for number, changes in batches:
            sink = create_sink()
            sink.mode, sink.primary_key = "upsert", ("id",)
            sink.recover()
            self.write_changes(sink, number, changes)
            sink.complete()
        assert sort_by_id(table(sample.SIMPLE)) == [one, three]

    @requires(Capability.REPLACE)
    def test_replace_keeps_last_batch(self, create_sink: Any, rows: ReadRows) -> None:
        """Checks a batch of several partitions, also when it is repeated after a crash."""
        for number, written in ((0, [1, 2]), (1, [3, 4]), (1, [3, 4])):
            sink = create_sink()
            sink.mode = "replace"
            sink.check_schema(sample.SIMPLE)
            sink.recover()
            self.write_batch(sink, number, *(make_rows(id_) for id_ in written))
            sink.complete()
        assert sort_by_id(rows(sample.SIMPLE)) == make_rows(3, 4)

    @requires(Capability.TRUNCATE)
    def test_truncating_batch_empties_the_target(self, create_sink: Any, table: ReadRows) -> None:
        """Checks batches with and without rows that follow a truncation, also when repeated."""
        one, two, three = make_rows(1, 2, 3)
        new = {"id": 2, "name": "new"}
        batches = [
            (0, False, [("i", one), ("i", two), ("i", three)], [one, two, three]),
            (1, True, [("i", new), ("d", three)], [new]),
            (1, True, [("i", new), ("d", three)], [new]),
            (2, False, [("i", one)], [one, new]),
            (3, True, [], []),
            (3, True, [], []),
            (4, False, [("i", three)], [three]),
        ]
        for number, truncates, changes, expected in batches:
            sink = create_sink()
            sink.mode, sink.primary_key = "upsert", ("id",)
            sink.recover()
            self.write_changes(sink, number, changes, truncates=truncates)
            sink.complete()
            assert sort_by_id(table(sample.SIMPLE)) == expected, number

    @requires(Capability.TRUNCATE)
    def test_aborted_writer_removes_no_rows(self, create_sink: Any, table: ReadRows) -> None:
        sink = create_sink()
        sink.mode, sink.primary_key = "upsert", ("id",)
        self.write_changes(sink, 0, [("i", row) for row in make_rows(1, 2)])
        aborted = self.create_writer(sink, BatchId("query-1", 1, truncates=True))
        self.write_rows(sink, aborted, make_rows(3))
        aborted.abort()
        assert sort_by_id(table(sample.SIMPLE)) == make_rows(1, 2)
        self.write_changes(sink, 1, [("i", row) for row in make_rows(3)], truncates=True)
        assert sort_by_id(table(sample.SIMPLE)) == make_rows(3)

    @property
    def checks_killed_server(self) -> bool:
        return self.applies_unexcused("test_server_crash_before_commit", "rows")

    @once_per_transport
    def test_server_crash_before_commit(
        self, options: dict[str, Any], create_sink: Any, rows: ReadRows, server: Any
    ) -> None:
        self.write_batch(create_sink(), 0, make_rows(1))
        sink = create_sink()
        self.write_partitions(sink, BatchId("query-1", 1), [make_rows(2), make_rows(3)])
        server.kill()
        try:
            self.assert_check_is_transient(options)
        finally:
            server.start()
        restarted = create_sink()
        restarted.check()
        restarted.recover()
        self.write_batch(restarted, 1, make_rows(2), make_rows(3))
        restarted.complete()
        self.assert_delivered(rows(sample.SIMPLE), make_rows(1, 2, 3))

    def test_new_query_restarts_batch_numbers(self, create_sink: Any, rows: ReadRows) -> None:
        self.write_batch(create_sink(), 0, make_rows(1))
        self.write_batch(create_sink(), 1, make_rows(2))
        sink = create_sink()
        sink.recover()
        self.write_batch(sink, 0, make_rows(3), query="query-2")
        sink.complete()
        self.assert_delivered(rows(sample.SIMPLE), make_rows(1, 2, 3))

    def test_empty_batch(self, create_sink: Any, rows: ReadRows) -> None:
        sink = create_sink()
        sink.recover()
        sink.commit(BatchId("query-1", 0), [])
        self.write_batch(sink, 1, [])
        self.write_batch(sink, 2, make_rows(1))
        sink.tick()
        sink.complete()
        sink.complete()
        assert rows(sample.SIMPLE) == make_rows(1)

    @once_per_transport
    def test_back_pressure_bounds_memory(
        self, create_sink: Any, rows: ReadRows, server: Any
    ) -> None:
        """Checks that writing to a paused server blocks before it fills the memory."""
        sink, batch = create_sink(), BatchId("query-1", 0)
        writer = self.create_writer(sink, batch)
        count, written = self.max_buffered_megabytes + 10, list[int]()

        def write() -> None:
            for id_ in range(count):
                assert not self.write_rows(sink, writer, make_large_row(id_))
                written.append(id_)

        pa.default_memory_pool().release_unused()
        before = resident_megabytes()
        server.pause()
        writing = ThreadPoolExecutor(1).submit(write)
        try:
            before_wait = -1
            while before_wait < len(written) < count:
                before_wait = len(written)
                wait([writing], timeout=1)
            assert resident_megabytes() - before < self.max_buffered_megabytes
        finally:
            server.resume()
        writing.result()
        sink.commit(batch, [commit_writer(writer)])
        sink.complete()
        received = sort_by_id(rows(sample.SIMPLE))
        assert [row["id"] for row in received] == [*range(count)]
        assert all([row] == make_large_row(row["id"]) for row in received)

    def test_close_is_idempotent(self, create_sink: Any) -> None:
        sink = create_sink()
        sink.close()
        sink.close()
