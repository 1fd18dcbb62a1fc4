"""Settings of a Spark session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.java import Choice
from penstock.engine.spark_session.java_flags import executor_flags
from penstock.engine.spark_session.jvm import Length

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "penstock",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.executor.killOnFatalError.depth": "0",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.python.daemon.module": "penstock.engine.workers.worker_daemon",
}
"""Settings for every master. State uses Spark's in-memory provider by default. Checkpoints are in
the state directory, a path in which a rename is atomic. Errors name the place in the pipeline, not
the call of a DataFrame, whose stack Spark would read for each column. Rows that a batch keeps are
read once or twice, so that their compression costs more CPU than it saves. A batch of an updating
query runs about a hundred generated classes, the default size of their cache: each batch would
compile half of them again, and Java their methods.

A row may exhaust the stack or the memory of its task, as `repeat` or a regular expression can. This
is an error of the task, and does not end the JVM.
"""

_NO_UI: Mapping[str, str] = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "50",
}
"""Settings without Spark's UI. It keeps the plans and metrics of the last thousand executions."""

EXECUTOR_FLAGS = "spark.executor.defaultJavaOptions"
"""The setting of the flags that precede those of the user."""

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Settings for a local master."""


@dataclass(frozen=True)
class SessionSettings:
    """Settings of a session. `conf` overrides all defaults.

    With `pandas` the workers have pandas at their start; without it they import pandas when used.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    java: Choice = "bundled"
    length: Length = "seconds"
    log_file: Path | None = None
    warm: bool = True
    heap: str = "1g"
    pandas: bool = True

    @property
    def effective_master(self) -> str:
        """The master, with four attempts per task for `local[N]`, where Spark's default is one."""
        master = self.master or self.conf.get("spark.master") or "local[*]"
        if master == "local":
            return "local[1,4]"
        if master.startswith("local[") and "," not in master:
            return f"{master[:-1].replace('*', str(cores()))},4]"
        return master

    @property
    def local(self) -> bool:
        return self.effective_master.startswith("local[")

    def effective_conf(self) -> dict[str, str]:
        conf = dict(SETTINGS)
        if self.conf.get("spark.ui.enabled", "false") == "false":
            conf |= _NO_UI
        if self.local:
            conf |= LOCAL_SETTINGS
            conf["spark.sql.shuffle.partitions"] = _threads(self.effective_master)
        else:
            conf[EXECUTOR_FLAGS] = " ".join(executor_flags(self.conf, self.length == "seconds"))
        return {**conf, **self.conf, "spark.master": self.effective_master}


def apply_settings(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Applies the settings of a run to an existing session, as far as Spark allows changes."""
    for name, value in {**SETTINGS, **conf}.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)


def cores() -> int:
    """Returns the number of cores for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads(master: str) -> str:
    threads = master.removeprefix("local[").split(",")[0]
    return str(cores()) if threads == "*" else threads
