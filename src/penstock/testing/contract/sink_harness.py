"""Writing to sinks as the engine does: batches in partitions, by pickled copies."""

from __future__ import annotations

import json
import pickle
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.sdk import BatchId, Capability, Operation, Receipt, Sink
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import optional_fixture
from penstock.testing.contract.component import ComponentContract
from penstock.testing.contract.rows import Row, deduplicate, sort_by_id

ReadRows = Callable[[pa.Schema], list[Row]]


class SinkHarness(ComponentContract):
    """Base class of the contract of sinks: creates sinks and writes batches."""

    bad_row: ClassVar[Row | None] = None
    """A row of `rows.SIMPLE` that the sink rejects permanently."""

    single_instance: ClassVar[bool] = False
    """Whether only one process can have the sink, as with a socket that listens."""

    max_buffered_megabytes: ClassVar[int] = 50
    """The memory that the sink may use for rows while its server does not respond."""

    @optional_fixture
    @pytest.fixture
    def rows(self) -> ReadRows:
        """Returns `rows(schema)`, which reads the written rows without use of the sink."""
        pytest.skip("this sink has no fixture `rows`")

    @pytest.fixture
    def table(self, rows: ReadRows) -> ReadRows:
        """Returns `table(schema)`, which reads the latest row of each key (UPSERT).

        Deleted rows are left out (DELETE).
        """
        return rows

    @pytest.fixture
    def create_sink(self, options: dict[str, Any]) -> Iterator[Callable[..., Any]]:
        """Yields `create_sink()`, which creates a sink as a new process does.

        With `single_instance` it closes the previous sink.
        """
        sinks: list[Sink[Any]] = []

        def create_sink() -> Sink[Any]:
            if self.single_instance and sinks:
                sinks[-1].close()
            sinks.append(self.create_component(options))
            return sinks[-1]

        yield create_sink
        for sink in sinks:
            sink.close()

    @pytest.fixture(autouse=True)
    def _close_clients(self) -> Iterator[None]:
        self._clients: list[Any] = []
        yield
        while self._clients:
            client = self._clients.pop()
            if hasattr(client, "close"):
                client.close()

    def create_writer(self, sink: Any, batch: BatchId) -> Any:
        """Creates a writer of partition 0 for rows of `rows.SIMPLE`."""
        sink.prepare(sample.SIMPLE)
        return sink.writer(self.open_client(sink), batch, 0, sample.SIMPLE)

    def open_client(self, sink: Sink[Any]) -> Any:
        """Opens a client of the sink, and closes it after the test."""
        self._clients.append(sink.open())
        return self._clients[-1]

    def write_partitions(
        self,
        sink: Sink[Any],
        batch: BatchId,
        partitions: Sequence[list[Row]],
        schema: pa.Schema = sample.SIMPLE,
    ) -> list[Receipt]:
        """Writes and commits partitions as tasks do. Returns the receipts of an open batch."""
        receipts = []
        sink.prepare(schema)
        for number, rows in enumerate(partitions):
            copy = pickle.loads(pickle.dumps(sink))
            client = self.open_client(copy)
            writer = copy.writer(client, batch, number, schema)
            for row in rows:
                self.write_rows(copy, writer, [row], schema)
            receipts.append(commit_writer(writer))
            copy.close()
        return receipts

    def write_rows(
        self, sink: Any, writer: Any, rows: list[Row], schema: pa.Schema = sample.SIMPLE
    ) -> Any:
        """Writes rows, encoded for a sink of payloads. Returns the failures."""
        batch = pa.RecordBatch.from_pylist(rows, schema=schema)
        payloads = None
        if Capability.BYTES in self.capabilities:
            encoded = sink.format.encode(batch)
            assert not encoded.failures, f"expected no failures, found {encoded.failures}"
            payloads = encoded.payloads
        return writer.write(batch, payloads)

    def write_changes(
        self, sink: Sink[Any], number: int, changes: Sequence[tuple[str, Row]], *,
        truncates: bool = False,
    ) -> None:  # fmt: skip
        """Writes and commits a batch of changes; the payload of a delete is null."""
        batch = BatchId("query-1", number, truncates=truncates)
        sink.prepare(sample.SIMPLE)
        if not changes:
            sink.commit(batch, [])
            return
        copy = pickle.loads(pickle.dumps(sink))
        writer = copy.writer(self.open_client(copy), batch, 0, sample.SIMPLE)
        rows = pa.RecordBatch.from_pylist([row for _, row in changes], schema=sample.SIMPLE)
        operations = pa.array([operation for operation, _ in changes])
        payloads = None
        if Capability.BYTES in self.capabilities:
            deleted = pc.equal(operations, Operation.DELETE.value)
            encoded = copy.format.encode(rows).payloads
            payloads = pc.if_else(deleted, pa.scalar(None, pa.binary()), encoded)
        assert not writer.write(rows, payloads, operations)
        sink.commit(batch, [commit_writer(writer)])
        copy.close()

    def write_batch(
        self, sink: Sink[Any], number: int, *partitions: list[Row], query: str = "query-1",
        schema: pa.Schema = sample.SIMPLE,
    ) -> None:  # fmt: skip
        """Writes and commits a batch."""
        batch = BatchId(query, number)
        sink.commit(batch, self.write_partitions(sink, batch, partitions, schema))

    def assert_delivered(self, written: list[Row], expected: list[Row]) -> None:
        """Checks the written rows. Duplicates are allowed unless the sink is EXACTLY_ONCE."""
        if Capability.EXACTLY_ONCE in self.capabilities:
            assert sort_by_id(written) == expected
        else:
            assert deduplicate(written) == expected


def commit_writer(writer: Any) -> Receipt:
    """Commits a writer. Returns the receipt as received by the driver."""
    receipt: Receipt = json.loads(json.dumps(writer.commit()))
    return receipt


def resident_megabytes() -> int:
    """Returns the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20
