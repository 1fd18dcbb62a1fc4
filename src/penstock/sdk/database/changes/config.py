"""Options of sources of tables and their changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from penstock.sdk.database.config import TableSourceConfig
from penstock.sdk.receiving import ReceivingConfig

_OF_CHANGES = ("on_truncate", "journal", "max_message_size")
_OF_ROWS = ("query", "cursor_columns", "watch", "interval", "min_age")


class ChangesConfig(TableSourceConfig, ReceivingConfig):
    of_changes: ClassVar[tuple[str, ...]] = ()
    """The further options that require `changes`."""

    changes: bool = False
    """Reads the rows of the table, then their inserts, updates and deletes from the log of the
    server. The run does not end."""
    on_truncate: Literal["fail", "ignore"] = "fail"
    """The action when the table is truncated. `ignore` keeps the rows in the targets."""

    def shared_options(self, pipeline: str) -> Mapping[str, Any]:
        """Returns options by which sources of changes of a pipeline share a connection."""
        return {}

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        for option in _OF_ROWS if self.changes else (*self.of_changes, *_OF_CHANGES):
            if option in self.model_fields_set:
                raise ValueError(
                    f"changes excludes {option}" if self.changes else f"{option} requires changes"
                )
        return self
