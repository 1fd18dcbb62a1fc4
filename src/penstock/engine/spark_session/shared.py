"""Sessions of a Spark that runs already, for blocks that otherwise start one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from penstock.engine.spark_session.settings import SessionSettings, apply_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GetSession = Callable[[SessionSettings], "SparkSession"]
_shared: ContextVar[GetSession | None] = ContextVar("shared", default=None)
_sessions = 0
_sessions_lock = threading.Lock()


@contextmanager
def reusing(spark: SparkSession) -> Iterator[None]:
    """Makes `session` open new sessions of a running Spark instead of starting one.

    Applies to the thread of the block. Settings that Spark reads only at its start (master,
    memory, packages) keep their values.
    """
    with sharing(lambda settings: spark):
        yield


@contextmanager
def sharing(get_session: GetSession) -> Iterator[None]:
    """Makes `session` open new sessions of that of `get_session`, in the thread of the block."""
    token = _shared.set(get_session)
    try:
        yield
    finally:
        _shared.reset(token)


def shared() -> GetSession | None:
    """Returns the function of the `sharing` block of this thread; None without a block."""
    return _shared.get()


@contextmanager
def new_session(get_session: GetSession, settings: SessionSettings) -> Iterator[SparkSession]:
    """Opens a new session with those of the settings that a session may change."""
    global _sessions
    spark = get_session(settings).newSession()
    apply_settings(spark, settings.conf)
    with _sessions_lock:
        _sessions += 1
    try:
        yield spark
    finally:
        with _sessions_lock:
            _sessions -= 1


def session_count() -> int:
    """Returns the number of sessions that share the heap of this process; at least 1."""
    return max(_sessions, 1)
