"""The image: its Dockerfile and its entry point, with a stand-in for Java."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.core.java import spark_home

VARIABLES = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@shop-0.shop.default.svc:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "2048m",
    "SPARK_APPLICATION_ID": "spark-7",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "shop-exec-3",
    "SPARK_CLASSPATH": "/extra/a.jar",
    **{f"SPARK_JAVA_OPT_{number}": f"-Dn={number} x" for number in range(12)},
}
JAVA = """#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "17.0.1"' >&2; exit; fi
printf '%s\\n' "SPARK_HOME=$SPARK_HOME" "$@"
"""


def execute(home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JAVA_HOME": str(home), **variables}
    command = [sys.executable, "-m", "penstock.deploy.image.entrypoint", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text(JAVA)
    java.chmod(0o700)
    return tmp_path


@pytest.mark.slow
def test_an_executor(home: Path) -> None:
    done = execute(home, "executor", **VARIABLES)
    assert done.returncode == 0, done.stderr
    spark, *words = done.stdout.splitlines()
    assert spark == f"SPARK_HOME={spark_home()}"
    start = words.index("-cp")
    flags, (path, class_, *arguments) = words[:start], words[start + 1 :]
    assert flags[:2] == ["-Xms2048m", "-Xmx2048m"]
    assert flags[2:] == [f"-Dn={number} x" for number in range(12)]
    first, *jars = path.split(":")
    assert first == "/extra/a.jar" and jars == sorted(jars) and len(jars) > 200
    assert class_ == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert arguments == [
        "--driver-url", VARIABLES["SPARK_DRIVER_URL"], "--executor-id", "3", "--cores", "2",
        "--app-id", "spark-7", "--hostname", "10.0.0.7", "--resourceProfileId", "0",
        "--podName", "shop-exec-3",
    ]  # fmt: skip


@pytest.mark.slow
def test_an_executor_without_its_variables(home: Path) -> None:
    done = execute(home, "executor")
    assert done.returncode == 1 and "SPARK_EXECUTOR_MEMORY is not set" in done.stderr


@pytest.mark.slow
def test_other_words_are_a_command_of_penstock(home: Path) -> None:
    done = execute(home, "--version")
    assert (done.returncode, done.stderr) == (0, "") and re.match(r"\d+\.\d+", done.stdout)


@pytest.mark.slow
def test_the_dockerfile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(
        "sources: {rows: {type: memory, rows: [{id: 1}], schema: id BIGINT}}\n"
        "sinks: {out: {type: kafka, from: rows, brokers: b, topic: t, format: json}}\n"
    )
    assert main(["deploy", "image", str(path)]) == 0
    text = capsys.readouterr().out
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"ARG PYTHON={version}\n" in text and 'ARG EXTRAS="kafka"\n' in text
    assert "openjdk-17-jre-headless tini" in text and "\nUSER 1000\n" in text
    for module in re.findall(r"penstock\.deploy\.[\w.]+", text):
        subprocess.run(
            [sys.executable, "-c", f"import importlib.util as u; assert u.find_spec('{module}')"],
            check=True,
        )
    assert main(["deploy", "image"]) == 0
    assert 'ARG EXTRAS=""\n' in capsys.readouterr().out
