"""A sink that keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.sdk import BatchId, Capability, Config, Failure, Receipt, Sink, Writer


class BlackholeSinkConfig(Config):
    pass


class BlackholeSink(Sink[BlackholeSinkConfig]):
    """Counts the rows and drops them: for measuring, and for outputs that nobody needs.

    Nothing is kept, so nothing is promised.

    ```yaml
    type: blackhole
    from: hourly
    ```
    """

    acknowledges = None
    capabilities = frozenset({Capability.ROWS})

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> BlackholeWriter:
        return BlackholeWriter()


class BlackholeWriter(Writer):
    """Takes everything."""

    def __init__(self) -> None:
        self.rows = 0

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        self.rows += rows.num_rows
        return ()

    def commit(self) -> Receipt:
        return {"dropped": self.rows}
