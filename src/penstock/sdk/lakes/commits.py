"""Commits beside other writers of a table."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.core.errors import Transient
from penstock.core.retry import Retry
from penstock.sdk.retries import report_retry

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
