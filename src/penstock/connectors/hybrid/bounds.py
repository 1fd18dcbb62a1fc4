"""The bounds of the phases of a hybrid source, found at the first start of a pipeline."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.connectors.hybrid.config import Handover
from penstock.core.errors import raise_all
from penstock.core.files.durable import create_directory_durably
from penstock.core.files.private_files import open_private
from penstock.sdk import Offset
from penstock.sdk.columns.checks import check_column
from penstock.sdk.state_file import JsonStateFile


@dataclass(frozen=True)
class Bounds:
    """The start offset of each phase, and the end offset of each phase but the last, by number."""

    starts: Mapping[str, Offset]
    ends: Mapping[str, Offset]


def load_bounds(directory: Path, find: Callable[[], Bounds]) -> Bounds:
    """Returns the bounds in a state directory. Without bounds, stores those that `find` returns.

    Processes of several queries have the same bounds.
    """
    create_directory_durably(directory)
    file = _file(directory)
    with open_private(directory / "bounds.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stored = file.load()
        if not stored:
            bounds = find()
            stored = {"starts": dict(bounds.starts), "ends": dict(bounds.ends)}
            file.save(stored)
    return Bounds(stored["starts"], stored["ends"])


def has_bounds(directory: Path) -> bool:
    """Returns whether the bounds are stored in a state directory."""
    return bool(_file(directory).load())


def _file(directory: Path) -> JsonStateFile:
    return JsonStateFile(directory / "bounds.json", "bounds")


def last_positions(batches: Iterable[pa.RecordBatch], handover: Handover) -> dict[int, int]:
    """Returns the greatest offset of each partition in the columns of `handover`.

    Rows with a null in one of the columns have no position.
    """
    last: dict[int, int] = {}
    for batch in batches:
        rows = pa.table(
            {name: batch.column(name) for name in (handover.partition, handover.offset)}
        )
        rows = rows.rename_columns(["partition", "offset"]).drop_null()
        for row in rows.group_by("partition").aggregate([("offset", "max")]).to_pylist():
            number, offset = int(row["partition"]), int(row["offset_max"])
            last[number] = max(offset, last.get(number, offset))
    return last


def check_columns(handover: Handover, columns: pa.Schema) -> None:
    """Checks that the columns of `handover` exist and are integers.

    Raises OptionError, or ValidationErrors with both errors.
    """
    raise_all(
        error
        for option in ("partition", "offset")
        for error in check_column(
            getattr(handover, option), columns, "handover", option,
            accepts=pa.types.is_integer, expected="Use a column of integers.",
        )
    )  # fmt: skip
