"""Options of sources of lake tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from penstock.core.units import ByteSize, PositiveDuration
from penstock.sdk.config import Config


class LakeSourceConfig(Config):
    timestamp: datetime | None = None
    """A time: the table is read as it was then. A time without a zone is UTC."""
    watch: bool = False
    """Run continuously and read the versions that are committed later."""
    interval: PositiveDuration = 1.0
    """The time between two queries for new versions, with `watch`."""
    changes: bool = False
    """Reads the inserts, updates and deletes of versions, instead of added rows only."""
    max_files: int | None = Field(default=None, ge=1)
    """The maximum number of files in a batch. The changes of a version are in one batch."""
    max_size: ByteSize | None = Field(default=None, ge=1)
    """The maximum size of the files in a batch. A batch has at least one file."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """The action when files or versions were removed before they were read. `continue` records the
    gap as a dead letter."""

    @property
    def time(self) -> datetime | None:
        """`timestamp` with a time zone."""
        if self.timestamp is None or self.timestamp.tzinfo is not None:
            return self.timestamp
        return self.timestamp.replace(tzinfo=UTC)

    @property
    def is_pinned(self) -> bool:
        """Whether the options name the version that is read first."""
        return self.timestamp is not None
