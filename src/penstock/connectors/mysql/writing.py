"""Connections that write rows to a table of MySQL."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.connectors.mysql.config import MysqlSinkConfig
from penstock.connectors.mysql.connection import MysqlConnection


class WritingConnection(MysqlConnection):
    """A connection that treats rows with an existing key as the options of a sink say."""

    config: MysqlSinkConfig

    def __init__(self, config: MysqlSinkConfig) -> None:
        super().__init__(config)

    def conflict_clause(self, names: Sequence[str], key: Sequence[str]) -> str:
        if self.config.on_conflict == "nothing":
            return self.dialect.keep_clause(key)
        return super().conflict_clause(names, key)
