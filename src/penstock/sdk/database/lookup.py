"""Lookup tables of a database: rows by key, of a table or a query."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from penstock.core.errors import OptionError, PlanError, RecordError, Rejected
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.capability import Capability
from penstock.sdk.component import C
from penstock.sdk.database.config import TableSourceConfig
from penstock.sdk.lookup import LookupSource
from penstock.sdk.record import Read
from penstock.sdk.source import Source

T = TypeVar("T", bound=TableSourceConfig)
_OF_STREAMS = ("changes", "watch", "cursor_columns", "interval", "min_age", "max_records")


class KeyReader(Source[C]):
    """A source of rows that also reads rows by key."""

    @abstractmethod
    def read_keys(self, keys: pa.RecordBatch, read: Read) -> list[pa.RecordBatch]:
        """Returns the rows with these keys, in any order. Raises RecordError for a wrong key."""


class RowLookup(LookupSource[C], Generic[C]):
    """Looks up rows of a source by its primary key.

    A key with several rows, or one that the system rejects, is a dead letter and has no row.
    """

    capabilities = frozenset({Capability.LOOKUP_BY_KEY, Capability.ROWS})
    parallelism = "the tasks of the stream"
    acknowledges = None
    keys_per_lookup = 500

    def __init__(self, source: KeyReader[C]) -> None:
        super().__init__(source.config, source.context)
        self._source = source

    def prepare_lookup(self) -> None:
        for option in _OF_STREAMS:
            if option in self.config.model_fields_set:
                raise OptionError.of(
                    option, of_key=True, message=f"{option} has no meaning for a lookup table",
                    code="unused-option", hint=f"Remove {option}.",
                )  # fmt: skip

    def with_state(self, state: Path) -> Self:
        return self

    def metadata_schema(self) -> pa.Schema:
        return self._source.metadata_schema()

    def infer_schema(self) -> pa.Schema | None:
        return self._source.infer_schema()

    def infer_primary_key(self) -> tuple[str, ...]:
        return self._source.infer_primary_key()

    def validate(self) -> None:
        self._source.validate()

    def check(self) -> None:
        self._source.columns = self.columns
        self._source.check()

    def close(self) -> None:
        self._source.close()

    def open(self) -> KeyReader[C]:
        self._source.columns = self.columns
        return self._source

    def lookup(self, client: KeyReader[C], keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        assert self.columns is not None

        def attempt(start: int, stop: int) -> tuple[list[pa.RecordBatch], Read]:
            part = Read(read.columns, read.conjuncts, read.metadata)
            return client.read_keys(keys.slice(start, stop - start), part), part

        found: list[pa.RecordBatch] = []
        for start, _, result in bisect_failures(keys.num_rows, attempt):
            if isinstance(result, RecordError):
                read.reject(None, _key_text(keys, start), start, result)
            else:
                rows, part = result
                found += rows
                read.bad += part.bad
        table = pa.Table.from_batches(found, self.columns).combine_chunks()
        batch = next(iter(table.to_batches()), None)
        if batch is None:
            return pa.RecordBatch.from_pylist([], self.columns)
        return batch.take(pa.array(self._single(batch, keys, read), pa.int64()))

    def _single(self, rows: pa.RecordBatch, keys: pa.RecordBatch, read: Read) -> Iterator[int]:
        """Yields the places of the rows with a key of their own. Rejects the other keys."""
        found = list(_values(rows, keys.schema.names))
        counts = Counter(found)
        for index, key in enumerate(_values(keys, keys.schema.names)):
            if counts[key] > 1:
                error = Rejected(f"expected one row, found {counts[key]}", code="several-rows")
                read.reject(None, _key_text(keys, index), index, error)
        yield from (place for place, key in enumerate(found) if counts[key] == 1)


class TableLookup(RowLookup[T], Generic[T]):
    """Looks up rows of the table or the query of a source."""

    @property
    def declares_primary_key(self) -> bool:  # type: ignore[override]
        return self.config.table is not None

    def prepare_lookup(self) -> None:
        super().prepare_lookup()
        if self.config.table is None and not self.primary_key:
            raise PlanError(
                "rows of a query are looked up by key, and no primary key is declared",
                code="missing-option", hint="Set primary_key: [COLUMN].",
            )  # fmt: skip

    def infer_primary_key(self) -> tuple[str, ...]:
        key = super().infer_primary_key()
        if not key:
            raise PlanError(
                f'the table "{self.config.table}" has no primary key', code="missing-option",
                hint="Set primary_key to columns that identify a row.",
            )  # fmt: skip
        return key


def _values(rows: pa.RecordBatch, names: list[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows.column(name).to_pylist() for name in names), strict=True)


def _key_text(keys: pa.RecordBatch, index: int) -> str:
    (row,) = keys.slice(index, 1).to_pylist()
    return ", ".join(f"{name}={value}" for name, value in row.items())
