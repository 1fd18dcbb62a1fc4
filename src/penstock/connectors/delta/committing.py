"""Commits of batches: each batch is one version of the table, which also records the batch.

A version has the number and the content of the batch as transaction identifiers of Delta Lake, so
a batch that was committed before is recognised.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from penstock.connectors.delta.client import LOG, Location
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.statistics import merged_bounds
from penstock.connectors.delta.target import open_target
from penstock.connectors.delta.writer import DataFile
from penstock.core.names import quote_standard_name, standard_literal
from penstock.sdk import BatchId, Read
from penstock.sdk.lakes.commits import BatchCommit
from penstock.sdk.lakes.reader import parquet
from penstock.sdk.lakes.writer import DELETED

_BYTES = 7
"""The bytes of text in the number of a transaction identifier."""


@dataclass(frozen=True)
class Transactions:
    """The batches of a query of a sink in the log of a table."""

    application: str

    def last(self, table: Any, query: str) -> BatchId | None:
        """Returns the last committed batch."""
        number = table.transaction_version(self.application)
        if number is None:
            return None
        content = b""
        for index in range(100):
            found = table.transaction_version(self._content(index)) or 1
            part = int(found).to_bytes(_BYTES + 1, "big").lstrip(b"\0")[1:]
            content += part
            if len(part) < _BYTES:
                break
        return BatchId(query, number, content.decode())

    def of(self, batch: BatchId) -> list[Any]:
        """Returns the transaction identifiers of a batch.

        A digest of the content is too long for a number, so it is divided among several.
        """
        from deltalake import Transaction

        content = batch.content.encode()
        parts = [content[at : at + _BYTES] for at in range(0, len(content) + 1, _BYTES)]
        return [
            Transaction(self.application, batch.number),
            *(
                Transaction(self._content(index), int.from_bytes(b"\1" + part, "big"))
                for index, part in enumerate(parts)
            ),
        ]

    def _content(self, index: int) -> str:
        return f"{self.application}/content/{index}"


@dataclass(frozen=True)
class Commit(BatchCommit[DataFile]):
    """The commit of a batch as a version."""

    location: Location
    transactions: Transactions

    @property
    def table_name(self) -> str:
        return self.location.path

    def open_table(self) -> Any:
        return open_target(self.location)

    def last_number(self, table: Any) -> int | None:
        number: int | None = table.transaction_version(self.transactions.application)
        return number

    def converted_errors(self) -> AbstractContextManager[None]:
        return convert_errors("commit to", self.location.path)

    def add(self, table: Any, files: Sequence[DataFile]) -> None:
        self._add(table, files)
        sync_version(self.location, table.version(), with_files=False)

    def merge(self, table: Any, files: Sequence[DataFile]) -> None:
        self._merge(table, files)
        table = self.open_table()
        if not self.is_committed(table):
            self._add(table, ())
        sync_version(self.location, table.version(), with_files=True)

    def delete_staged(self, files: Sequence[DataFile]) -> None:
        with convert_errors("write to", self.location.path):
            for file in files:
                self.location.delete(file.name)

    def _add(self, table: Any, files: Sequence[DataFile]) -> None:
        from deltalake.transaction import AddAction

        now = round(time.time() * 1000)
        table.create_write_transaction(
            [
                AddAction(file.name, file.size, dict(file.values), now, True, file.statistics)
                for file in files
            ],
            "overwrite" if self.mode == "replace" else "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=self._properties(),
        )

    def _merge(self, table: Any, files: Sequence[DataFile]) -> None:
        """Merges staged rows. Bounds of the key in the condition skip files without these keys."""
        rows = self._staged_rows(files)
        deleted = f"source.{quote_standard_name(DELETED)}"
        assigned = {
            quote_standard_name(name): f"source.{quote_standard_name(name)}"
            for name in rows.schema.names
            if name != DELETED
        }
        on = [f"target.{name} = source.{name}" for name in map(quote_standard_name, self.key)]
        bounds = merged_bounds([file.statistics for file in files])
        for name in self.key:
            type_ = rows.schema.field(name).type
            if name in bounds and (pa.types.is_integer(type_) or pa.types.is_string(type_)):
                low, high = map(_literal, bounds[name])
                on.append(f"target.{quote_standard_name(name)} BETWEEN {low} AND {high}")
        merge = table.merge(
            rows, " AND ".join(on), "source", "target", commit_properties=self._properties()
        ).when_matched_delete(deleted)
        merge = merge.when_matched_update(assigned)
        merge.when_not_matched_insert(assigned, f"NOT {deleted}").execute()

    def _staged_rows(self, files: Sequence[DataFile]) -> pa.RecordBatchReader:
        with self.location.open_input(files[0].name) as file:
            schema = parquet().infer_file(file)
        assert schema is not None

        def batches() -> Iterator[pa.RecordBatch]:
            for each in files:
                with self.location.open_input(each.name) as file:
                    for rows, _ in parquet().read_file(file, schema, each.name, Read()):
                        yield rows

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _properties(self) -> Any:
        from deltalake import CommitProperties

        return CommitProperties(app_transactions=self.transactions.of(self.batch))


def sync_version(location: Location, version: int, *, with_files: bool) -> None:
    """Writes a version to disk, also the files that delta-rs has written for it `with_files`."""
    if not location.is_local:
        return
    name = f"{LOG}/{version:020d}.json"
    if with_files:
        with location.open_input(name) as log:
            actions = [json.loads(line) for line in log]
        for action in actions:
            for kind in ("add", "cdc"):
                if kind in action:
                    location.sync(unquote(action[kind]["path"]))
    location.sync(name)


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else standard_literal(value)
