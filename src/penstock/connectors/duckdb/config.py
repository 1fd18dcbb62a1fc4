"""Options of the DuckDB source and sink."""

from __future__ import annotations

from penstock.sdk import Config, PositiveDuration, UserPath
from penstock.sdk.database import TableSourceConfig
from penstock.sdk.database.config import UpdateWhereConfig


class FileConfig(Config):
    path: UserPath
    """The file of the database. A sink creates a missing one."""
    timeout: PositiveDuration = 60.0
    """The time to wait while another process uses the file."""


class DuckdbSourceConfig(FileConfig, TableSourceConfig):
    pass


class DuckdbSinkConfig(FileConfig, UpdateWhereConfig):
    pass
