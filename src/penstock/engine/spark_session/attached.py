"""Sessions that another program has started, such as a notebook or an operator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.errors import UserError
from penstock.core.log import Log
from penstock.core.version import SPARK_VERSION
from penstock.engine.spark_session.cluster import PARTITIONS, is_local, task_slots
from penstock.engine.spark_session.settings import apply_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULT_PARTITIONS = "200"
"""Spark's default number of shuffle partitions, which does not depend on the cluster."""
_PACKAGES = ("penstock", "pyarrow")
"""The packages of a Python worker. PySpark is in its path by Spark."""
_PROBE = "import sys, importlib.util as u; print(*(n for n in sys.argv[1:] if not u.find_spec(n)))"


def attach(
    session: SparkSession, conf: Mapping[str, str], startup: Sequence[str], log: Log
) -> None:
    """Prepares a session that another program has started for a run.

    `conf` are the settings of the run, `startup` the names of others that Spark reads at its start.
    A warning names these, and those of `conf` that Spark read at its start.
    """
    apply_settings(session, conf)
    _set_partitions(session, conf, log)
    names = [*startup, *_unapplied(session, conf)]
    if names:
        warnings.warn(
            f"these settings do not apply, because Spark runs already: {', '.join(names)}. "
            "Set them where the session is started.",
            stacklevel=2,
        )


def check_session(session: SparkSession) -> None:
    """Raises UserError for Spark Connect, and for another version of Spark."""
    if not hasattr(session, "_jsparkSession"):
        raise UserError(
            "a run needs a session with a driver in this process, found one of Spark Connect",
            code="unsupported-session",
            hint="Start a classic session, on dedicated compute or in the driver of a job.",
        )
    check_version(session.version)


def check_version(version: str) -> None:
    """Raises UserError for a version of Spark other than that of Penstock."""
    if version.split(".")[:2] != SPARK_VERSION.split("."):
        raise UserError(
            f"expected Spark {SPARK_VERSION}, found Spark {version}",
            code="unsupported-session",
            hint=f"Run in a cluster or a runtime with Spark {SPARK_VERSION}, or without `spark`: "
            "the run then starts its own.",
        )


def check_python(session: SparkSession) -> None:
    """Raises UserError if the Python of the session's workers lacks Penstock.

    Spark starts it at the driver, for sources, by the name in `PYSPARK_PYTHON`, or `python3`.
    """
    context: Any = session.sparkContext
    name, environment = context.pythonExec, context._jvm.System.getenv()
    paths = context.environment.get("PYTHONPATH"), environment.get("PYTHONPATH")
    found = shutil.which(name, path=environment.get("PATH"))
    missing = _missing_packages(found or name, os.pathsep.join(filter(None, paths)))
    if missing:
        raise UserError(
            f"the Python workers of the session run {name}, which lacks {' and '.join(missing)}",
            code="unsupported-session",
            hint=f"Set the variable PYSPARK_PYTHON to {sys.executable}, or to the Python of the "
            "cluster with these packages, before the session is started.",
        )


@cache
def _missing_packages(python: str, path: str) -> tuple[str, ...]:
    """Returns the packages that a Python lacks, with a path of modules beside its own."""
    if Path(python) == Path(sys.executable):
        return ()
    command, env = [python, "-c", _PROBE, *_PACKAGES], dict(os.environ)
    env.pop("PYTHONPATH", None)
    if path:
        env["PYTHONPATH"] = path
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    except (OSError, subprocess.CalledProcessError):
        return _PACKAGES
    return tuple(done.stdout.split())


def _set_partitions(session: SparkSession, conf: Mapping[str, str], log: Log) -> None:
    """Sets the number of partitions to that of the tasks at once, unless it was chosen."""
    if PARTITIONS in conf or session.conf.get(PARTITIONS) != _DEFAULT_PARTITIONS:
        return
    local = is_local(session)
    slots = session.sparkContext.defaultParallelism if local else task_slots(session, log)
    session.conf.set(PARTITIONS, str(slots))


def _unapplied(session: SparkSession, conf: Mapping[str, str]) -> Iterator[str]:
    """Yields the settings that Spark reads at its start and that have other values."""
    started: Any = session.sparkContext.getConf()
    for name, value in conf.items():
        if not session.conf.isModifiable(name) and started.get(name) != value:
            yield f"runtime.spark.{name}"
