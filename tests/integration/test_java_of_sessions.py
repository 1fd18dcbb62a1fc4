"""Java of the sessions of a server: its limit of data, and the report of a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.server.workers.memory import JAVA_BYTES, PROCESS_BYTES

pytestmark = pytest.mark.spark
PROGRAM = """
import os, resource, signal
from penstock.engine.spark_session.jvm import Jvm, JvmOptions
from penstock.server.workers.memory import limit_data

limit_data()
with Jvm(JvmOptions()) as jvm:
    jvm.await_gateway()
    print(*resource.prlimit(jvm._process.pid, resource.RLIMIT_DATA))
    print(*resource.getrlimit(resource.RLIMIT_DATA))
    os.kill(jvm._process.pid, signal.SIGSEGV)
    print(jvm.has_ended(60), (jvm._scratch.path / "crash.log").exists())
"""


def test_java_reserves_more_than_python_and_reports_a_crash_in_its_own_directory(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    java, python, crash = (line.split() for line in done.stdout.splitlines())
    assert java == [str(JAVA_BYTES)] * 2
    assert python == [str(PROCESS_BYTES), str(JAVA_BYTES)]
    assert crash == ["True", "True"]
    assert not list(tmp_path.iterdir())
