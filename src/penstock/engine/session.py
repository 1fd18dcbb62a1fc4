"""The Spark session of a run: a warm Python, a JVM and the settings that matter, put together."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.errors import PenstockError
from penstock.engine.java import Choice
from penstock.engine.jvm import Jvm, JvmOptions, Length
from penstock.engine.warm import WarmPython

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "penstock",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
}
"""For every master. State stays in Spark's in-memory provider unless the user's settings say so."""

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}
"""For a local master only: a rename is atomic on a local disk, not in an object store."""

_NOISY = ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger")


@dataclass(frozen=True)
class SessionSettings:
    """What a run asks of its session; `conf` overrides every setting of ours."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    java: Choice = "bundled"
    length: Length = "seconds"
    log_file: Path | None = None
    warm: bool = True
    heap: str = "1g"

    @property
    def effective_master(self) -> str:
        """Never `local[N]` without retries: a failed task would end the query at once."""
        master = self.master or self.conf.get("spark.master") or "local[*]"
        if master == "local":
            return "local[1,4]"
        if master.startswith("local[") and "," not in master:
            return f"{master[:-1].replace('*', str(_cores()))},4]"
        return master

    @property
    def local(self) -> bool:
        return self.effective_master.startswith("local[")

    def effective_conf(self) -> dict[str, str]:
        conf = dict(SETTINGS)
        if self.local:
            conf |= LOCAL_SETTINGS
            conf["spark.sql.shuffle.partitions"] = _threads(self.effective_master)
        return {**conf, **self.conf, "spark.master": self.effective_master}


def settle(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Gives a session that somebody else made the settings of a run, as far as they can change."""
    for name, value in {**SETTINGS, **conf}.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)


class _Running:
    """The one session of this process, with the processes it stands on."""

    def __init__(self, settings: SessionSettings) -> None:
        conf = settings.effective_conf()
        chosen = conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
        warm = settings.warm and settings.local and chosen in (None, sys.executable)
        self._warm = WarmPython.start() if warm else None
        try:
            here = str(self._warm.launcher) if self._warm else sys.executable
            there = here if self._warm else chosen or (here if settings.local else "python3")
            self._python = {"PYSPARK_PYTHON": there, "PYSPARK_DRIVER_PYTHON": here}
            conf.pop("spark.pyspark.python", None)
            self._jvm = Jvm(
                JvmOptions(
                    conf=conf,
                    java=settings.java,
                    heap=settings.heap,
                    length=settings.length,
                    log_file=settings.log_file,
                    master=settings.effective_master,
                ),
                self._python,
            )
        except BaseException:
            if self._warm:
                self._warm.stop()
            raise
        try:
            self.session = self._attach(conf)
        except BaseException:
            self.close()
            raise

    def _attach(self, conf: Mapping[str, str]) -> SparkSession:
        from pyspark.sql import SparkSession

        _quiet()
        builder = SparkSession.Builder()
        for key, value in conf.items():
            builder.config(key, value)
        with _environment({**self._jvm.gateway(), **self._python}):
            return builder.getOrCreate()

    @property
    def alive(self) -> bool:
        return self._jvm.alive

    def close(self) -> None:
        """The JVM stops Spark by itself when it ends, so nobody waits for two farewells."""
        with suppress(Exception):
            _hush()
        self._jvm.stop()
        with suppress(Exception):
            _detach()
        if self._warm:
            self._warm.stop()


_running: _Running | None = None


def create(settings: SessionSettings) -> SparkSession:
    """A new session with everything it needs, until `close` or the end of this process.

    A process has one; Spark's output goes to the log file, never to the terminal.
    """
    global _running
    if _running is not None and _running.alive:
        raise PenstockError("a session is running in this process already", code="session-running")
    close()
    if _spark_is_up():
        raise PenstockError("Spark was started in this process by others", code="session-running")
    _running = _Running(settings)
    return _running.session


def close() -> None:
    """Ends the session and every process behind it; without one it does nothing."""
    global _running
    running, _running = _running, None
    if running is not None:
        with _undisturbed():
            running.close()


atexit.register(close)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No Ctrl-C or SIGTERM leaves the session half closed, which takes seconds at most."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)


def _spark_is_up() -> bool:
    """Asked without importing PySpark, which is better done while Java starts."""
    module = sys.modules.get("pyspark.core.context")
    return module is not None and module.SparkContext._gateway is not None


def _detach() -> None:
    """Makes PySpark forget the JVM, so that a later session of this process gets its own.

    To be called when the JVM has ended: a connection that waits for it cannot be closed.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    if gateway is not None:
        gateway.shutdown_callback_server()
    if context is not None and context._accumulatorServer is not None:
        context._accumulatorServer.server_close()


def _hush() -> None:
    """No thread of PySpark's is to speak to the JVM while it ends, or to print that it has left."""
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        SparkContext._gateway._gateway_client.is_connected = False
    context = SparkContext._active_spark_context
    server: Any = context and context._accumulatorServer
    if server is not None:
        server.handle_error = lambda request, client_address: None
        server._BaseServer__shutdown_request = True


def _quiet() -> None:
    """Some of py4j's complaints bypass its own logger."""
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_from_py4j)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets the variables for as long as PySpark reads them: a child process must not."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads(master: str) -> str:
    named = master.removeprefix("local[").split(",")[0]
    return str(_cores()) if named == "*" else named
