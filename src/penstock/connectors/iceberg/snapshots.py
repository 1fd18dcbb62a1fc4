"""Snapshots of a table: the files of a snapshot, and those that a snapshot adds or removes.

The version of a snapshot is its sequence number, which grows with each commit.
Source: https://iceberg.apache.org/spec/#snapshots
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.connectors.iceberg.errors import convert_errors
from penstock.connectors.iceberg.partitioning import constants
from penstock.core.errors import Permanent
from penstock.sdk.lakes.files import FileOfVersion, Kind, changed_rows, data_gone


@dataclass(frozen=True, kw_only=True)
class IcebergFile(FileOfVersion):
    """A data file of a snapshot. `schema` is the ID of the schema of the rows.

    `constants` are values of columns that the file may lack, by the IDs of the columns. `deletes`
    are the files with the positions of deleted rows.
    """

    snapshot: int
    schema: int
    constants: Mapping[int, Any] = field(default_factory=dict)
    deletes: tuple[Any, ...] = ()


@dataclass
class History:
    """The snapshots of a table that a source reads, of one state of the table."""

    table: Any
    name: str
    reads_changes: bool
    skips_gaps: bool
    schema: int
    _known: dict[tuple[int, bool], Sequence[IcebergFile]] = field(default_factory=dict)

    def forget(self, version: int) -> None:
        """Forgets the files of the snapshots before a version."""
        self._known = {
            key: files
            for key, files in self._known.items()
            if any(file.version >= version for file in files)
        }

    def ancestors(self, head: Any) -> Iterator[Any]:
        """Yields a snapshot and those before it that the table still has."""
        while head is not None:
            yield head
            parent = head.parent_snapshot_id
            head = None if parent is None else self.table.snapshot_by_id(parent)

    def after(self, last: int | None, expected: int, head: Any) -> tuple[list[Any], bool]:
        """Returns the snapshots after the one that was read last up to `head`, in order.

        `expected` is the version after that of the last one. Also returns whether snapshots between
        them were expired; then the oldest one has no parent, or one that the table does not have.
        Raises Permanent if the last one is not before `head`.
        """
        found: list[Any] = []
        for snapshot in self.ancestors(head):
            if snapshot.snapshot_id == last:
                return found[::-1], False
            if last is not None and (snapshot.sequence_number or 0) < expected:
                raise self._rolled_back(last)
            found.append(snapshot)
        if not found:
            if last is not None:
                raise self._rolled_back(last)
            return [], False
        oldest = found[-1]
        parent = oldest.parent_snapshot_id
        is_next = parent is None and (last is None or oldest.sequence_number == expected)
        has_gap = parent != last and not is_next
        if has_gap and not self.skips_gaps:
            raise data_gone(f"snapshots of {self.name} were expired before being read")
        return found[::-1], has_gap

    def _rolled_back(self, last: int) -> Permanent:
        return Permanent(
            f"{self.name} was rolled back behind the snapshot that was read last ({last})",
            code="changed-rows", hint="Read the table again with --fresh.",
        )  # fmt: skip

    def gap(self, snapshot: Any) -> IcebergFile:
        """Returns the entry of the snapshots that were expired before a snapshot."""
        return IcebergFile(
            name=self.name, size=0, version=snapshot.sequence_number, kind="gone", rows=0,
            snapshot=snapshot.snapshot_id, schema=self.schema,
        )  # fmt: skip

    def all_files(self, snapshot: Any) -> Sequence[IcebergFile]:
        """Returns the files of the table at a snapshot."""
        key = (snapshot.snapshot_id, True)
        if key not in self._known:
            self._known[key] = self._all_files(snapshot)
        return self._known[key]

    def changed_files(self, snapshot: Any) -> Sequence[IcebergFile]:
        """Returns the files that a snapshot adds or removes."""
        key = (snapshot.snapshot_id, False)
        if key not in self._known:
            self._known[key] = self._changed_files(snapshot)
        return self._known[key]

    def _all_files(self, snapshot: Any) -> Sequence[IcebergFile]:
        found = []
        with convert_errors("read the snapshots of", self.name):
            manifests = snapshot.manifests(self.table.io)
            deletes = self._deletes(snapshot) if any(map(_is_deletes, manifests)) else {}
            for manifest in manifests:
                if not _is_deletes(manifest):
                    entries = manifest.fetch_manifest_entry(self.table.io, discard_deleted=True)
                    for entry in entries:
                        file = self._file(entry, snapshot, "insert", deletes)
                        found.append((entry.sequence_number or 0, file))
        return [file for _, file in sorted(found, key=lambda item: (item[0], item[1].name))]

    def _changed_files(self, snapshot: Any) -> Sequence[IcebergFile]:
        from pyiceberg.table.snapshots import Operation

        operation = snapshot.summary.operation if snapshot.summary is not None else None
        if operation == Operation.REPLACE:
            return []
        with convert_errors("read the snapshots of", self.name):
            own = [
                manifest
                for manifest in snapshot.manifests(self.table.io)
                if manifest.added_snapshot_id == snapshot.snapshot_id
            ]
            entries = [
                entry
                for manifest in own
                for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=False)
                if entry.snapshot_id == snapshot.snapshot_id and not _is_deletes(manifest)
            ]
            removes = any(
                manifest.added_files_count != 0 for manifest in own if _is_deletes(manifest)
            )
        return self._changes(snapshot, operation, entries, removes)

    def _changes(
        self, snapshot: Any, operation: Any, entries: Sequence[Any], removes: bool
    ) -> Sequence[IcebergFile]:
        from pyiceberg.manifest import ManifestEntryStatus

        added = [entry for entry in entries if entry.status == ManifestEntryStatus.ADDED]
        removed = [entry for entry in entries if entry.status == ManifestEntryStatus.DELETED]
        subject = f"snapshot {snapshot.snapshot_id} of {self.name}"
        if (removed or removes) and not self.reads_changes:
            raise changed_rows(subject, None if operation is None else operation.value)
        if removes:
            raise Permanent(
                f"cannot read {self.name}: {subject} has changes as delete files",
                code="unsupported-table",
                hint="Set write.delete.mode, write.update.mode and write.merge.mode of the table "
                "to copy-on-write, and read the table again with --fresh.",
            )
        deletes = self._deletes_before(snapshot) if removed else {}
        files = [self._file(entry, snapshot, "delete", deletes) for entry in removed]
        files += [self._file(entry, snapshot, "insert", {}) for entry in added]
        return sorted(files, key=lambda file: (file.kind, file.name))

    def _deletes_before(self, snapshot: Any) -> Mapping[str, tuple[Any, ...]]:
        """Returns the delete files of data files before a snapshot that removes some of them."""
        parent = self.table.snapshot_by_id(snapshot.parent_snapshot_id)
        if parent is None:
            return {}
        with convert_errors("read the snapshots of", self.name):
            has_deletes = any(map(_is_deletes, parent.manifests(self.table.io)))
            return self._deletes(parent) if has_deletes else {}

    def _deletes(self, snapshot: Any) -> Mapping[str, tuple[Any, ...]]:
        """Returns the delete files of each data file of a snapshot."""
        tasks = planned(self.table.scan(snapshot_id=snapshot.snapshot_id), self.name)
        return {task.file.file_path: tuple(task.delete_files) for task in tasks}

    def _file(
        self, entry: Any, snapshot: Any, kind: Kind, deletes: Mapping[str, tuple[Any, ...]]
    ) -> IcebergFile:
        path = entry.data_file.file_path
        return file_of(
            entry.data_file, self.table, snapshot, self.schema, deletes.get(path, ()), kind
        )


def file_of(
    file: Any, table: Any, snapshot: Any, schema: int, deletes: Sequence[Any], kind: Kind = "insert"
) -> IcebergFile:
    """Returns a data file with the facts that a reader needs. Raises Permanent."""
    if file.file_format.value.lower() != "parquet":
        raise Permanent(
            f"cannot read the file {file.file_path}, which is not Parquet",
            code="unsupported-table", hint="Rewrite the files of the table as Parquet.",
        )  # fmt: skip
    return IcebergFile(
        name=file.file_path,
        size=file.file_size_in_bytes,
        version=snapshot.sequence_number or 0,
        time=snapshot.timestamp_ms,
        kind=kind,
        rows=file.record_count,
        snapshot=snapshot.snapshot_id,
        schema=schema,
        constants=constants(file, table.specs().get(file.spec_id)),
        deletes=tuple(deletes),
    )


def planned(scan: Any, name: str) -> list[Any]:
    """Returns the data files of a scan with their delete files. Raises Permanent."""
    try:
        return list(scan.plan_files())
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise
        raise equality_deletes(name) from error


def live_files(table: Any) -> list[Any]:
    """Returns the data files of the current snapshot of a table."""
    snapshot = table.current_snapshot()
    return [
        entry.data_file
        for manifest in (snapshot.manifests(table.io) if snapshot is not None else ())
        if not _is_deletes(manifest)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    ]


def _is_deletes(manifest: Any) -> bool:
    from pyiceberg.manifest import ManifestContent

    return bool(manifest.content == ManifestContent.DELETES)


def equality_deletes(name: str) -> Permanent:
    """Returns the error of a table with delete files that PyIceberg cannot apply."""
    return Permanent(
        f"cannot read {name}: it has equality deletes",
        code="unsupported-table",
        hint="Rewrite its files with another system, as with the procedure rewrite_data_files of "
        "Spark.",
    )
