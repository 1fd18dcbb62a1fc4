"""Files of versions: the rows that a version has, adds, removes or changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import Permanent

Kind = Literal["insert", "delete", "before", "after", "gone"]
"""The rows of a file: all rows inserted or deleted, or those of a file of changes before or after
the change. `gone` stands for versions that were removed before they were read."""


@dataclass(frozen=True, kw_only=True)
class FileOfVersion:
    """A file whose rows a version has, adds, removes or changes. `time` is in milliseconds."""

    name: str
    size: int
    version: int
    time: int | None = None
    kind: Kind = "insert"
    rows: int | None = None


def data_gone(message: str) -> Permanent:
    """Returns the error of removed versions and files."""
    return Permanent(
        message,
        code="data-gone",
        hint="Set on_data_loss: continue to read the remaining rows, or run with --fresh to reset "
        "the state.",
    )


def changed_rows(subject: str, operation: str | None) -> Permanent:
    """Returns the error of a version that removes or changes rows."""
    return Permanent(
        f"{subject} removes or changes rows{f' ({operation})' if operation else ''}",
        code="changed-rows",
        hint="Set changes: true to read changes, or read the table again with --fresh.",
    )
