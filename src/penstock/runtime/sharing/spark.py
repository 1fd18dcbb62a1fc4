"""Spark of a share: the first run starts it, and each run has a session of its own."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.errors import UserError
from penstock.core.files.private_files import open_private
from penstock.engine.spark_session.session import close, create, is_alive
from penstock.engine.spark_session.settings import SessionSettings
from penstock.engine.spark_session.shared import sharing
from penstock.engine.spark_session.spark_failure import end_of_java_error
from penstock.spec.runtime_models import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEDULER = "spark.scheduler.mode"
POOL = "spark.scheduler.pool"
_OF_ALL = ("master", "memory", "java", "packages")
"""The settings of a file that apply to the JVM."""
_OF_SESSION = re.compile(
    r"spark\.sql\.(?!extensions$|catalog\.|catalogImplementation$|warehouse\.|ui\.|cache\."
    r"|queryExecutionListeners$|globalTempDatabase$|broadcastExchange\.maxThreadThreshold$"
    r"|subquery\.maxThreadThreshold$|codegen\.cache\.|streaming\.streamingQueryListeners$"
    r"|streaming\.ui\.|artifact\.|hive\.|iceberg\.)"
)
"""Names of Spark settings that each session has for itself."""

_SECRET = re.compile(r"pass|pwd|secret|token|key|credential|auth|sas|JavaOptions", re.IGNORECASE)
"""Names of settings whose values are not shown."""


class SharedSpark:
    """Spark of a share. Its log is `log_file`."""

    def __init__(self, share: str, log_file: Path) -> None:
        self._share, self._log_file = share, log_file
        self._spark: SparkSession | None = None
        self._first: Runtime | None = None
        self._users = 0
        self._joining, self._starting = threading.Lock(), threading.Lock()

    @property
    def broken(self) -> bool:
        """Whether Spark has ended by itself or was killed."""
        return self._spark is not None and not is_alive()

    @contextmanager
    def used(self, runtime: Runtime, pool: str) -> Iterator[None]:
        """Gives the run of this thread a session of the share, whose jobs are in a pool.

        Raises UserError if the run sets the JVM otherwise than the runs before.
        """
        self._join(runtime)
        try:
            with sharing(lambda settings: self._session(settings, pool)):
                yield
        finally:
            with self._joining:
                self._users -= 1

    def close(self) -> None:
        """Ends Spark."""
        close()

    def _join(self, runtime: Runtime) -> None:
        with self._joining:
            if self._first is None or (self._spark is None and not self._users):
                self._first = runtime
            for name, (found, expected) in differences(runtime, self._first).items():
                raise UserError(
                    f'{name} is {found}, and in the share "{self._share}" it is {expected}',
                    code="share-conflict",
                    hint=f"Set {name} to {expected}, or choose another share. To change a whole "
                    "share, stop all of its pipelines first.",
                )
            self._users += 1

    def _session(self, settings: SessionSettings, pool: str) -> SparkSession:
        with self._starting:
            if self._spark is None:
                self._spark = create(self._settings_of_all(settings))
        if self.broken:
            raise end_of_java_error(self._log_file)
        if settings.log_file is not None:
            with open_private(settings.log_file, "a") as log:
                log.write(f'Spark of the share "{self._share}" logs to {self._log_file}\n')
        context: Any = self._spark.sparkContext
        context.setLocalProperty(POOL, pool)
        return self._spark

    def _settings_of_all(self, first: SessionSettings) -> SessionSettings:
        """Returns the settings of Spark, without those that each session has for itself."""
        conf = {name: value for name, value in first.conf.items() if not _OF_SESSION.match(name)}
        return replace(
            first, conf={SCHEDULER: "FAIR", **conf}, log_file=self._log_file, length="endless",
            pandas=True,
        )  # fmt: skip


def differences(runtime: Runtime, first: Runtime) -> dict[str, tuple[str, str]]:
    """Returns the settings of the JVM that differ, each with both values."""
    found, expected = _jvm_settings(runtime), _jvm_settings(first)
    names = [name for name in {**expected, **found} if found.get(name) != expected.get(name)]
    return {name: (_shown(name, found), _shown(name, expected)) for name in names}


def _jvm_settings(runtime: Runtime) -> Mapping[str, Any]:
    settings = {f"runtime.{name}": getattr(runtime, name) for name in _OF_ALL}
    of_spark = {
        f"runtime.spark.{name}": value
        for name, value in runtime.spark.items()
        if not _OF_SESSION.match(name)
    }
    return {**settings, **of_spark}


def _shown(name: str, settings: Mapping[str, Any]) -> str:
    value = settings.get(name)
    if value is not None and _SECRET.search(name):
        return "another value"
    if isinstance(value, list):
        return ", ".join(value) or "not set"
    return "not set" if value is None else str(value)
