"""Spark session of this process: its start with a JVM and warm Python, and its end."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.core.deferred_pandas import hidden_pandas
from penstock.core.errors import PenstockError
from penstock.engine.spark_session.jvm import Jvm, JvmOptions
from penstock.engine.spark_session.settings import SessionSettings
from penstock.engine.spark_session.shared import new_session, shared
from penstock.engine.spark_session.silence import (
    silence_accumulators,
    silence_py4j,
    silence_threads,
)
from penstock.engine.spark_session.spark_failure import await_master, end_of_java_error, start_error
from penstock.engine.spark_session.warm import WarmPython

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

END_TIMEOUT = 5.0
"""The maximum time in seconds between lost connections and the end of a killed JVM."""


class _RunningSession:
    """The session of this process, with its JVM and warm Python."""

    def __init__(self, settings: SessionSettings) -> None:
        await_master(settings.effective_master)
        conf = settings.effective_conf()
        self._warm: WarmPython | None = None
        try:
            self._python = self._choose_python(settings, conf)
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
        except PenstockError:
            self.close()
            raise
        except Exception as error:
            log = settings.log_file
            failure = start_error(settings.effective_master, error, self._jvm.read_log(), log)
            self.close()
            raise failure from None
        except BaseException:
            self.close()
            raise

    def _choose_python(self, settings: SessionSettings, conf: Mapping[str, str]) -> dict[str, str]:
        """Returns the variables that choose the Python of workers and of the driver.

        Spark also starts the planners and readers of sources, which run on the driver's machine, by
        the name that the executors of a cluster use. There this name is the driver's Python.
        """
        configured = conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
        if settings.local:
            if settings.warm and configured in (None, sys.executable):
                self._warm = WarmPython.start(pandas=settings.pandas)
                configured = str(self._warm.launcher)
            driver = str(self._warm.launcher) if self._warm else sys.executable
            return {"PYSPARK_PYTHON": configured or driver, "PYSPARK_DRIVER_PYTHON": driver}
        worker = configured or "python3"
        python = {"PYSPARK_PYTHON": worker, "PYSPARK_DRIVER_PYTHON": sys.executable}
        if Path(worker).name != worker:
            return python
        self._warm = WarmPython.start(pandas=settings.pandas)
        python["PATH"] = os.pathsep.join([self._warm.directory_of(worker), os.environ["PATH"]])
        return python

    def _attach(self, conf: Mapping[str, str]) -> SparkSession:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        from penstock.engine.catalyst.arrow_map import omit_check_of_pandas
        from penstock.engine.catalyst.java_arguments import pass_plain_values, pass_sequences
        from penstock.engine.catalyst.java_methods import share_methods
        from penstock.engine.catalyst.java_names import keep_classes_of_pyspark
        from penstock.engine.catalyst.java_releases import release_together
        from penstock.engine.spark_session.connections import keep_open_in_forks
        from penstock.engine.spark_session.extensions import without_extension_of_mllib
        from penstock.engine.spark_session.hadoop import tune_hadoop
        from penstock.engine.spark_session.state_settings import tune_state_settings

        silence_py4j()
        keep_open_in_forks()
        silence_accumulators()
        builder = SparkSession.Builder()
        for key, value in conf.items():
            builder.config(key, value)
        environment = {**self._jvm.await_gateway(), **self._python}
        # A converter of PySpark imports its test tools, and these import pandas.
        with _environment(environment), hidden_pandas():
            context = SparkContext.getOrCreate(SparkConf().setAll([*conf.items()]))
            with without_extension_of_mllib(context):
                session = builder.getOrCreate()
        omit_check_of_pandas()
        keep_classes_of_pyspark(session)
        pass_plain_values(session)
        pass_sequences(session)
        release_together(session)
        share_methods(session)
        if not conf["spark.master"].startswith("local["):
            tune_state_settings(session)
        tune_hadoop(session)
        return session

    @property
    def alive(self) -> bool:
        return self._jvm.alive

    def has_ended(self, error: Exception) -> bool:
        """Returns whether the end of the JVM may have caused an error.

        The connections of a killed process are lost before the process has ended.
        """
        from py4j.protocol import Py4JError

        return self._jvm.has_ended(END_TIMEOUT if isinstance(error, OSError | Py4JError) else 0)

    def close(self) -> None:
        """Ends the JVM, which stops Spark, and the warm Python."""
        with suppress(Exception):
            silence_threads()
        self._jvm.stop()
        with suppress(Exception):
            _detach()
        if self._warm:
            self._warm.stop()


_running: _RunningSession | None = None


def create(settings: SessionSettings) -> SparkSession:
    """Creates the session of this process, for use until `close` or the end of the process.

    Spark's output goes to the log file. Raises PenstockError if a session exists.
    """
    global _running
    if _running is not None and _running.alive:
        raise PenstockError("this process already has a Spark session", code="session-running")
    close()
    if _spark_is_running():
        raise PenstockError(
            "another library has started Spark in this process", code="session-running"
        )
    _running = _RunningSession(settings)
    return _running.session


def close() -> None:
    """Closes the session and its processes. Does nothing without a session."""
    global _running
    running, _running = _running, None
    if running is not None:
        with _ignore_signals():
            running.close()


atexit.register(close)


def is_alive() -> bool:
    """Returns whether the session of this process exists and its JVM runs."""
    return _running is not None and _running.alive


@contextmanager
def session(settings: SessionSettings) -> Iterator[SparkSession]:
    """Starts a session that ends with the block.

    Within `reusing` or `sharing` the session is a new one of the same Spark, which keeps running.
    """
    get_session = shared()
    if get_session is not None:
        with end_of_java(settings.log_file), new_session(get_session, settings) as spark:
            yield spark
        return
    spark = create(settings)
    try:
        with end_of_java(settings.log_file):
            yield spark
    finally:
        close()


@contextmanager
def end_of_java(log_file: Path | None) -> Iterator[None]:
    """Turns errors of the block into one PenstockError if the JVM of this process has ended."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        if _running is None or not _running.has_ended(error):
            raise
        raise end_of_java_error(log_file) from error


@contextmanager
def _ignore_signals() -> Iterator[None]:
    """Ignores SIGINT and SIGTERM, so that the session is closed completely."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _spark_is_running() -> bool:
    """Returns whether Spark runs in this process. Does not import PySpark, which is slow."""
    module = sys.modules.get("pyspark.core.context")
    return module is not None and module.SparkContext._gateway is not None


def _detach() -> None:
    """Removes the JVM from PySpark's globals, so that a later session starts a new JVM.

    Call after the end of the JVM: a connection that waits for the JVM cannot be closed.
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


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for PySpark only: child processes must not inherit the values."""
    previous = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
