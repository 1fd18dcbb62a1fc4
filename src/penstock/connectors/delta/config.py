"""Options of the Delta Lake source and sink."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import Field, model_validator

from penstock.sdk import ByteSize, Config, PositiveDuration
from penstock.sdk.database.config import TargetConfig
from penstock.sdk.object_store import StorageOptions, StoragePath


class LocationConfig(Config):
    path: StoragePath
    """The directory of the table, or its URL (`s3://`, `gs://`, `abfss://`, `file://`)."""
    storage: StorageOptions | None = None
    """The connection to the object store of an `s3://` URL."""


class DeltaSourceConfig(LocationConfig):
    version: int | None = Field(default=None, ge=0)
    """The version of the table that is read first. By default the latest one. Without `watch` no
    later version is read."""
    timestamp: datetime | None = None
    """A time in place of `version`: the table is read as it was then. A time without a zone is
    UTC."""
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
    """The action when files or versions were removed (VACUUM, the retention of the log) before they
    were read. `continue` records the gap as a dead letter."""

    @model_validator(mode="after")
    def _check_version(self) -> Self:
        if self.version is not None and self.timestamp is not None:
            raise ValueError("expected either version or timestamp")
        return self

    @property
    def time(self) -> datetime | None:
        """`timestamp` with a time zone."""
        if self.timestamp is None or self.timestamp.tzinfo is not None:
            return self.timestamp
        return self.timestamp.replace(tzinfo=UTC)


class DeltaSinkConfig(TargetConfig, LocationConfig):
    create: bool = True
    """Creates a missing table, with the columns of the rows."""
    partition_by: list[str] = []
    """The partition columns of a new table, such as a date. An existing table must have the same
    ones. A row with an empty text in such a column is a dead letter, because readers of Delta Lake
    see null."""
