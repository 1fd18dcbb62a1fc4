"""Blackhole: a sink that discards rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.sdk import BatchId, Capability, Config, Failure, Receipt, Sink, Writer


class BlackholeSinkConfig(Config):
    pass


class BlackholeSink(Sink[BlackholeSinkConfig]):
    """Counts rows and discards them, for benchmarks.

    Nothing is stored or sent: a run measures its sources and transforms alone.

    ```yaml
    type: blackhole
    from: hourly
    ```
    """

    acknowledges = None
    discards_rows = True
    shows_operations = True
    capabilities = frozenset({Capability.ROWS})

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> BlackholeWriter:
        return BlackholeWriter()


class BlackholeWriter(Writer):
    """Counts and discards rows."""

    def __init__(self) -> None:
        self.rows = 0

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        self.rows += rows.num_rows
        return ()

    def commit(self) -> Receipt:
        return {"dropped": self.rows}
