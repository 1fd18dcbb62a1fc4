"""Compaction: small data files of a partition are written again as larger ones.

The snapshot has the operation `replace`: readers of added rows skip it. The module imports
PyIceberg, and is imported when it is needed.
"""

from __future__ import annotations

import uuid
from typing import Any

from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles

from penstock.connectors.iceberg.client import TableAccess
from penstock.connectors.iceberg.committing import (
    aborted_if_rejected,
    begin,
    commit,
    replace_files,
)
from penstock.connectors.iceberg.errors import convert_errors
from penstock.connectors.iceberg.reader import ExactReader
from penstock.connectors.iceberg.snapshots import planned
from penstock.connectors.iceberg.target import HINT, Target
from penstock.connectors.iceberg.writer import IcebergWriter
from penstock.sdk.lakes.compaction import Compacted, bins


class _ReplaceFiles(_OverwriteFiles):
    """A snapshot that replaces files by others with the same rows."""

    def _summary(self, snapshot_properties: dict[str, str] = {}) -> Summary:  # noqa: B006
        summary = super()._summary(snapshot_properties)
        return Summary(operation=Operation.REPLACE, **summary.additional_properties)


def combinable(table: Any, size: int) -> list[list[Any]]:
    """Returns groups of scans of data files that together have at most a size."""
    tasks = sorted(
        planned(table.scan(), ".".join(table.name())), key=lambda task: task.file.file_path
    )
    files = [
        ((task.file.spec_id, repr(task.file.partition)), task.file.file_size_in_bytes, task)
        for task in tasks
        if task.file.spec_id == table.spec().spec_id
    ]
    return bins(files, size)


def combine(access: TableAccess, size: int) -> Compacted:
    """Combines the small files of a table. Raises Conflict if another writer commits before."""
    table = access.require(HINT)
    with convert_errors("compact", access.name):
        groups = combinable(table, size)
        if not groups:
            return Compacted()
        begin(table)
        target = Target(table)
        names = [field.name for field in target.schema.fields]
        writers = [IcebergWriter(target, _name(), names, ()) for _ in groups]
        added = _rewrite(writers, target, groups)
        removed = [task.file for group in groups for task in group]
        transaction = table.transaction()
        replace_files(_ReplaceFiles(Operation.OVERWRITE, transaction, table.io), removed, added)
        with aborted_if_rejected(*writers):
            commit(transaction, table)
    return Compacted(len(removed), len(added))


def _rewrite(writers: list[IcebergWriter], target: Target, groups: list[list[Any]]) -> list[Any]:
    """Returns the new data files, which are deleted after a failure."""
    try:
        for writer, group in zip(writers, groups, strict=True):
            _write(writer, target, group)
        return [file for writer in writers for file in writer.data_files()]
    except BaseException:
        for writer in writers:
            writer.abort()
        raise


def _write(writer: IcebergWriter, target: Target, tasks: list[Any]) -> None:
    for batch in ExactReader.of(target.table).scan(tasks):
        for failure in writer.write(batch):
            raise failure.error


def _name() -> str:
    return f"compacted-{uuid.uuid4().hex}"
