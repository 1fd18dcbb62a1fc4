"""Context of a Spark task: batch, partition and query."""

from __future__ import annotations

import json
from dataclasses import astuple

from pyspark import SparkContext, TaskContext

from penstock.core.errors import Bug
from penstock.sdk import BatchId

_BATCH = "penstock.batch"


def set_batch(context: SparkContext, batch: BatchId) -> None:
    """Sets the batch that the next jobs of this thread write."""
    context.setLocalProperty(_BATCH, json.dumps(astuple(batch)))


def batch() -> BatchId:
    """Returns the batch of `set_batch`."""
    context = TaskContext.get()
    value = context.getLocalProperty(_BATCH) if context else None
    if value is None:
        raise Bug("the task has no batch")
    return BatchId(*json.loads(value))


def batch_number() -> int | None:
    """Returns the ID of the current batch; None outside a streaming query."""
    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    return int(number) if number else None


def partition() -> int:
    """Returns the number of the task's partition."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


def attempt() -> int:
    """Returns the number of the task's earlier attempts, which failed."""
    context = TaskContext.get()
    return context.attemptNumber() if context else 0


def is_retry() -> bool:
    """Returns whether an earlier attempt of the task failed."""
    return attempt() > 0


def run_id() -> str:
    """Returns the ID of the start of the current streaming query, new after a restart."""
    context = TaskContext.get()
    return (context.getLocalProperty("spark.jobGroup.id") if context else None) or ""


def query_id() -> str | None:
    """Returns the ID of the current streaming query, stable across restarts."""
    context = TaskContext.get()
    return context.getLocalProperty("sql.streaming.queryId") if context else None
