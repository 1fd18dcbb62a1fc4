"""What every source must pass."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sdk import Capability, Conjunct, Read
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import needs, once
from penstock.testing.contract.pipeline import SCHEMA, Pipeline
from penstock.testing.contract.reading import Put, Reading, survived
from penstock.testing.contract.rows import by_id, simple


class SourceContract(Reading):
    """Give `component`, and the fixtures `options` and `put`."""

    @pytest.fixture
    def reachable(self, put: Put) -> None:
        """The system is such that it can be reached: there are rows in it."""
        put(simple(1), sample.SIMPLE)

    @pytest.mark.usefixtures("reachable")
    def test_the_system_is_reached(self, make: Any) -> None:
        source = make()
        source.check()
        source.close()

    def test_what_was_put_is_read(self, make: Any, put: Put) -> None:
        put(simple(*range(10)), sample.SIMPLE)
        rows, _ = self.all(make())
        assert by_id(rows) == simple(*range(10))

    @needs(Capability.REPLAY)
    def test_a_range_read_twice_is_equal(self, make: Any) -> None:
        source = make(self._own(make))
        start = survived(source.initial())
        end = survived(source.advance(start, source.latest(start)))
        first = self.between(source, start, end)
        again = make(self._own(make))
        assert self.between(again, start, end) == first

    @needs(Capability.REPLAY)
    def test_a_range_that_was_put_is_read_twice(self, make: Any, put: Put) -> None:
        put(simple(*range(10)), sample.SIMPLE)
        first = make()
        start = survived(first.initial())
        end = survived(first.latest(start))
        rows = self.between(first, start, end)
        if Capability.TAIL in self.capabilities:
            put(simple(*range(10, 20)), sample.SIMPLE)
        assert self.between(make(), start, end) == rows
        assert len(rows) == 10

    def test_positions_survive_json_and_never_go_back(self, make: Any) -> None:
        source = make(self._own(make))
        start = source.initial()
        assert survived(start) == start
        end = source.latest(start)
        assert survived(end) == end
        assert source.lag(start, start) in (0, None)
        assert (source.lag(start, end) or 0) >= 0
        assert (source.lag(end, survived(source.latest(end))) or 0) >= 0
        later = make(self._own(make)).latest(survived(end))
        assert (source.lag(end, later) or 0) >= 0

    def test_resuming_leaves_no_gap_and_no_repeat(self, make: Any, put: Put) -> None:
        for at in range(4):
            put(simple(at, at), sample.SIMPLE)
        source = make(**self.limited)
        start = survived(source.initial())
        stop = survived(source.advance(start, source.latest(start)))
        rows = self.between(source, start, stop)
        source.close()
        rest, end = self.all(make(**self.limited), stop)
        rows += rest
        if Capability.TAIL in self.capabilities:
            put(simple(4, 4), sample.SIMPLE)
            more, _ = self.all(make(), end)
            rows += more
        last = 5 if Capability.TAIL in self.capabilities else 4
        assert sorted(row["id"] for row in rows) == sorted([*range(last)] * 2)

    def test_rows_that_share_a_position(self, make: Any, put_together: Put) -> None:
        put_together(simple(1, 2, 3), sample.SIMPLE)
        source = make(**self.limited)
        start = survived(source.initial())
        stop = survived(source.advance(start, source.latest(start)))
        rows = self.between(source, start, stop)
        rest, end = self.all(make(**self.limited), stop)
        rows += rest
        if Capability.TAIL in self.capabilities:
            put_together(simple(4), sample.SIMPLE)
            more, _ = self.all(make(), end)
            rows += more
        last = 5 if Capability.TAIL in self.capabilities else 4
        assert by_id(rows) == simple(*range(1, last))

    def test_a_server_that_is_killed_in_the_middle(self, make: Any, put: Put, server: Any) -> None:
        put(simple(*range(10)), sample.SIMPLE)
        source = make()
        start = survived(source.initial())
        end = survived(source.latest(start))
        first = self.between(source, start, end)
        source.close()
        server.kill()
        server.start()
        if Capability.REPLAY in self.capabilities:
            assert self.between(make(), start, end) == first
        put(simple(10), sample.SIMPLE)
        rest, _ = self.all(make(), end)
        assert by_id(first + rest) == simple(*range(11))

    @needs(Capability.LIMIT)
    def test_the_size_of_a_batch_is_limited(self, make: Any, put: Put) -> None:
        assert self.limited, "set `limited` to options that limit a batch"
        for at in range(3):
            put(simple(at), sample.SIMPLE)
        found, _ = self.batches(make(**self.limited))
        assert [len(batch) for batch in found] == [1, 1, 1]

    @needs(Capability.ORDERED)
    def test_the_order_is_kept(self, make: Any, put: Put) -> None:
        put(simple(*range(100, 0, -1)), sample.SIMPLE)
        rows, _ = self.all(make())
        assert [row["id"] for row in rows] == list(range(100, 0, -1))

    @needs(Capability.TAIL)
    def test_what_comes_later_is_picked_up(self, make: Any, put: Put) -> None:
        source = make()
        rows, at = self.all(source)
        assert rows == []
        for number in range(3):
            put(simple(number), sample.SIMPLE)
            rows, at = self.all(source, at)
            assert rows == simple(number)

    def test_every_type(self, make: Any, put: Put) -> None:
        put(sample.every_type(), sample.EVERY_TYPE)
        rows, _ = self.all(make(sample.EVERY_TYPE))
        assert by_id(rows) == sample.every_type()

    def test_strange_texts(self, make: Any, put: Put) -> None:
        put(sample.strange_texts(), sample.SIMPLE)
        rows, _ = self.all(make())
        assert by_id(rows) == sample.strange_texts()

    def test_odd_names_of_columns(self, make: Any, put: Put) -> None:
        put(sample.odd_names(), sample.ODD_NAMES)
        rows, _ = self.all(make(sample.ODD_NAMES))
        assert rows == sample.odd_names()

    def test_a_value_of_a_megabyte(self, make: Any, put: Put) -> None:
        put(sample.large(), sample.SIMPLE)
        rows, _ = self.all(make())
        assert rows == sample.large()

    def test_all_metadata_on_offer_is_there(self, make: Any) -> None:
        self._metadata(make(self._own(make)))

    def test_metadata_of_what_was_put(self, make: Any, put: Put) -> None:
        put(simple(1, 2), sample.SIMPLE)
        assert self._metadata(make()) == 2

    def test_hints_take_no_more_than_they_may(self, make: Any, put: Put) -> None:
        put(simple(*range(10)), sample.SIMPLE)
        read, source = Read(frozenset({"id"}), (Conjunct("id", "<", 3),)), make()
        start = survived(source.initial())
        rows = self.between(source, start, survived(source.latest(start)), read)
        assert len(rows) + read.skipped == 10 and {0, 1, 2} <= {row["id"] for row in rows}

    @pytest.mark.spark
    def test_a_pipeline_reads_it(self, options: dict[str, Any], put: Put, pipeline: Any) -> None:
        put(simple(1, 2, 3), sample.SIMPLE)
        run: Pipeline = pipeline()
        assert not run.run(source={**self.node(options), "schema": SCHEMA}).errors
        assert by_id(run.kept()) == simple(1, 2, 3)

    @once
    @pytest.mark.spark
    def test_a_pipeline_that_reads_it_resumes(
        self, options: dict[str, Any], put: Put, pipeline: Any
    ) -> None:
        for at in range(3):
            put(simple(at), sample.SIMPLE)
        run: Pipeline = pipeline(fails_on=1)
        source = {**self.node(options), **self.limited, "schema": SCHEMA}
        assert run.run(source=source).errors
        run.mend()
        if Capability.TAIL in self.capabilities:
            put(simple(3), sample.SIMPLE)
        assert not run.run(source=source).errors
        last = 4 if Capability.TAIL in self.capabilities else 3
        assert by_id(run.kept()) == simple(*range(last))

    def test_closing_twice(self, make: Any) -> None:
        source = make()
        source.close()
        source.close()
