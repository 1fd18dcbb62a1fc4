"""Commits of batches: each batch is one snapshot of the table.

The commit of the snapshot also sets a property of the table with the number and the content of the
batch, so a batch that was committed before is recognised, even if its snapshot was expired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.connectors.iceberg.client import TableAccess, sync_location
from penstock.connectors.iceberg.data_files import from_json
from penstock.connectors.iceberg.errors import convert_errors
from penstock.connectors.iceberg.merging import Merge
from penstock.connectors.iceberg.snapshots import live_files
from penstock.connectors.iceberg.target import HINT, Target
from penstock.connectors.iceberg.writer import IcebergWriter, delete_files
from penstock.core.errors import Permanent
from penstock.sdk import BatchId, Receipt
from penstock.sdk.lakes.commits import BatchCommit

PREFIX = "penstock.batch."


@dataclass(frozen=True)
class BatchMarks:
    """The batches of a sink in the properties of a table. `application` identifies the sink."""

    application: str

    def last(self, table: Any, query: str) -> BatchId | None:
        """Returns the last committed batch of a query."""
        text = table.properties.get(self._key(query))
        if text is None:
            return None
        number, _, content = text.partition(" ")
        return BatchId(query, int(number), content)

    def set(self, transaction: Any, batch: BatchId, table: Any) -> None:
        """Marks a batch as committed, in place of those of queries that were reset."""
        key, start = self._key(batch.query), self._key("")
        old = [name for name in table.properties if name.startswith(start) and name != key]
        if old:
            transaction.remove_properties(*old)
        transaction.set_properties({key: f"{batch.number} {batch.content}".strip()})

    def summary(self, batch: BatchId) -> dict[str, str]:
        """Returns the properties of the snapshot of a batch, for readers of its history."""
        return {"penstock.query": batch.query, "penstock.batch": str(batch.number)}

    def _key(self, query: str) -> str:
        return f"{PREFIX}{self.application}/{query}"


@dataclass(frozen=True)
class Commit(BatchCommit[Receipt]):
    """The commit of a batch as a snapshot."""

    access: TableAccess
    marks: BatchMarks

    @property
    def table_name(self) -> str:
        return self.access.name

    def open_table(self) -> Any:
        return self.access.require(HINT)

    def last_number(self, table: Any) -> int | None:
        last = self.marks.last(table, self.batch.query)
        return None if last is None else last.number

    def converted_errors(self) -> AbstractContextManager[None]:
        return convert_errors("commit to", self.access.name)

    def add(self, table: Any, receipts: Sequence[Receipt]) -> None:
        transaction = self._begin(table)
        files = data_files(table, receipts)
        update = self._update(transaction)
        if self.mode == "replace":
            replace_files(update.overwrite(), live_files(table), files)
        else:
            merges = table.properties.get("commit.manifest-merge.enabled", "").lower() == "true"
            replace_files(update.merge_append() if merges else update.fast_append(), (), files)
        commit(transaction, table)

    def merge(self, table: Any, receipts: Sequence[Receipt]) -> None:
        transaction = self._begin(table)
        merge = Merge(Target(table), self.key)
        removed, added = merge.execute(_staged(receipts))
        if removed or added:
            replace_files(self._update(transaction).overwrite(), removed, added)
        with aborted_if_rejected(merge):
            commit(transaction, table)

    def delete_staged(self, receipts: Sequence[Receipt]) -> None:
        delete_files(self.open_table().io, _staged(receipts))

    def _begin(self, table: Any) -> Any:
        transaction = begin(table)
        self.marks.set(transaction, self.batch, table)
        return transaction

    def _update(self, transaction: Any) -> Any:
        summary = self.marks.summary(self.batch)
        return transaction.update_snapshot(snapshot_properties=summary)


def _staged(receipts: Sequence[Receipt]) -> list[str]:
    return [name for receipt in receipts for name in receipt.get("staged", ())]


def data_files(table: Any, receipts: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Returns the data files of a batch. Raises Permanent if the partitions were changed since."""
    found = []
    for receipt in receipts:
        if receipt["files"] and receipt["spec"] != table.spec().spec_id:
            raise Permanent(
                f"the partitions of {'.'.join(table.name())} were changed during the run",
                code="target-schema", hint="Start the run again: the batch is written again.",
            )  # fmt: skip
        found += [from_json(file, table.spec(), table.schema()) for file in receipt["files"]]
    return found


def begin(table: Any) -> Any:
    """Returns a transaction that fails after a commit of another writer.

    PyIceberg itself would commit again without a look for the batch.
    """
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table.transaction()


def commit(transaction: Any, table: Any) -> None:
    """Commits a transaction, and writes the files of the snapshot to disk."""
    before = table.metadata.current_snapshot_id
    transaction.commit_transaction()
    root = table.location()
    sync_location(table.metadata_location, root)
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.snapshot_id == before:
        return
    sync_location(snapshot.manifest_list, root)
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            sync_location(manifest.manifest_path, root)


def replace_files(snapshot: Any, removed: Sequence[Any], added: Sequence[Any]) -> None:
    """Adds a snapshot that removes and adds data files to its transaction."""
    for file in removed:
        snapshot.delete_data_file(file)
    for file in added:
        snapshot.append_data_file(file)
    snapshot.commit()


@contextmanager
def aborted_if_rejected(*writers: Merge | IcebergWriter) -> Iterator[None]:
    """Deletes the files of writers if the commit in this context has failed for certain."""
    from pyiceberg.exceptions import CommitFailedException, ValidationException

    try:
        yield
    except (CommitFailedException, ValidationException):
        for writer in writers:
            writer.abort()
        raise
