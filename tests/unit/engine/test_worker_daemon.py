"""The daemon of workers on an executor, which no warm process has forked."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow


def test_modules_are_imported_before_a_worker_is_forked() -> None:
    """In one thread: a fork does not copy others."""
    command = [sys.executable, "-m", "penstock.engine.workers.worker_daemon", "pyspark.worker"]
    inherited = {n: v for n, v in os.environ.items() if not n.endswith(("_NUM_THREADS", "_CONF"))}
    environment = {**inherited, "PYTHON_WORKER_FACTORY_SECRET": "secret", "PYTHONHASHSEED": "0"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as daemon:
        assert daemon.stdout is not None and daemon.stdin is not None
        (port,) = struct.unpack("!i", daemon.stdout.read(4))
        process = psutil.Process(daemon.pid)
        libraries = {Path(each.path).name for each in process.memory_maps()}
        threads = process.num_threads()
        daemon.stdin.close()
        daemon.wait(10)
    assert port > 0
    assert any(name.startswith("libarrow.so") for name in libraries)
    assert threads == 1
