"""Errors of a Spark that does not start, and silence about its end."""

from __future__ import annotations

import socket
from pathlib import Path
from socketserver import BaseRequestHandler
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import accumulators

from penstock.core.errors import ConnectError, PenstockError, Transient
from penstock.engine.spark_session import spark_failure
from penstock.engine.spark_session.silence import silence_accumulators
from penstock.engine.spark_session.spark_failure import await_master, start_error, stopped_error


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_failure, "PAUSE", 0.0)


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_unreachable_master(closed_port: int) -> None:
    master = f"spark://127.0.0.1:{closed_port}"
    with pytest.raises(Transient) as caught:
        await_master(master)
    error = caught.value
    assert error.code == "master-unreachable"
    assert error.message == f"could not connect to Spark's master {master}: Connection refused"


def test_one_of_several_masters_is_reachable(closed_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        await_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{port}")


@pytest.mark.parametrize("master", ["local[2,4]", "yarn", "k8s://https://nowhere.invalid:1"])
def test_other_masters_are_not_awaited(master: str) -> None:
    await_master(master)


class Unprintable(Exception):
    """An error of Py4J after the end of the JVM."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


def test_master_without_answer() -> None:
    log = (
        "2026-01-01T00:00:00.000Z ERROR StandaloneSchedulerBackend: Application has been killed. "
        "Reason: All masters are unresponsive! Giving up.\n"
    )
    error = start_error("spark://a:7077", Unprintable(), log, None)
    assert (error.code, error.policy.exit_code) == ("master-unreachable", 3)


class Java:
    """An exception of Java with a cause."""

    def __init__(self, text: str, cause: Java | None = None) -> None:
        self._text, self._cause = text, cause

    def toString(self) -> str:
        return self._text

    def getCause(self) -> Java | None:
        return self._cause


class Failed(Exception):
    """An error of Py4J with its exception of Java."""

    java_exception = Java(
        "io.a.ClientException: An error has occurred.",
        Java(
            "io.b.Failure", Java("java.io.IOException: Connection refused: /127.0.0.1:1\n\tat a.b")
        ),
    )


@pytest.mark.parametrize(
    ("error", "log", "reason"),
    [
        (Failed(), "", "An error has occurred: Connection refused: /127.0.0.1:1"),
        (Unprintable(), "T ERROR SparkContext: Error initializing SparkContext.\n",
         "Error initializing SparkContext."),
        (Unprintable(), "java.lang.IllegalArgumentException: wrong size\n\tat a.b\n", "wrong size"),
        (ValueError("java.lang.IllegalStateException: no queue\n\tat a.b"), "", "no queue"),
        (Unprintable(), "", "no reason in the log"),
    ],
)  # fmt: skip
def test_reason_of_a_failed_start(error: Exception, log: str, reason: str) -> None:
    failure = start_error("yarn", error, log, Path("spark.log"))
    assert isinstance(failure, ConnectError)
    assert failure.message == f"cannot start Spark with master yarn: {reason}"
    assert failure.hint == "See spark.log."
    assert type(start_error("local[2,4]", error, log, None)) is PenstockError


@pytest.mark.parametrize("stopped", [True, False])
def test_spark_that_another_program_has_stopped(stopped: bool) -> None:
    context = SimpleNamespace(isStopped=lambda: stopped)
    session: Any = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: context))
    error = stopped_error(session)
    assert (error.code if error else None) == ("spark-stopped" if stopped else None)


class Handler(BaseRequestHandler):
    """A handler that fails like the accumulator server does without its peer, or otherwise."""

    def handle(self) -> None:
        if self.request.recv(1) == b"e":
            raise EOFError
        raise ValueError("wrong token")


def test_end_of_the_jvm_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    silence_accumulators()
    for reason, printed in ((b"e", ""), (b"v", "ValueError: wrong token")):
        with (
            accumulators.AccumulatorTCPServer(("127.0.0.1", 0), Handler, "token") as server,
            socket.create_connection(server.server_address) as client,
        ):
            client.sendall(reason)
            server.handle_request()
        error = capsys.readouterr().err
        assert (printed in error) if printed else error == ""
