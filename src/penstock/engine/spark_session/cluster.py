"""Executors of a cluster: their number and their task slots."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.core.errors import Transient
from penstock.core.log import Log
from penstock.engine.spark_session.spark_failure import is_stopped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STABLE_SECONDS = 1.0
"""The time without new executors after which their number counts as final."""
WAIT_SECONDS = 30.0
"""The maximum time to wait for further executors, and the interval of warnings without any."""
START_TIMEOUT = 600.0
"""The maximum time to the first executor."""
_POLL_SECONDS = 0.1
PARTITIONS = "spark.sql.shuffle.partitions"


def is_local(session: SparkSession) -> bool:
    """Returns whether the tasks of a session run in the process of its driver."""
    master = str(session.sparkContext.master)
    return master == "local" or master.startswith("local[")


def set_partitions(session: SparkSession, conf: Mapping[str, str], log: Log) -> None:
    """Sets the number of shuffle partitions to the number of task slots, unless `conf` sets it.

    A stateful query keeps the number of its first run. Raises Transient without executors.
    """
    if PARTITIONS not in conf:
        session.conf.set(PARTITIONS, str(task_slots(session, log)))


def task_slots(session: SparkSession, log: Log) -> int:
    """Returns the number of tasks that a cluster runs at once, by its settings or its executors."""
    conf = session.sparkContext.getConf()
    instances, cores = conf.get("spark.executor.instances"), conf.get("spark.executor.cores")
    if instances and cores:
        return max(int(instances) * int(cores), 1)
    if (maximum := conf.get("spark.cores.max")) is not None:
        return max(int(maximum), 1)
    await_executors(session, log)
    return int(session.sparkContext.defaultParallelism)


def await_executors(session: SparkSession, log: Log) -> None:
    """Waits until the number of executors is stable, up to `WAIT_SECONDS` after the first one.

    Raises Transient without an executor after `START_TIMEOUT`.
    """
    start = changed = warned = time.monotonic()
    first: float | None = None
    known = 0
    while True:
        now, count = time.monotonic(), registered_executors(session)
        if count != known:
            known, changed, first = count, now, first or now
        if first is not None and (now - changed >= STABLE_SECONDS or now - first >= WAIT_SECONDS):
            return
        if first is None and now - start >= START_TIMEOUT:
            raise Transient(
                f"no executor has registered within {START_TIMEOUT:.0f} s",
                code="no-executors",
                hint="Check that the cluster has free cores and memory for an executor.",
            )
        if first is None and now - warned >= WAIT_SECONDS:
            warned = now
            log.warning("no executor has registered", seconds=round(now - start))
        time.sleep(_POLL_SECONDS)


class LostExecutors:
    """The time that a run has been without executors, for which Spark waits without an end."""

    def __init__(self, session: SparkSession, log: Log) -> None:
        self._session, self._log = session, log
        self._is_local = is_local(session)
        self._since = self._warned = time.monotonic()

    def check(self, *, waits: bool) -> None:
        """Raises Transient after `START_TIMEOUT` without an executor, and warns before.

        `waits` is whether a batch waits for executors. Between batches a cluster may end them.
        """
        if self._is_local:
            return
        now = time.monotonic()
        if not waits or self._has_executors():
            self._since = self._warned = now
        elif now - self._since >= START_TIMEOUT:
            raise Transient(
                f"the run has had no executor for {START_TIMEOUT:.0f} s",
                code="no-executors",
                hint="Run again; the run resumes. A master that starts again "
                "recovers its applications only with spark.deploy.recoveryMode.",
            )
        elif now - self._warned >= WAIT_SECONDS:
            self._warned = now
            self._log.warning("all executors are lost", seconds=round(now - self._since))

    def _has_executors(self) -> bool:
        """Returns whether there are executors. The queries of a stopped Spark report its end."""
        from py4j.protocol import Py4JJavaError

        try:
            return registered_executors(self._session) > 0
        except Py4JJavaError:
            if is_stopped(self._session):
                return False
            raise


def registered_executors(session: SparkSession) -> int:
    """Returns the number of registered executors. Spark counts the driver, too."""
    java: Any = session
    return int(java._jsc.sc().getExecutorMemoryStatus().size()) - 1
