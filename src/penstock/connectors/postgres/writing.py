"""Connections that write rows to a table of PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.connectors.postgres.config import PostgresSinkConfig
from penstock.connectors.postgres.connection import TARGET, PostgresConnection


class WritingConnection(PostgresConnection):
    """A connection that treats rows with an existing key as the options of a sink say."""

    config: PostgresSinkConfig

    def __init__(self, config: PostgresSinkConfig) -> None:
        super().__init__(config)

    def conflict_clause(self, names: Sequence[str], key: Sequence[str]) -> str:
        if self.config.on_conflict == "nothing":
            return self.dialect.keep_clause(key)
        clause = super().conflict_clause(names, key)
        quote = self.dialect.quote
        conditions = [
            f"excluded.{quote(name)} {operator} {TARGET}.{quote(name)}"
            for name, operator in self.config.update_where.items()
        ]
        updates = any(name not in key for name in names)
        return f"{clause} WHERE {' AND '.join(conditions)}" if conditions and updates else clause
