"""Options of sources of tables and their changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from penstock.sdk.database.changes.truncations import OnTruncate
from penstock.sdk.database.config import TableSourceConfig
from penstock.sdk.receiving import ReceivingConfig


class ChangesOptions(ReceivingConfig):
    of_changes: ClassVar[tuple[str, ...]] = (
        "snapshot", "on_data_loss", "journal", "max_message_size"
    )  # fmt: skip
    """The options that require `changes`."""
    of_rows: ClassVar[tuple[str, ...]] = ("cursor_columns", "watch", "interval", "min_age")
    """The options that `changes` excludes."""

    changes: bool = False
    """Reads all rows, then their inserts, updates and deletes from the log of the server. The run
    does not end."""
    snapshot: bool = True
    """Reads all rows before the changes. Without it the changes since the first start of the
    pipeline are read, as in the last phase of `hybrid`, after rows from elsewhere."""
    on_data_loss: Literal["fail", "continue", "snapshot"] = "fail"
    """The action when the server has removed changes before they were read. `continue` reads the
    changes that remain. `snapshot` reads all rows again, then their changes; rows that were deleted
    meanwhile stay in the targets. Both write a dead letter of the loss."""

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        for option in self.of_rows if self.changes else self.of_changes:
            if option in self.model_fields_set:
                raise ValueError(
                    f"changes excludes {option}" if self.changes else f"{option} requires changes"
                )
        return self


class ChangesConfig(TableSourceConfig, ChangesOptions):
    of_changes: ClassVar[tuple[str, ...]] = ("on_truncate", *ChangesOptions.of_changes)
    of_rows: ClassVar[tuple[str, ...]] = ("query", *ChangesOptions.of_rows)

    on_truncate: OnTruncate = "fail"
    """The action when the table is truncated. `ignore` keeps the rows in the targets, also after a
    truncation that was received with `apply` and is not applied yet. `apply` removes all rows of
    the targets, which must be tables of databases with `mode: upsert`, without stateful transforms
    between. PostgreSQL does not send the removal of rows with a partition (`TRUNCATE`, `DETACH` or
    `DROP` of the partition)."""

    def shared_options(self, pipeline: str) -> Mapping[str, Any]:
        """Returns options by which sources of changes of a pipeline share a connection."""
        return {}
