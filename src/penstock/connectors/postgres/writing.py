"""Connections that write rows to a table of PostgreSQL."""

from __future__ import annotations

from penstock.connectors.postgres.config import PostgresSinkConfig
from penstock.connectors.postgres.connection import TARGET, PostgresConnection
from penstock.sdk.database.conflicts import ConflictConnection


class WritingConnection(ConflictConnection, PostgresConnection):
    """A connection that treats rows with an existing key as the options of a sink say."""

    target = f"{TARGET}."

    def __init__(self, config: PostgresSinkConfig) -> None:
        super().__init__(config)
        self.conflicts = config
