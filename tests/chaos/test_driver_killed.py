"""A driver that is killed while its JVM starts leaves nothing running."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from penstock.engine.workers.scratch import Scratch

pytestmark = pytest.mark.chaos

PROGRAM = """
import os, signal
from penstock.engine.spark_session.jvm import Jvm, JvmOptions

jvm = Jvm(JvmOptions())
os.kill(jvm._process.pid, signal.SIGSTOP)
print(jvm._process.pid, jvm._scratch.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_jvm_finds_what_it_needs_to_end() -> None:
    """A JVM whose directory is swept up by the next run would fail, and stay for ever."""
    killed = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    number, path = killed.stdout.split()
    jvm = psutil.Process(int(number))
    try:
        Scratch().close()
        assert Path(path).exists()
        jvm.resume()
        jvm.wait(60)
        Scratch().close()
        assert not Path(path).exists()
    finally:
        if jvm.is_running():
            jvm.kill()
