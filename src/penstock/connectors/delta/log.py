"""The log of a table: the files of a version, and those that a version adds or removes.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#actions
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from penstock.connectors.delta.client import LOG, Location
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.partition_values import Values, to_texts
from penstock.core.errors import Permanent
from penstock.sdk.lakes.files import FileOfVersion, Kind, changed_rows, data_gone


@dataclass(frozen=True, kw_only=True)
class DeltaFile(FileOfVersion):
    """A file of a version, with the values of its partition."""

    values: Values = field(default_factory=dict)
    kept: bytes | None = None
    """A byte for each row: 0 if the deletion vector of the file has removed it."""


@dataclass
class VersionLog:
    """The files of the versions of a table. Files of read versions are kept until `forget`."""

    location: Location
    reads_changes: bool = False
    skips_gaps: bool = False
    _known: dict[tuple[int, bool], Sequence[DeltaFile]] = field(default_factory=dict)

    def forget(self, version: int) -> None:
        """Forgets the files of the versions before a version."""
        self._known = {key: files for key, files in self._known.items() if key[0] >= version}

    def files(self, version: int, *, snapshot: bool) -> Sequence[DeltaFile]:
        """Returns the files of the table at a version, or those that the version changes."""
        key = (version, snapshot)
        if key not in self._known:
            self._known[key] = self._snapshot(version) if snapshot else self._changes(version)
        return self._known[key]

    def _snapshot(self, version: int) -> Sequence[DeltaFile]:
        table = self.location.open(version)
        if table is None:
            raise self._gone(version)
        check_readable(table, self.location.path)
        with convert_errors("read the log of", self.location.path):
            actions = pa.table(table.get_add_actions())
            paths = actions.column("path").to_pylist()
            kept = _kept_rows(table, {*paths})
        texts = _partition_values(actions)
        time = self._time(version)
        names = ["path", "size_bytes", "num_records", "modification_time"]
        rows = actions.select(names).to_pylist()
        files = [
            (
                row["modification_time"],
                DeltaFile(
                    name=unquote(row["path"]),
                    size=row["size_bytes"],
                    values={name: values[index].as_py() for name, values in texts.items()},
                    version=version,
                    time=time,
                    rows=row["num_records"],
                    kept=kept.get(row["path"]),
                ),
            )
            for index, row in enumerate(rows)
        ]
        return [each for _, each in sorted(files, key=lambda item: (item[0], item[1].name))]

    def _time(self, version: int) -> int | None:
        try:
            return _commit_time(self._actions(version))
        except FileNotFoundError:
            return None

    def _changes(self, version: int) -> Sequence[DeltaFile]:
        try:
            actions = self._actions(version)
        except FileNotFoundError:
            if not self.skips_gaps:
                raise self._gone(version) from None
            name = log_name(version)
            return [DeltaFile(name=name, size=0, version=version, kind="gone", rows=0)]
        time = _commit_time(actions)
        found: dict[str, list[Any]] = {"add": [], "remove": [], "cdc": []}
        for action in actions:
            for kind, files in found.items():
                if kind in action and (kind == "cdc" or action[kind]["dataChange"]):
                    files.append(action[kind])
        if self.reads_changes and found["cdc"]:
            return [
                _file(each, version, time, kind)
                for kind in ("before", "after")
                for each in found["cdc"]
            ]
        if found["remove"] and not self.reads_changes:
            raise self._changed(version, actions)
        if any(each.get("deletionVector") for each in (*found["add"], *found["remove"])):
            raise deletion_vectors(self.location.path)
        self._check_values(found["remove"])
        removed = [_file(each, version, time, "delete") for each in found["remove"]]
        return [*removed, *(_file(each, version, time, "insert") for each in found["add"])]

    def _actions(self, version: int) -> Sequence[Mapping[str, Any]]:
        """Returns the actions of a version. Raises FileNotFoundError."""
        try:
            with self.location.open_input(log_name(version)) as file:
                return [json.loads(line) for line in file.read().splitlines() if line]
        except FileNotFoundError:
            raise
        except OSError:
            with convert_errors("read the log of", self.location.path):
                raise
            raise

    def _check_values(self, removed: Sequence[Mapping[str, Any]]) -> None:
        """Raises Permanent if removed files of a partitioned table have no partition values."""
        if all(each.get("partitionValues") is not None for each in removed):
            return
        table = self.location.open()
        if table is not None and table.metadata().partition_columns:
            raise Permanent(
                f"cannot read changes of {self.location.path}: removed files have no partition "
                "values",
                code="unsupported-table",
                hint="Set delta.enableChangeDataFeed to true, and read the table again with "
                "--fresh.",
            )

    def _changed(self, version: int, actions: Iterable[Mapping[str, Any]]) -> Permanent:
        operations = (
            each["commitInfo"].get("operation") for each in actions if "commitInfo" in each
        )
        return changed_rows(f"version {version} of {self.location.path}", next(operations, None))

    def _gone(self, version: int) -> Permanent:
        return data_gone(f"version {version} of {self.location.path} was removed before being read")


def deletion_vectors(path: str) -> Permanent:
    """Returns the error of files with deletion vectors."""
    return Permanent(
        f"cannot read {path}: a version has changes as deletion vectors, and no change data feed",
        code="unsupported-table",
        hint="Set delta.enableChangeDataFeed to true, or delta.enableDeletionVectors to false, and "
        "read the table again with --fresh.",
    )


def check_readable(table: Any, path: str) -> None:
    """Raises Permanent for a table whose files have other columns than the table."""
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        raise Permanent(
            f"cannot read {path}: its columns are mapped (delta.columnMapping.mode)",
            code="unsupported-table",
            hint="Read a copy of the table without column mapping.",
        )


def _kept_rows(table: Any, paths: Set[str]) -> Mapping[str, bytes]:
    """Returns `kept` of the files with a deletion vector, by their paths in the log."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    found = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        uris, vectors = batch.columns
        for uri, vector in zip(uris.to_pylist(), vectors, strict=True):
            parts = uri.split("/")
            names = ("/".join(parts[index:]) for index in range(len(parts)))
            path = next(name for name in names if name in paths)
            found[path] = vector.values.cast(pa.uint8()).to_numpy().tobytes()
    return found


def log_name(version: int) -> str:
    """Returns the name of the file of a version."""
    return f"{LOG}/{version:020d}.json"


def _partition_values(actions: pa.Table) -> Mapping[str, pa.Array]:
    """Returns the texts of the partition values of files, by column."""
    if "partition" not in actions.schema.names:
        return {}
    found = actions.column("partition").combine_chunks()
    fields = found.type if pa.types.is_struct(found.type) else ()
    return {field.name: to_texts(found.field(field.name)) for field in fields}


def _file(action: Mapping[str, Any], version: int, time: int | None, kind: Kind) -> DeltaFile:
    statistics = json.loads(action.get("stats") or "{}")
    return DeltaFile(
        name=unquote(action["path"]),
        size=action.get("size") or 0,
        values=action.get("partitionValues") or {},
        version=version,
        time=time,
        kind=kind,
        rows=statistics.get("numRecords"),
    )


def _commit_time(actions: Iterable[Mapping[str, Any]]) -> int | None:
    """Returns the time of a commit in milliseconds."""
    times: Iterator[int | None] = (
        each["commitInfo"].get("inCommitTimestamp") or each["commitInfo"].get("timestamp")
        for each in actions
        if "commitInfo" in each
    )
    return next(times, None)
