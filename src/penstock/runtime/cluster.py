"""The executors of a cluster in a run: their preparation, their paths and their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.files.shipped_file import shipping
from penstock.core.log import Log
from penstock.engine.driver_files.server import serving
from penstock.engine.reports.inbox import receiving
from penstock.engine.spark_session.cluster import is_local
from penstock.engine.spark_session.executors import Executors
from penstock.engine.spark_session.shared_paths import share_paths
from penstock.plan.model import Plan
from penstock.runtime.required_paths import check_executors, required_paths, state_path
from penstock.runtime.state.directory import StateDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def executors_of(
    spark: SparkSession, plan: Plan, state: StateDirectory, log: Log
) -> Iterator[Callable[[], None]]:
    """Prepares the executors for a run of the plan, and receives the reports of their tasks.

    Yields a function that waits until they are ready. It raises StateError for a required path that
    an executor does not share, UserError for other versions, and Transient without executors. A
    local master needs none of this, because its tasks run on the machine of the driver.
    """
    if is_local(spark):
        yield lambda: None
        return
    with (
        shipping(),
        receiving(spark, state.root),
        serving(spark, state.root) as is_served,
        required_paths(plan, state.lock, state.id(), is_served=is_served) as required,
    ):
        paths = [path.shared for path in required]
        with share_paths(spark, state_path(state.lock), paths):
            yield partial(check_executors, Executors(spark, paths, log), required)


@contextmanager
def served_to_tasks(spark: SparkSession, directory: Path) -> Iterator[None]:
    """Makes a temporary directory the state of tasks of a cluster, whose reports are received.

    The driver serves what it serves of the state of a run. Nothing else is required to be shared.
    """
    if is_local(spark):
        yield
        return
    state = StateDirectory(directory)
    with (
        state.locked(),
        shipping(),
        receiving(spark, state.root),
        serving(spark, state.root),
        share_paths(spark, state_path(state.lock), []),
    ):
        yield
