"""What Spark tells a task about itself."""

from __future__ import annotations

from pyspark import TaskContext


def batch_number() -> int | None:
    """The id of the batch that the task works for; None outside a streaming query."""
    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    return int(number) if number else None


def partition() -> int:
    """The number of the task's partition."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def query_id() -> str | None:
    """The id of the streaming query that the task works for, the same after a restart."""
    context = TaskContext.get()
    return context.getLocalProperty("sql.streaming.queryId") if context else None
