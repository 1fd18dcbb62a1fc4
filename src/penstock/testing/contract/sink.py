"""What every sink must pass."""

from __future__ import annotations

import json
import resource
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from penstock.sdk import BatchId, Capability
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import needs, once, only
from penstock.testing.contract.pipeline import SCHEMA, Pipeline
from penstock.testing.contract.rows import Row, by_id, simple
from penstock.testing.contract.writing import Rows, Writing

MEGABYTES = 250
MOST_MEGABYTES = 200


class SinkContract(Writing):
    """Give `component`, and the fixtures `options` and `rows`."""

    def test_the_system_is_reached(self, make: Any) -> None:
        sink = make()
        sink.check()
        sink.close()

    def test_what_was_written_is_there(self, make: Any, rows: Rows) -> None:
        sink = make()
        sink.recover()
        self.batch(sink, 0, simple(1, 2), simple(3))
        self.batch(sink, 1, simple(4))
        sink.complete()
        assert by_id(rows(sample.SIMPLE)) == simple(1, 2, 3, 4)

    def test_a_batch_written_twice(self, make: Any, rows: Rows) -> None:
        self.batch(make(), 0, simple(1))
        self.batch(make(), 1, simple(2), simple(3))
        sink = make()
        sink.recover()
        self.batch(sink, 1, simple(2), simple(3))
        self.batch(sink, 2, simple(4))
        sink.complete()
        self._once_or_more(rows(sample.SIMPLE), simple(1, 2, 3, 4))

    def test_a_finish_that_is_called_again(self, make: Any, rows: Rows) -> None:
        sink = make()
        batch = BatchId("query-1", 0)
        receipts = self.receipts(sink, batch, [simple(1), simple(2)])
        sink.finish(batch, receipts)
        sink.finish(batch, receipts)
        sink.complete()
        self._once_or_more(rows(sample.SIMPLE), simple(1, 2))

    def test_a_crash_between_the_writers_and_the_end(self, make: Any, rows: Rows) -> None:
        batch = BatchId("query-1", 0)
        self.receipts(make(), batch, [simple(1), simple(2)])
        again = make()
        again.recover()
        self.batch(again, 0, simple(1), simple(2))
        again.complete()
        self._once_or_more(rows(sample.SIMPLE), simple(1, 2))

    @needs(Capability.TRANSACTIONS)
    def test_nothing_is_there_before_the_end(self, make: Any, rows: Rows) -> None:
        sink = make()
        self.batch(sink, 0, simple(1))
        self.receipts(sink, BatchId("query-1", 1), [simple(2), simple(3)])
        assert rows(sample.SIMPLE) == simple(1)

    @needs(Capability.EXACTLY_ONCE)
    def test_a_task_that_failed_leaves_nothing(self, make: Any, rows: Rows) -> None:
        sink = make()
        batch = BatchId("query-1", 0)
        failed = sink.writer(self.opened(sink), batch, 0, sample.SIMPLE)
        self.write(sink, failed, simple(1, 2), sample.SIMPLE)
        failed.abort()
        failed.abort()
        self.batch(sink, 0, simple(1))
        sink.complete()
        assert rows(sample.SIMPLE) == simple(1)

    def test_a_commit_that_landed_and_is_reported_failed(self, make: Any, rows: Rows) -> None:
        sink = make()
        batch = BatchId("query-1", 0)
        lost = sink.writer(self.opened(sink), batch, 0, sample.SIMPLE)
        self.write(sink, lost, simple(1, 2), sample.SIMPLE)
        lost.commit()
        lost.abort()
        self.batch(sink, 0, simple(1, 2))
        again = make()
        self.batch(again, 1, simple(3))
        again.complete()
        self._once_or_more(rows(sample.SIMPLE), simple(1, 2, 3))

    @needs(Capability.ORDERED)
    def test_the_order_is_kept(self, make: Any, rows: Rows) -> None:
        """`rows` reads them in the order in which they are there."""
        sink, batch = make(), BatchId("query-1", 0)
        writer = sink.writer(self.opened(sink), batch, 0, sample.SIMPLE)
        assert not self.write(sink, writer, simple(*range(100, 0, -1)), sample.SIMPLE)
        sink.finish(batch, [json.loads(json.dumps(writer.commit()))])
        sink.complete()
        assert [row["id"] for row in rows(sample.SIMPLE)] == list(range(100, 0, -1))

    @needs(Capability.UPSERT)
    def test_rows_replace_those_with_the_same_key(self, make: Any, table: Rows) -> None:
        renamed = [{"id": 1, "name": "new"}]
        for number, rows in enumerate([simple(1, 2), renamed, [*simple(3), *renamed]]):
            sink = make()
            sink.mode, sink.primary_key = "upsert", ("id",)
            sink.accepts(sample.SIMPLE)
            sink.recover()
            self.batch(sink, number, rows)
            sink.complete()
        assert by_id(table(sample.SIMPLE)) == [*renamed, *simple(2, 3)]

    def test_a_server_that_is_killed_in_the_middle(
        self, make: Any, rows: Rows, server: Any
    ) -> None:
        self.batch(make(), 0, simple(1))
        sink = make()
        self.receipts(sink, BatchId("query-1", 1), [simple(2), simple(3)])
        server.kill()
        server.start()
        again = make()
        again.recover()
        self.batch(again, 1, simple(2), simple(3))
        again.complete()
        self._once_or_more(rows(sample.SIMPLE), simple(1, 2, 3))

    def test_a_life_that_starts_over(self, make: Any, rows: Rows) -> None:
        self.batch(make(), 0, simple(1))
        self.batch(make(), 1, simple(2))
        sink = make()
        sink.recover()
        self.batch(sink, 0, simple(3), query="query-2")
        sink.complete()
        assert {row["id"] for row in rows(sample.SIMPLE)} == {1, 2, 3}

    def test_a_batch_without_rows(self, make: Any, rows: Rows) -> None:
        sink = make()
        sink.recover()
        sink.finish(BatchId("query-1", 0), [])
        self.batch(sink, 1, [])
        self.batch(sink, 2, simple(1))
        sink.tick()
        sink.complete()
        sink.complete()
        assert rows(sample.SIMPLE) == simple(1)

    @only(lambda case: case.bad_row is not None, lambda _: "this sink takes every row")
    def test_a_bad_row_is_diverted_and_the_good_ones_arrive(self, make: Any, rows: Rows) -> None:
        assert self.bad_row is not None
        sink = make()
        batch = BatchId("query-1", 0)
        writer = sink.writer(self.opened(sink), batch, 0, sample.SIMPLE)
        good = simple(1, 2)
        failures = self.write(sink, writer, [good[0], self.bad_row, good[1]], sample.SIMPLE)
        assert [failure.index for failure in failures] == [1]
        sink.finish(batch, [json.loads(json.dumps(writer.commit()))])
        sink.complete()
        assert by_id(rows(sample.SIMPLE)) == good

    def test_every_type(self, make: Any, rows: Rows) -> None:
        sink = make()
        self.batch(sink, 0, sample.every_type(), schema=sample.EVERY_TYPE)
        sink.complete()
        assert by_id(rows(sample.EVERY_TYPE)) == sample.every_type()

    def test_strange_texts(self, make: Any, rows: Rows) -> None:
        sink = make()
        self.batch(sink, 0, sample.strange_texts())
        sink.complete()
        assert by_id(rows(sample.SIMPLE)) == sample.strange_texts()

    def test_odd_names_of_columns(self, make: Any, rows: Rows) -> None:
        sink = make()
        self.batch(sink, 0, sample.odd_names(), schema=sample.ODD_NAMES)
        sink.complete()
        assert rows(sample.ODD_NAMES) == sample.odd_names()

    def test_a_value_of_a_megabyte(self, make: Any, rows: Rows) -> None:
        sink = make()
        self.batch(sink, 0, sample.large())
        sink.complete()
        assert rows(sample.SIMPLE) == sample.large()

    @once
    def test_a_slow_server_does_not_fill_the_memory(
        self, make: Any, rows: Rows, server: Any
    ) -> None:
        sink = make()
        client = sink.open()
        writer = sink.writer(client, BatchId("query-1", 0), 0, sample.SIMPLE)
        taken: list[int] = []

        def fill() -> None:
            for number in range(MEGABYTES):
                self.write(sink, writer, [{"id": number, "name": "x" * 2**20}], sample.SIMPLE)
                taken.append(number)

        before = resident()
        server.pause()
        filling = ThreadPoolExecutor(1).submit(fill)
        try:
            while len(taken) < MEGABYTES:
                seen = len(taken)
                done, _ = wait([filling], timeout=1)
                if done or len(taken) == seen:
                    break
            assert resident() - before < MOST_MEGABYTES
        finally:
            server.resume()
        filling.result()
        sink.finish(BatchId("query-1", 0), [json.loads(json.dumps(writer.commit()))])
        sink.complete()
        assert [row["id"] for row in by_id(rows(sample.SIMPLE))] == [*range(MEGABYTES)]

    @pytest.mark.spark
    def test_a_pipeline_writes_it(self, options: dict[str, Any], rows: Rows, pipeline: Any) -> None:
        run: Pipeline = pipeline()
        assert not run.run(source=_feed(simple(1, 2, 3)), sink=self.node(options)).errors
        self._once_or_more(rows(sample.SIMPLE), simple(1, 2, 3))

    @once
    @pytest.mark.spark
    def test_a_pipeline_that_writes_it_resumes(
        self, options: dict[str, Any], rows: Rows, pipeline: Any
    ) -> None:
        run: Pipeline = pipeline(fails_on=2)
        feed = _feed(simple(*range(4)), batches=4)
        assert run.run(source=feed, sink=self.node(options)).errors
        run.mend()
        assert not run.run(source=feed, sink=self.node(options)).errors
        self._once_or_more(rows(sample.SIMPLE), simple(*range(4)))

    def test_closing_twice(self, make: Any) -> None:
        sink = make()
        sink.close()
        sink.close()

    def _once_or_more(self, found: list[Row], expected: list[Row]) -> None:
        if Capability.EXACTLY_ONCE in self.capabilities:
            assert by_id(found) == expected
        else:
            assert {row["id"] for row in found} == {row["id"] for row in expected}


def _feed(rows: list[Row], batches: int = 1) -> dict[str, Any]:
    """A source of these rows."""
    return {"type": "memory", "rows": rows, "schema": SCHEMA, "batches": batches}


def resident() -> int:
    """The memory that this process has in use, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20
