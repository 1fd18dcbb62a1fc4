"""Rows on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.core.text import plural
from penstock.sdk import BatchId, Capability, Config, Failure, Receipt, Sink, Writer
from penstock.sdk.kit.texttable import cell, heading, text_table


class PrintSinkConfig(Config):
    table: bool = False
    """Print each batch as a table with aligned columns instead of one encoded row a line."""
    max_rows: int = Field(default=100, ge=1)
    """At most this many rows of a batch are printed, then "... and N more"."""
    prefix: str = ""
    """Printed before every line, to tell several outputs apart."""


class PrintSink(Sink[PrintSinkConfig]):
    """Prints rows to standard output of the driver, as JSON unless `format` says otherwise.

    Partitions are printed in order; a batch that is repeated after a crash is printed again.

    ```yaml
    type: print
    from: hourly
    table: true
    max_rows: 20
    ```
    """

    acknowledges = "its rows have been printed"
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> PrintWriter:
        return PrintWriter(self.config, partition, schema)

    def finish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        ordered = sorted(receipts, key=lambda receipt: int(receipt["partition"]))
        total = sum(int(receipt["count"]) for receipt in ordered)
        if not total:
            return
        kept = [line for receipt in ordered for line in receipt["lines"]][: self.config.max_rows]
        lines = text_table(ordered[0]["header"], kept) if self.config.table else kept
        if total > len(kept):
            lines = [*lines, f"... and {plural(total - len(kept), 'more row', 'more rows')}"]
        sys.stdout.write("".join(f"{self.config.prefix}{line}\n" for line in lines))
        sys.stdout.flush()


class PrintWriter(Writer):
    """Keeps the first rows of a partition as text, and counts the rest."""

    def __init__(self, config: PrintSinkConfig, partition: int, schema: pa.Schema) -> None:
        self._config = config
        self._partition = partition
        self._schema = schema
        self._lines: list[Any] = []
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        self._count += rows.num_rows
        room = self._config.max_rows - len(self._lines)
        if room > 0 and self._config.table:
            columns = [[cell(value) for value in column.slice(0, room)] for column in rows.columns]
            self._lines += [list(cells) for cells in zip(*columns, strict=True)]
        elif room > 0 and payloads is not None:
            self._lines += [_line(payload) for payload in payloads.slice(0, room)]
        return ()

    def commit(self) -> Receipt:
        header = [heading(field) for field in self._schema]
        return {
            "partition": self._partition,
            "count": self._count,
            "header": header if self._config.table else [],
            "lines": self._lines,
        }


def _line(payload: pa.Scalar) -> str:
    value = payload.as_py()
    return "null" if value is None else value.decode("utf-8", "replace").rstrip("\n")
