"""How the contract writes: batches in parts, by copies as in tasks."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock.sdk import BatchId, Capability, Receipt, Sink
from penstock.testing.contract import rows as sample
from penstock.testing.contract.applies import absent
from penstock.testing.contract.component import ComponentContract
from penstock.testing.contract.rows import Row

Rows = Callable[[pa.Schema], list[Row]]


class Writing(ComponentContract):
    """Base of the contract of sinks: batches as the engine writes them."""

    bad_row: ClassVar[Row | None] = None
    """A row of `rows.SIMPLE` that the sink refuses for good."""
    listens: ClassVar[bool] = False
    """Whether the sink holds what only one process can have, such as an address to listen at."""

    @pytest.fixture
    @absent
    def rows(self) -> Rows:
        """`rows(schema)` reads back what is there, by another way than the sink's own."""
        pytest.skip("nothing can be read back from this sink")

    @pytest.fixture
    def table(self, rows: Rows) -> Rows:
        """`table(schema)` reads back the rows that have not been replaced (UPSERT)."""
        return rows

    @pytest.fixture
    def make(self, options: dict[str, Any]) -> Callable[..., Any]:
        """`make()` gives a sink as a new process would; one that listens closes the last one."""
        made: list[Sink[Any]] = []

        def make() -> Sink[Any]:
            if self.listens and made:
                made[-1].close()
            made.append(self.built(options))
            return made[-1]

        return make

    @pytest.fixture(autouse=True)
    def _leaves(self) -> Iterator[None]:
        self._clients: list[Any] = []
        yield
        while self._clients:
            client = self._clients.pop()
            if hasattr(client, "close"):
                client.close()

    def opened(self, sink: Sink[Any]) -> Any:
        """A client of the sink, until the end of the test."""
        self._clients.append(sink.open())
        return self._clients[-1]

    def receipts(
        self,
        sink: Sink[Any],
        batch: BatchId,
        partitions: Sequence[list[Row]],
        schema: pa.Schema = sample.SIMPLE,
    ) -> list[Receipt]:
        """The receipts of a batch, written as in tasks."""
        receipts = []
        for number, rows in enumerate(partitions):
            copy = pickle.loads(pickle.dumps(sink))
            client = self.opened(copy)
            writer = copy.writer(client, batch, number, schema)
            for row in rows:
                self.write(copy, writer, [row], schema)
            receipts.append(json.loads(json.dumps(writer.commit())))
            copy.close()
        return receipts

    def write(self, sink: Any, writer: Any, rows: list[Row], schema: pa.Schema) -> Any:
        """Writes rows as the engine does; gives the failures."""
        batch = pa.RecordBatch.from_pylist(rows, schema=schema)
        payloads = None
        if Capability.BYTES in self.capabilities:
            encoded = sink.format.encode(batch)
            assert not encoded.failures
            payloads = encoded.payloads
        return writer.write(batch, payloads)

    def batch(
        self, sink: Sink[Any], number: int, *partitions: list[Row], query: str = "query-1",
        schema: pa.Schema = sample.SIMPLE,
    ) -> None:  # fmt: skip
        """Writes a whole batch."""
        batch = BatchId(query, number)
        sink.finish(batch, self.receipts(sink, batch, partitions, schema))
