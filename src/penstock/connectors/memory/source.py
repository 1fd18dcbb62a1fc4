"""The memory source, whose rows are in the pipeline file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.core.errors import PlanError, RecordError
from penstock.sdk import Capability, Config, Offset, Read, ReplayableSource, bisect_failures
from penstock.sdk.columns.row_json import row_text
from penstock.sdk.columns.rows import batch_of, infer_rows


class MemorySourceConfig(Config):
    rows: list[dict[str, Any]] | None = None
    """The rows, each a map of column to value. Missing columns are null."""
    payloads: list[str] | None = None
    """Encoded records instead of rows, decoded by `format`."""
    batches: int = Field(default=1, ge=1)
    """The number of batches."""
    partitions: int = Field(default=1, ge=1)
    """The number of partitions of a batch."""

    @model_validator(mode="after")
    def _check_one_option(self) -> MemorySourceConfig:
        if (self.rows is None) == (self.payloads is None):
            raise ValueError("expected either rows or payloads")
        return self


class MemorySource(ReplayableSource[MemorySourceConfig]):
    """Reads the rows of the option `rows` or `payloads`.

    The rows are divided evenly into batches and partitions. A restarted pipeline resumes after the
    last committed batch.

    ```yaml
    type: memory
    rows:
      - {user: ann, amount: 3.5}
      - {user: bob, amount: 4}
    ```
    """

    parallelism = "an equal share of a batch"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.ORDERED,
            Capability.ROWS,
        }
    )

    def schema(self) -> pa.Schema | None:
        return infer_rows(self.config.rows) if self.config.rows else None

    def infer_schema(self) -> pa.Schema | None:
        if self.config.payloads is None or self.format is None:
            return self.schema()
        texts = self.format.records(_binary(self.config.payloads)).texts
        return self.format.declared_schema() or self.format.infer_schema(texts)

    def default_format(self) -> str | None:
        return "json" if self.config.payloads is not None else None

    def metadata_schema(self) -> pa.Schema:
        return pa.schema([("position", pa.int64())])

    def is_bounded(self) -> bool:
        return True

    def initial_offset(self) -> Offset:
        return {"rows": 0}

    def latest_offset(self, start: Offset) -> Offset:
        return {"rows": max(self._total, int(start["rows"]))}

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        size = max(1, math.ceil(self._total / self.config.batches))
        return {"rows": min(int(start["rows"]) + size, int(end["rows"]))}

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[int, int]]:
        first, last = int(start["rows"]), int(end["rows"])
        size = max(1, math.ceil((last - first) / self.config.partitions))
        return [(low, min(low + size, last)) for low in range(first, last, size)]

    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        start, stop = partition
        batches = self._decode_payloads if self.config.payloads is not None else self._convert_rows
        for rows, positions in batches(start, stop, read):
            columns, names = list(rows.columns), list(rows.schema.names)
            if "position" in read.metadata:
                columns.append(positions)
                names.append("position")
            yield pa.record_batch(columns, names=names)

    def lag(self, current: Offset, latest: Offset) -> int:
        return int(latest["rows"]) - int(current["rows"])

    @property
    def _total(self) -> int:
        return len(self.config.rows or self.config.payloads or ())

    def _columns(self) -> pa.Schema:
        schema = self.columns or self.infer_schema()
        if schema is None:
            raise PlanError("a memory source without rows requires a schema")
        return schema

    def _convert_rows(
        self, start: int, stop: int, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        selected = (self.config.rows or [])[start:stop]
        schema = self._columns()
        for low, high, result in bisect_failures(
            len(selected), lambda low, high: batch_of(selected[low:high], schema)
        ):
            if isinstance(result, RecordError):
                payload = row_text(selected[low]).encode()
                read.reject(payload, self.context.node, start + low + 1, result)
            else:
                yield result, _positions(start + low, start + high)

    def _decode_payloads(
        self, start: int, stop: int, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        if self.format is None:
            raise PlanError("payloads requires a format")
        payloads = _binary((self.config.payloads or [])[start:stop])
        rows, indexes, bad = self.format.rows(payloads, self._columns())
        for index, text, part, error in bad:
            read.reject(text, self.context.node, start + index + 1, error, part)
        positions = _positions(start, stop)
        if rows.num_rows:
            yield rows, positions if indexes is None else positions.take(indexes)


def _binary(payloads: Sequence[str]) -> pa.BinaryArray:
    return pa.array([payload.encode() for payload in payloads], pa.binary())


def _positions(start: int, stop: int) -> pa.Int64Array:
    return pa.array(range(start + 1, stop + 1), pa.int64())
