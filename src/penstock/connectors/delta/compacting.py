"""Compaction: small files of a partition are combined by delta-rs (OPTIMIZE)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.connectors.delta.client import Location
from penstock.connectors.delta.committing import sync_version
from penstock.connectors.delta.errors import convert_errors
from penstock.connectors.delta.target import open_target
from penstock.sdk.lakes.compaction import Compacted, bins


def combinable(table: Any, size: int) -> list[list[str]]:
    """Returns groups of names of files that together have at most a size."""
    actions = pa.table(table.get_add_actions())
    names = [name for name in ("path", "size_bytes", "partition") if name in actions.schema.names]
    rows = actions.select(names).to_pylist()
    return bins(
        ((repr(row.get("partition")), row["size_bytes"], row["path"]) for row in rows), size
    )


def combine(location: Location, size: int) -> Compacted:
    """Combines the small files of a table. Raises Conflict if another writer removes one."""
    table = open_target(location)
    with convert_errors("compact", location.path):
        metrics = table.optimize.compact(target_size=size)
        sync_version(location, table.version(), with_files=True)
    return Compacted(metrics["numFilesRemoved"], metrics["numFilesAdded"])
