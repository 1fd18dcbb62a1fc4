"""Frames that are computed once, when they are read first, and cut from the plan above."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.catalyst.spark_plan import analyzed_plan

ADAPTIVE = "spark.sql.adaptive.enabled"


@contextmanager
def changed_setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Changes a setting within the block."""
    previous = session.conf.get(name, None)
    session.conf.set(name, value)
    try:
        yield
    finally:
        if previous is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, previous)


def checkpoint(rows: DataFrame) -> DataFrame:
    """Returns rows as a leaf of plans. They are computed when they are read first, and kept."""
    # Adaptive execution would compute the rows here, where no search for failing rows follows.
    with changed_setting(rows.sparkSession, ADAPTIVE, "false"):
        return rows.localCheckpoint(eager=False)


def compute_all(rows: DataFrame) -> None:
    """Computes the rows of `checkpoint`, unless a job has read them.

    Spark computes all partitions after the first job that reads some of them.
    """
    rdd = analyzed_plan(rows).rdd()
    if not rdd.isCheckpointed():
        rdd.count()
