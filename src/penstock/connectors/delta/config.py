"""Options of the Delta Lake source and sink."""

from __future__ import annotations

from penstock.sdk import Config
from penstock.sdk.database.config import TargetConfig
from penstock.sdk.object_store import StorageOptions, StoragePath


class LocationConfig(Config):
    path: StoragePath
    """The directory of the table, or its URL (`s3://`, `gs://`, `abfss://`, `file://`)."""
    storage: StorageOptions | None = None
    """The connection to the object store of an `s3://` URL."""


class DeltaSinkConfig(TargetConfig, LocationConfig):
    create: bool = True
    """Creates a missing table, with the columns of the rows."""
    partition_by: list[str] = []
    """The partition columns of a new table, such as a date. An existing table must have the same
    ones. A row with an empty text in such a column is a dead letter, because readers of Delta Lake
    see null."""
