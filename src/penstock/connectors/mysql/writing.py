"""Connections that write rows to a table of MySQL."""

from __future__ import annotations

from penstock.connectors.mysql.config import MysqlSinkConfig
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.sdk.database.conflicts import ConflictConnection


class WritingConnection(ConflictConnection, MysqlConnection):
    """A connection that treats rows with an existing key as the options of a sink say."""

    def __init__(self, config: MysqlSinkConfig) -> None:
        super().__init__(config)
        self.conflicts = config
