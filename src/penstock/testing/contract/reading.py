"""How the contract reads: ranges in parts, by copies as in tasks."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.sdk import PAYLOAD, Capability, Read, ReplayableSource
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import absent
from penstock.testing.contract.component import ComponentContract
from penstock.testing.contract.rows import Row

Put = Callable[..., None]
MOST_BATCHES = 1000


class Reading(ComponentContract):
    """Base of the contract of sources: ranges as the engine reads them."""

    limited: ClassVar[dict[str, Any]] = {}
    """Options with which every `put` (or row) is a batch of its own."""

    @pytest.fixture
    @absent
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
    def make(self, options: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., Any]]:
        """`make(schema)` gives a source as a new process would; its state survives."""
        made: list[ReplayableSource[Any]] = []

        def make(schema: pa.Schema | None = sample.SIMPLE, **more: Any) -> ReplayableSource[Any]:
            source: ReplayableSource[Any] = self.built({**options, **more}, tmp_path / "state")
            made.append(source)
            source.columns = schema if schema is not None else source.schema()
            return source

        yield make
        for each in made:
            each.close()

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
