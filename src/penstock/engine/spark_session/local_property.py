"""Local properties of Spark: values of a thread that the tasks of its jobs and queries read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def local_property(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Sets a property for the jobs and the queries that this thread starts meanwhile."""
    context: Any = session.sparkContext
    previous = context.getLocalProperty(name)
    context.setLocalProperty(name, value)
    try:
        yield
    finally:
        context.setLocalProperty(name, previous)
