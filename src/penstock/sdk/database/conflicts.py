"""Rows whose key the table has: the options `on_conflict` and `update_where` of sinks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeVar

import pyarrow as pa

from penstock.core.errors import OptionError, raise_all
from penstock.sdk.columns.checks import check_column
from penstock.sdk.database.config import ConflictConfig, UpdateWhereConfig
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.sink import DatabaseSink, upserts_only

T = TypeVar("T", bound=ConflictConfig)


class ConflictConnection(Connection):
    """Base class of connections that write rows as the options of a sink say."""

    target: ClassVar[str] = ""
    """The prefix of columns of the row that the table has."""
    conflicts: ConflictConfig
    """The options of the sink."""

    def conflict_clause(self, names: Sequence[str], key: Sequence[str]) -> str:
        if self.conflicts.on_conflict == "nothing":
            return self.dialect.keep_clause(key)
        clause, quote = super().conflict_clause(names, key), self.dialect.quote
        conditions = [
            f"excluded.{quote(name)} {operator} {self.target}{quote(name)}"
            for name, operator in _update_where(self.conflicts).items()
        ]
        updates = any(name not in key for name in names)
        return f"{clause} WHERE {' AND '.join(conditions)}" if conditions and updates else clause


class ConflictSink(DatabaseSink[T]):
    """Base class of sinks with `on_conflict`."""

    @property
    def writes_each_row(self) -> bool:
        return self.config.on_conflict == "nothing" or bool(_update_where(self.config))

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        raise_all(self._conflict_errors(columns))

    def _conflict_errors(self, columns: pa.Schema) -> Iterator[OptionError]:
        update_where = _update_where(self.config)
        for name in update_where:
            yield from check_column(name, columns, "update_where", name)
        is_ignoring = self.config.on_conflict == "nothing"
        name = "update_where" if update_where else "on_conflict"
        if (update_where or is_ignoring) and self.mode != "upsert":
            yield upserts_only(name)
        if is_ignoring and update_where:
            yield OptionError.of(
                name, message="update_where has no meaning with on_conflict: nothing",
                code="unused-option", hint="Remove one of them.",
            )  # fmt: skip


def _update_where(config: ConflictConfig) -> dict[str, str]:
    return {**config.update_where} if isinstance(config, UpdateWhereConfig) else {}
