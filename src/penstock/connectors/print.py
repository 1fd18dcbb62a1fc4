"""Print: a sink that prints rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.core.standard_streams import output_errors
from penstock.core.text import plural, printable
from penstock.sdk import BatchId, Capability, Config, Failure, Receipt, Sink, Writer
from penstock.sdk.columns.text_table import cell, heading, text_table


class PrintSinkConfig(Config):
    table: bool = False
    """Print each batch as a table, instead of one encoded row a line."""
    max_records: int | None = Field(default=None, ge=1)
    """The maximum number of rows to print of a batch, followed by "... and N more rows". By default
    all rows are printed."""
    every: int = Field(default=1, ge=1)
    """Print one of so many rows, as the third, the sixth and so on, counted in a run."""
    prefix: str = ""
    """The prefix of each line."""
    newline: bool = True
    """End each row with a line end. Otherwise rows are printed one after the other."""


class PrintSink(Sink[PrintSinkConfig]):
    """Prints rows to the standard output of the driver, by default as JSON.

    Control characters in the rows are printed as escapes, such as `\\u001b`, in tables and on a
    terminal. Partitions are printed in order. Changes are printed with their operation column. A
    batch that is repeated after a crash is printed again.

    ```yaml
    type: print
    from: hourly
    table: true
    max_records: 20
    ```
    """

    acknowledges = "its rows have been printed"
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    shows_operations = True
    _seen = 0

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> PrintWriter:
        return PrintWriter(self.config, partition, schema)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        ordered = sorted(receipts, key=lambda receipt: int(receipt["partition"]))
        rows = [line for receipt in ordered for line in receipt["lines"]]
        total = sum(int(receipt["count"]) for receipt in ordered)
        if self.config.every > 1:
            skipped, self._seen = self._seen % self.config.every, self._seen + total
            rows = rows[self.config.every - 1 - skipped :: self.config.every]
            total = len(rows)
        if not total:
            return
        printed = rows[: self.config.max_records]
        lines = self.format_rows(ordered[0]["header"], printed)
        if total > len(printed):
            lines = [*lines, f"... and {plural(total - len(printed), 'more row', 'more rows')}"]
        end = "\n" if self.config.newline else ""
        text = "".join(f"{self.config.prefix}{line}{end}" for line in lines)
        with output_errors():
            sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
            sys.stdout.flush()

    def format_rows(self, header: Sequence[tuple[str, bool]], rows: Sequence[Any]) -> list[str]:
        """Returns the lines of a batch: a table, or the encoded rows."""
        return text_table(header, rows) if self.config.table else list(rows)


class PrintWriter(Writer):
    """Formats the first rows of a partition, and counts all rows."""

    def __init__(self, config: PrintSinkConfig, partition: int, schema: pa.Schema) -> None:
        self._config = config
        self._partition = partition
        self._schema = schema
        self._lines: list[Any] = []
        self._count = 0

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        self._count += rows.num_rows
        kept = self._config.max_records if self._config.every == 1 else None
        remaining = (kept or sys.maxsize) - len(self._lines)
        if remaining > 0 and self._config.table:
            columns = [
                [cell(value, field) for value in column.slice(0, remaining)]
                for column, field in zip(rows.columns, rows.schema, strict=True)
            ]
            self._lines += [list(cells) for cells in zip(*columns, strict=True)]
        elif remaining > 0 and payloads is not None:
            self._lines += [
                _line(payload, self._config.newline) for payload in payloads.slice(0, remaining)
            ]
        return ()

    def commit(self) -> Receipt:
        header = [heading(field) for field in self._schema]
        return {
            "partition": self._partition,
            "count": self._count,
            "header": header if self._config.table else [],
            "lines": self._lines,
        }


def _line(payload: pa.Scalar, ends: bool) -> str:
    """Returns the text of a payload, without a line end of its own if the line `ends` anyway."""
    value = payload.as_py()
    text: str = "null" if value is None else value.decode("utf-8", "replace")
    return text.rstrip("\n") if ends else text
