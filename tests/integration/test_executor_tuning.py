"""Tuning of executors: an executor that cannot be tuned runs its tasks as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from penstock.core.java import spark_home
from penstock.engine.catalyst.task_java import calling
from penstock.engine.spark_session import executors, hadoop
from servers.install import program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
JARS = ("py4j", "janino", "commons-compiler")


COMPILE = """
import sys
from py4j.java_gateway import GatewayParameters, JavaGateway

port, text = int(sys.stdin.readline()), sys.stdin.read()
jvm = JavaGateway(gateway_parameters=GatewayParameters(port=port)).jvm
compiler = jvm.org.codehaus.janino.ClassBodyEvaluator()
print(compiler.createInstance(jvm.java.io.StringReader(text)).toString())
"""
"""A client of its own: a session changes the client of this process."""


def test_a_java_without_the_classes_returns_both_failures() -> None:
    """The class path has the compiler, and neither Hadoop nor Log4j."""
    jars = [str(path) for name in JARS for path in spark_home().glob(f"jars/{name}-*.jar")]
    java = [program("java", "openjdk-17-jre-headless"), "-cp", os.pathsep.join(jars)]
    with subprocess.Popen(
        [*java, "py4j.GatewayServer", "0"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            given = server.stdout.readline() + calling(hadoop.TUNE_EXECUTOR)
            client = [sys.executable, "-c", COMPILE]
            files, log = subprocess.check_output(client, input=given, text=True).splitlines()
        finally:
            server.kill()
    assert files == "java.lang.ClassNotFoundException: org.apache.hadoop.fs.RawLocalFileSystem"
    assert log == "java.lang.ClassNotFoundException: org.apache.logging.log4j.core.LoggerContext"


MISSING = "public Object call() { return new com.example.OtherLog(); }"
THROWING = 'public Object call() { throw new NoClassDefFoundError("of the test"); }'


@pytest.mark.parametrize(
    ("bodies", "reason"),
    [
        ({"com.example.OtherLog": MISSING}, "com.example.OtherLog"),
        ({"java.lang.Object": MISSING}, "CompileException"),
        ({"java.lang.Object": THROWING}, "NoClassDefFoundError: of the test"),
    ],
)
def test_a_failure_of_the_tuning_is_one_warning(
    bodies: Mapping[str, str],
    reason: str,
    penstock_spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hadoop, "TUNE_EXECUTOR", bodies)
    (line,) = prepared(penstock_spark, monkeypatch)
    (found,) = line["reasons"]
    assert found.startswith("executor on ") and reason in found


def test_a_failure_of_the_query_of_the_tuning_is_one_warning(
    penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("no such expression\nat a place")

    monkeypatch.setattr(executors, "tuning_tasks", failing)
    (line,) = prepared(penstock_spark, monkeypatch)
    assert line["reasons"] == ["RuntimeError: no such expression"]


def test_executors_that_are_tuned_have_no_warning(
    penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prepared(penstock_spark, monkeypatch) == []


def prepared(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Sequence[Any]:
    """Prepares the executors of a session, as if a local master had some, and returns the log."""
    monkeypatch.setattr(executors, "await_executors", lambda *_: None)
    monkeypatch.setattr(executors, "_PROBE_SECONDS", 0)
    lines: list[Any] = []

    class Lines:
        def warning(self, event: str, **facts: Any) -> None:
            lines.append({"event": event, **facts})

    assert executors.Executors(session, [], Lines()).await_ready() == {}  # type: ignore[arg-type]
    return lines
