"""Reading of sources as the engine does: ranges in partitions, by pickled copies."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.sdk import PAYLOAD, Capability, Read, ReplayableSource
from penstock.sdk.record import BadRecord
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import optional_fixture
from penstock.testing.contract.component import ComponentContract
from penstock.testing.contract.rows import Row

Put = Callable[..., None]
MAX_BATCHES = 1000


class SourceHarness(ComponentContract):
    """Base class of the contract of sources: creates sources and reads ranges."""

    batch_limit: ClassVar[dict[str, Any]] = {}
    """Options that limit a batch to the rows of one `put`, or to one row."""

    has_journal: ClassVar[bool] = False
    """Whether messages are received into a journal, which bounds their size."""

    rejects_bad_records: ClassVar[bool] = False
    """Whether the system rejects records that do not match the columns, so that none are read."""

    @optional_fixture
    @pytest.fixture
    def put(self) -> Put:
        """Returns `put(rows, schema)`, which appends rows to the data of the system."""
        pytest.skip("this source has no fixture `put`")

    @pytest.fixture
    def put_at_same_position(self, put: Put) -> Put:
        """Returns `put(rows, schema)`, which appends rows with the same position in the system.

        An example are rows with equal timestamps, where the source reads by timestamp.
        """
        return put

    @pytest.fixture
    def create_source(
        self, options: dict[str, Any], tmp_path: Path
    ) -> Iterator[Callable[..., Any]]:
        """Yields `create_source(schema)`, which creates a source as a new process does.

        All sources of a test have the same state directory.
        """
        sources: list[ReplayableSource[Any]] = []

        def create_source(
            schema: pa.Schema | None = sample.SIMPLE, **changes: Any
        ) -> ReplayableSource[Any]:
            state = tmp_path / "state"
            source: ReplayableSource[Any] = self.create_component({**options, **changes}, state)
            sources.append(source)
            source.columns = schema if schema is not None else source.schema()
            return source

        yield create_source
        for source in sources:
            source.close()

    def read_range(
        self, source: ReplayableSource[Any], start: Any, end: Any, read: Read | None = None
    ) -> list[Row]:
        """Reads the rows of a range, which has no bad records."""
        read = read or Read()
        rows = self._read_partitions(source, start, end, read)
        assert not read.bad, f"expected no bad records, found {read.bad}"
        return rows

    def read_available(self, source: ReplayableSource[Any]) -> tuple[list[Row], list[BadRecord]]:
        """Reads the rows and the bad records from the initial offset."""
        read, start = Read(), restore_offset(source.initial_offset())
        end = restore_offset(source.latest_offset(start))
        return self._read_partitions(source, start, end, read), read.bad

    def _read_partitions(
        self, source: ReplayableSource[Any], start: Any, end: Any, read: Read
    ) -> list[Row]:
        rows: list[Row] = []
        for partition in source.partitions(start, end):
            copy = pickle.loads(pickle.dumps(source))
            for batch in copy.read(pickle.loads(pickle.dumps(partition)), read):
                rows += self._to_rows(source, batch, read)
            copy.close()
        return rows

    def read_batches(
        self, source: ReplayableSource[Any], start: Any = None
    ) -> tuple[list[list[Row]], Any]:
        """Reads all available batches from an offset, by default the initial offset.

        Returns the rows of each batch, and the offset after the last batch.
        """
        offset = restore_offset(source.initial_offset() if start is None else start)
        end = restore_offset(source.latest_offset(offset))
        batches: list[list[Row]] = []
        while offset != end and len(batches) < MAX_BATCHES:
            batch_end = restore_offset(source.limit_batch(offset, end))
            assert batch_end != offset, f"expected a batch before {end}, found none at {offset}"
            batches.append(self.read_range(source, offset, batch_end))
            offset = batch_end
        return batches, offset

    def read_all(self, source: ReplayableSource[Any], start: Any = None) -> tuple[list[Row], Any]:
        """Reads all available rows from an offset. Returns the rows, and the offset after them."""
        batches, end = self.read_batches(source, start)
        return [row for batch in batches for row in batch], end

    def count_rows_with_metadata(self, source: Any) -> int:
        """Reads a batch with all metadata, and checks its columns and the partitions of records.

        Returns the number of rows.
        """
        count = 0
        metadata = source.metadata_schema()
        start = source.initial_offset()
        end = source.limit_batch(start, source.latest_offset(start))
        read = Read(metadata=tuple(metadata.names))
        for partition in source.partitions(start, end):
            for batch in source.read(partition, read):
                columns = PAYLOAD if self._carries_bytes else source.columns
                assert batch.schema.names == [*columns.names, *metadata.names]
                assert pa.schema(list(batch.schema)[len(columns) :]).types == metadata.types
                count += batch.num_rows
                if self._carries_bytes:
                    self._assert_record_metadata(source, batch)
                if source.partitioned:
                    names = {*map(source.partition_of, batch.column("origin").unique().to_pylist())}
                    assert names <= source.partition_offsets(end).keys()
        return count

    @staticmethod
    def _assert_record_metadata(source: Any, batch: pa.RecordBatch) -> None:
        """Checks that the origin and the position of a record determine the same metadata."""
        for row in batch.to_pylist():
            known = source.record_metadata(row["origin"], row["position"])
            known = {name: value for name, value in known.items() if name in row}
            assert known == {name: row[name] for name in known}

    def assert_ordered(self, source: Any, first: Any, second: Any) -> None:
        """Checks that the second offset is at or after the first offset."""
        for pair in ((first, second), (second, first)):
            smaller = restore_offset(source.min_offset(*pair))
            assert smaller == restore_offset(first), (
                f"expected {second} at or after {first}, found {smaller} as the smaller offset"
            )
        assert self.get_lag(source, first, second) >= 0

    def get_lag(self, source: Any, start: Any, end: Any) -> int:
        """Returns the lag between two offsets; 0 if the source does not report a lag."""
        lag = source.lag(start, end)
        return 0 if lag is None else int(lag)

    def get_schema(self, create_source: Any) -> pa.Schema:
        """Returns the schema of a source that generates its rows, else `rows.SIMPLE`."""
        schema = None if self._carries_bytes else create_source().schema()
        return schema if schema is not None else sample.SIMPLE

    @property
    def _carries_bytes(self) -> bool:
        return Capability.BYTES in self.capabilities

    def _to_rows(self, source: Any, batch: pa.RecordBatch, read: Read) -> list[Row]:
        if not self._carries_bytes:
            assert batch.schema.names == [*source.columns.names, *read.metadata]
            assert batch.schema.types[: len(source.columns)] == source.columns.types
            return list(batch.to_pylist())
        assert batch.schema.names[:3] == PAYLOAD.names
        return self.decode(batch.column("payload").to_pylist(), source.columns)


def restore_offset(offset: Any) -> Any:
    """Returns an offset as restored from a checkpoint."""
    return json.loads(json.dumps(dict(offset)))
