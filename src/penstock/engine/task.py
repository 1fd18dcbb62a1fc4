"""Context of a Spark task: batch, partition and query."""

from __future__ import annotations

from pyspark import TaskContext


def batch_number() -> int | None:
    """Returns the ID of the current batch; None outside a streaming query."""
    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    return int(number) if number else None


def partition() -> int:
    """Returns the number of the task's partition."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def is_retry() -> bool:
    """Returns whether an earlier attempt of the task failed."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def run_id() -> str:
    """Returns the ID of the start of the current streaming query, new after a restart."""
    context = TaskContext.get()
    return (context.getLocalProperty("spark.jobGroup.id") if context else None) or ""


def query_id() -> str | None:
    """Returns the ID of the current streaming query, stable across restarts."""
    context = TaskContext.get()
    return context.getLocalProperty("sql.streaming.queryId") if context else None
