"""Commits beside other writers of a table."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.core.errors import Transient
from penstock.core.retry import Retry
from penstock.sdk.retries import report_retry
from penstock.sdk.sink import BatchId, Mode

Written = TypeVar("Written")
"""The files of a task, as its writer returns them."""
RETRY = Retry.model_validate({"attempts": 10, "backoff": "100ms", "max_backoff": "5s"})


class Conflict(Exception):
    """A commit of another writer that a commit conflicts with."""


def repeat_conflicts(attempt: Callable[[], None], path: str) -> None:
    """Tries to commit, again after a conflict. Raises Transient after several conflicts."""
    for failures in range(1, RETRY.attempts + 1):
        try:
            attempt()
            return
        except Conflict as error:
            conflict = Transient(
                f"could not commit to {path}: another writer has changed the same rows",
                detail=str(error),
                hint="Write to the table from fewer programs at a time.",
            )
            if failures == RETRY.attempts:
                raise conflict from error
            report_retry(conflict)
            time.sleep(RETRY.delay(failures))


@dataclass(frozen=True)
class BatchCommit(ABC, Generic[Written]):
    """The commit of a batch as one version of a table. With `key` its files are staged rows."""

    batch: BatchId
    mode: Mode
    key: tuple[str, ...]

    def execute(self, written: Sequence[Written]) -> None:
        """Commits the batch unless it was committed before. Deletes staged files.

        Tries again after a conflict with another writer. Raises Transient after several conflicts.
        """
        repeat_conflicts(lambda: self._attempt(written), self.table_name)
        if self.mode == "upsert":
            self.delete_staged(written)

    def _attempt(self, written: Sequence[Written]) -> None:
        table = self.open_table()
        if self.is_committed(table):
            return
        with self.converted_errors():
            if self.mode == "upsert":
                self.merge(table, written)
            else:
                self.add(table, written)

    def is_committed(self, table: Any) -> bool:
        """Returns whether a table has the batch, or a later one of the query."""
        number = self.last_number(table)
        return number is not None and number >= self.batch.number

    @property
    @abstractmethod
    def table_name(self) -> str:
        """The name of the table in messages."""

    @abstractmethod
    def open_table(self) -> Any:
        """Returns the latest version of the table."""

    @abstractmethod
    def last_number(self, table: Any) -> int | None:
        """Returns the number of the last committed batch of the query."""

    @abstractmethod
    def converted_errors(self) -> AbstractContextManager[None]:
        """Returns a context that converts the errors of the client; Conflict for a conflict."""

    @abstractmethod
    def add(self, table: Any, written: Sequence[Written]) -> None:
        """Commits files as part of the table, or in place of its files with `mode: replace`."""

    @abstractmethod
    def merge(self, table: Any, written: Sequence[Written]) -> None:
        """Commits the rows of staged files by their key."""

    @abstractmethod
    def delete_staged(self, written: Sequence[Written]) -> None:
        """Deletes staged files."""
