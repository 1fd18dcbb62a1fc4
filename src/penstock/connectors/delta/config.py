"""Options of the Delta Lake source and sink."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from penstock.sdk import Config
from penstock.sdk.database.config import TargetConfig
from penstock.sdk.lakes.compaction import CompactingConfig
from penstock.sdk.lakes.config import LakeSourceConfig
from penstock.sdk.object_store import StorageOptions, StoragePath


class LocationConfig(Config):
    path: StoragePath
    """The directory of the table, or its URL (`s3://`, `gs://`, `abfss://`, `az://`,
    `file://`)."""
    storage: StorageOptions | None = None
    """The connection to the object store of a URL."""


class DeltaSourceConfig(LakeSourceConfig, LocationConfig):
    version: int | None = Field(default=None, ge=0)
    """The version of the table that is read first, in place of `timestamp`. By default the latest
    one. Without `watch` no later version is read."""

    @model_validator(mode="after")
    def _check_version(self) -> Self:
        if self.version is not None and self.timestamp is not None:
            raise ValueError("expected either version or timestamp")
        return self

    @property
    def is_pinned(self) -> bool:
        return self.version is not None or super().is_pinned


class DeltaSinkConfig(CompactingConfig, TargetConfig, LocationConfig):
    create: bool = True
    """Creates a missing table, with the columns of the rows."""
    partition_by: list[str] = []
    """The partition columns of a new table, such as a date. An existing table must have the same
    ones. A row with an empty text in such a column is a dead letter, because readers of Delta Lake
    see null."""
