"""Spark session of a plan: its settings, its heap and its state store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.files.private_files import open_private
from penstock.core.log import Log, Silent
from penstock.core.units import binary_size_text
from penstock.engine.spark_session.attached import attach, check_python, check_session
from penstock.engine.spark_session.cluster import is_local, set_partitions
from penstock.engine.spark_session.memory import Resources, choose_resources
from penstock.engine.spark_session.session import session as start_session
from penstock.engine.spark_session.settings import SessionSettings, apply_settings, cores
from penstock.plan.model import Plan
from penstock.runtime.state.files import writing
from penstock.spec.runtime_models import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.spark_session.jvm import Length


_PACKAGES = "spark.jars.packages"
_WITH_PANDAS = frozenset({"handlers", "python", "threshold"})
"""The transforms that run code of users, or keep states by Spark's interface of pandas."""
_STARTUP = ("master", "packages", "memory", "java")
"""The settings of a file that apply at the start of Spark only."""


@contextmanager
def session(
    plan: Plan,
    *,
    log_file: Path | None = None,
    length: Length = "seconds",
    log: Log | None = None,
) -> Iterator[SparkSession]:
    """Yields a Spark session with the plan's runtime settings, and closes the session at the end.

    `length` is the expected duration of the work. Raises Transient if a cluster has no executors.
    """
    if log_file is not None:
        with writing(log_file), open_private(log_file, "a"):
            pass
    chosen, log = resources(plan), log or Silent()
    if chosen.memory is not None:
        log.info(
            "memory", heap=binary_size_text(chosen.heap),
            available=binary_size_text(chosen.memory.available),
            total=binary_size_text(chosen.memory.total),
        )  # fmt: skip
    settings = session_settings(plan.spec.runtime, chosen, log_file, length)
    settings = replace(settings, pandas=may_use_pandas(plan))
    with start_session(settings) as spark:
        if not is_local(spark):
            set_partitions(spark, settings.conf, log)
        yield spark


def may_use_pandas(plan: Plan) -> bool:
    """Returns whether tasks of the plan may use pandas: in code of users, or to keep states."""
    return bool(plan.functions) or any(
        node.spec.type in _WITH_PANDAS for node in plan.nodes.values()
    )


def attach_to(spark: SparkSession, plan: Plan, log: Log) -> None:
    """Prepares a session that another program has started for a run of the plan.

    Warns about settings of the file that no longer apply. Raises UserError for a session that is
    not supported.
    """
    check_session(spark)
    check_python(spark)
    runtime, find = plan.spec.runtime, plan.pipeline.source_map.find
    conf = spark_settings(runtime, runtime.state_store)
    conf.pop(_PACKAGES, None)
    names = [name for name in _STARTUP if find(("runtime", name)) is not None]
    if runtime.master == str(spark.sparkContext.master) and "master" in names:
        names.remove("master")
    attach(spark, conf, [f"runtime.{name}" for name in names], log)


def new_session(spark: SparkSession, plan: Plan) -> SparkSession:
    """Returns a new session of an application, with those settings of a plan that may change."""
    session = spark.newSession()
    apply_settings(session, spark_settings(plan.spec.runtime, "memory"))
    return session


def session_settings(
    runtime: Runtime, chosen: Resources, log_file: Path | None, length: Length
) -> SessionSettings:
    """Returns the settings of a session with these runtime settings and resources."""
    return SessionSettings(
        master=runtime.master, conf=spark_settings(runtime, chosen.state_store),
        java=runtime.java, heap=f"{chosen.heap // 2**20}m", log_file=log_file, length=length,
    )  # fmt: skip


def resources(plan: Plan) -> Resources:
    """Returns the heap and the state store of a run that starts now on this machine."""
    return choose_resources(plan.spec.runtime, cores())


def spark_settings(runtime: Runtime, state_store: str) -> dict[str, str]:
    """Returns the Spark settings of the runtime settings of a pipeline."""
    conf = {name: _setting(value) for name, value in runtime.spark.items()}
    if runtime.packages:
        conf[_PACKAGES] = ",".join(runtime.packages)
    if runtime.partitions is not None:
        conf["spark.sql.shuffle.partitions"] = str(runtime.partitions)
    if state_store == "rocksdb":
        conf["spark.sql.streaming.stateStore.providerClass"] = (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
    return conf


def _setting(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
