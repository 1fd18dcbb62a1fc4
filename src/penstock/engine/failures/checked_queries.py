"""Queries with checks of their rows: decided at the first failure, kept in the checkpoint.

The checks cost time for each row, so a query starts without checks. The first row on which SQL
fails in a stream ends the query, and the restarted query repeats the batch with checks.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.utils import is_remote

from penstock.core.files.durable import replace_durably
from penstock.engine.build import Builder
from penstock.plan.model import Query

_MARK = "penstock-checked"


class ChecksRequired(Exception):
    """The end of a query that must be restarted with checks of its rows."""


def has_checks(checkpoint: Path) -> bool:
    """Returns whether the query of a checkpoint has checks."""
    return (checkpoint / _MARK).exists()


def require_checks(builder: Builder, query: Query, checkpoint: Path) -> None:
    """Raises ChecksRequired if checks may isolate the failing rows in the stream of a query.

    The query of the checkpoint has checks from then on. Spark Connect does not support checks.
    """
    nodes = [builder.plan.nodes[name] for name in query.stream_nodes]
    checkable = any(builder.can_check(node, query) for node in nodes)
    if checkable and not builder.checks_rows and not is_remote():
        replace_durably(checkpoint / _MARK, "")
        raise ChecksRequired
