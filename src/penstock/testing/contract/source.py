"""What every source must pass."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.sdk import PAYLOAD, Capability, Conjunct, Read, ReplayableSource
from penstock.testing.contract import rows as sample
from penstock.testing.contract.component import ComponentContract
from penstock.testing.contract.pipeline import SCHEMA, Pipeline
from penstock.testing.contract.rows import Row, by_id, simple

Put = Callable[..., None]
MOST_BATCHES = 1000


class SourceContract(ComponentContract):
    """Give `component`, and the fixtures `options` and `put`."""

    limited: ClassVar[dict[str, Any]] = {}
    """Options with which every `put` (or row) is a batch of its own."""

    @pytest.fixture
    def put(self) -> Put:
        """`put(rows, schema)` brings rows into the system, after those that are there."""
        pytest.skip("nothing can be put into this source")

    @pytest.fixture
    def put_together(self, put: Put) -> Put:
        """`put(rows, schema)` where the source's position cannot tell the rows of all calls apart,

        as those of one second for a source that goes by a time.
        """
        return put

    @pytest.fixture
    def make(self, options: dict[str, Any], tmp_path: Path) -> Callable[..., Any]:
        """`make(schema)` gives a source as a new process would; its state survives."""

        def make(schema: pa.Schema | None = sample.SIMPLE, **more: Any) -> ReplayableSource[Any]:
            source: ReplayableSource[Any] = self.built({**options, **more}, tmp_path / "state")
            source.columns = schema if schema is not None else source.schema()
            return source

        return make

    def between(
        self, source: ReplayableSource[Any], start: Any, end: Any, read: Read | None = None
    ) -> list[Row]:
        """The rows of a range, read from copies as in tasks."""
        read = read or Read()
        rows: list[Row] = []
        for partition in source.partitions(start, end):
            copy = pickle.loads(pickle.dumps(source))
            for batch in copy.read(pickle.loads(pickle.dumps(partition)), read):
                rows += self._rows(source, batch, read)
            copy.close()
        assert not read.bad, read.bad
        return rows

    def batches(
        self, source: ReplayableSource[Any], start: Any = None
    ) -> tuple[list[list[Row]], Any]:
        """All that is there from a position on, batch by batch, and the position after it."""
        at = survived(source.initial() if start is None else start)
        end = survived(source.latest(at))
        found: list[list[Row]] = []
        while at != end and len(found) < MOST_BATCHES:
            stop = survived(source.advance(at, end))
            assert stop != at, "advance stands still"
            found.append(self.between(source, at, stop))
            at = stop
        return found, at

    def all(self, source: ReplayableSource[Any], start: Any = None) -> tuple[list[Row], Any]:
        """All that is there from a position on, and the position after it."""
        found, at = self.batches(source, start)
        return [row for batch in found for row in batch], at

    def test_the_system_is_reached(self, make: Any, put: Put) -> None:
        put(simple(1), sample.SIMPLE)
        source = make()
        source.check()
        source.close()

    def test_what_was_put_is_read(self, make: Any, put: Put) -> None:
        put(simple(*range(10)), sample.SIMPLE)
        rows, _ = self.all(make())
        assert by_id(rows) == simple(*range(10))

    def test_a_range_read_twice_is_equal(self, make: Any) -> None:
        self.needs(Capability.REPLAY)
        source = make(self._own(make))
        start = survived(source.initial())
        end = survived(source.advance(start, source.latest(start)))
        first = self.between(source, start, end)
        again = make(self._own(make))
        assert self.between(again, start, end) == first

    def test_a_range_that_was_put_is_read_twice(self, make: Any, put: Put) -> None:
        self.needs(Capability.REPLAY)
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

    def test_the_size_of_a_batch_is_limited(self, make: Any, put: Put) -> None:
        self.needs(Capability.LIMIT)
        assert self.limited, "set `limited` to options that limit a batch"
        for at in range(3):
            put(simple(at), sample.SIMPLE)
        found, _ = self.batches(make(**self.limited))
        assert [len(batch) for batch in found] == [1, 1, 1]

    def test_the_order_is_kept(self, make: Any, put: Put) -> None:
        self.needs(Capability.ORDERED)
        put(simple(*range(100, 0, -1)), sample.SIMPLE)
        rows, _ = self.all(make())
        assert [row["id"] for row in rows] == list(range(100, 0, -1))

    def test_what_comes_later_is_picked_up(self, make: Any, put: Put) -> None:
        self.needs(Capability.TAIL)
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

    def _metadata(self, source: Any) -> int:
        """Reads all of it with its metadata. Returns the number of rows."""
        rows = 0
        offered = source.metadata()
        start = source.initial()
        end = source.advance(start, source.latest(start))
        read = Read(metadata=tuple(offered.names))
        for partition in source.partitions(start, end):
            for batch in source.read(partition, read):
                ours = PAYLOAD if self._carries_bytes else source.columns
                assert batch.schema.names == [*ours.names, *offered.names]
                assert pa.schema(list(batch.schema)[len(ours) :]).types == offered.types
                rows += batch.num_rows
        return rows

    def test_closing_twice(self, make: Any) -> None:
        source = make()
        source.close()
        source.close()

    @property
    def _carries_bytes(self) -> bool:
        return Capability.BYTES in self.capabilities

    def _own(self, make: Any) -> pa.Schema | None:
        """The schema of a source that makes its own rows, else that of `simple`."""
        own = None if self._carries_bytes else make().schema()
        return own if own is not None else sample.SIMPLE

    def _rows(self, source: Any, batch: pa.RecordBatch, read: Read) -> list[Row]:
        if not self._carries_bytes:
            assert batch.schema.names == [*source.columns.names, *read.metadata]
            assert batch.schema.types[: len(source.columns)] == source.columns.types
            return list(batch.to_pylist())
        assert batch.schema.names[:3] == PAYLOAD.names
        return self.decoded(batch.column("payload").to_pylist(), source.columns)


def survived(offset: Any) -> Any:
    """An offset as it comes back from a checkpoint."""
    return json.loads(json.dumps(dict(offset)))
