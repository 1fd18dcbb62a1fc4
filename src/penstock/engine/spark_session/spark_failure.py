"""Failures of Spark's start and of its Java process; reachability of the master of a cluster."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.errors import ConnectError, PenstockError, Transient
from penstock.core.text import shorten

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 3
PAUSE = 1.0
CONNECT_TIMEOUT = 5.0
DEFAULT_PORT = 7077
_STANDALONE = "spark://"
_GIVEN_UP = "All masters are unresponsive"
_LOGGED = re.compile(r"^\S+ ERROR \w+: (?P<message>.+)$", re.MULTILINE)
_THROWN = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (?P<message>.+)$", re.MULTILINE)
_CLASS = re.compile(r"^(?:[\w.$]+(?:Exception|Error): )+")


def await_master(master: str) -> None:
    """Connects to the masters of a standalone cluster, with retries; other masters pass.

    Raises Transient if none accepts a connection. Spark itself retries for minutes.
    """
    addresses = _addresses(master)
    problem: OSError | None = None
    for attempt in range(ATTEMPTS if addresses else 0):
        if attempt:
            time.sleep(PAUSE)
        for address in addresses:
            try:
                socket.create_connection(address, CONNECT_TIMEOUT).close()
                return
            except OSError as error:
                problem = error
    if problem is not None:
        raise _unreachable(master, problem.strerror or str(problem))


def start_error(
    master: str, error: BaseException, log: str, log_file: Path | None
) -> PenstockError:
    """Returns the error of a session that Spark could not create, from Spark's log of the start."""
    if _GIVEN_UP in log:
        return _unreachable(master, "no valid answer")
    reasons = [_text(error), *(match["message"] for match in _LOGGED.finditer(log))]
    reasons += [match["message"] for match in _THROWN.finditer(log)]
    reason = next((reason for reason in reasons if reason), "no reason in the log")
    place = f"See {log_file}." if log_file is not None else None
    kind = PenstockError if master.startswith("local") else ConnectError
    return kind(
        f"cannot start Spark with master {master}: {shorten(reason, 300)}",
        code="spark-not-started",
        hint=place,
    )


def end_of_java_error(log_file: Path | None) -> PenstockError:
    """Returns the error of a run whose JVM has ended by itself or was killed."""
    place = f" See {log_file}." if log_file is not None else ""
    return PenstockError(
        "Spark's Java process has ended during the run",
        code="java-ended",
        hint="Run again; the run resumes. If memory was exhausted, change runtime.memory." + place,
    )


def stopped_error(session: SparkSession) -> PenstockError | None:
    """Returns the error of a run whose Spark was stopped, by a master or another program.

    None while Spark runs.
    """
    if not is_stopped(session):
        return None
    return PenstockError(
        "Spark was stopped during the run",
        code="spark-stopped",
        hint="Run again; the run resumes. A cluster stops an application that was removed, or "
        "whose executors cannot start: spark.log in the state directory has the reason.",
    )


def is_stopped(session: SparkSession) -> bool:
    """Returns whether Spark was stopped, while its JVM runs."""
    java: Any = session
    return bool(java._jsc.sc().isStopped())


def _unreachable(master: str, reason: str) -> Transient:
    return Transient(
        f"could not connect to Spark's master {master}: {reason}",
        code="master-unreachable",
        hint="Check runtime.master, and start the master.",
    )


def _addresses(master: str) -> Sequence[tuple[str, int]]:
    if not master.startswith(_STANDALONE):
        return []
    addresses = []
    for text in master.removeprefix(_STANDALONE).split(","):
        host, _, port = text.rpartition(":")
        with suppress(ValueError):
            addresses.append((host.strip("[]") or text, int(port) if host else DEFAULT_PORT))
    return addresses


def _text(error: BaseException) -> str:
    """Returns the first lines of an exception and of its root cause, or nothing without a JVM.

    The classes of the exceptions are left out.
    """
    try:
        java = getattr(error, "java_exception", None)
        texts = [str(error)] if java is None else [str(java.toString()), _root_cause(java)]
    except Exception:
        return ""
    lines = [text.strip().splitlines()[0] for text in texts if text.strip()]
    reasons = list(dict.fromkeys(_CLASS.sub("", line).strip() for line in lines))
    return ": ".join([*(reason.rstrip(".") for reason in reasons[:-1]), *reasons[-1:]])


def _root_cause(java: Any) -> str:
    while (cause := java.getCause()) is not None:
        java = cause
    return str(java.toString())
