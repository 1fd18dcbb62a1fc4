"""A run whose Java process is killed ends with one error, and its workers close their models."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.spark
PIPELINE = """
sources: {made: {type: generate, rate: 200, fields: {id: sequence}}}
transforms: {same: {type: python, from: made, function: "model:Model", schema: id LONG}}
sinks: {out: {type: blackhole, from: same}}
"""
MODEL = """
import os
from pathlib import Path

class Model:
    def transform(self, batch):
        Path(__file__).with_name(f"began-{os.getpid()}").touch()
        return batch
    def close(self):
        Path(__file__).with_name(f"closed-{os.getpid()}").touch()
"""


def test_killed_java_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    (tmp_path / "model.py").write_text(MODEL)
    program = "from penstock.cli.main import main; import sys; sys.exit(main())"
    command = [sys.executable, "-c", program, "run", "shop.yaml"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        while "started" not in (line := run.stderr.readline()):
            assert line, "the run has ended"
        while not (workers := _pids(tmp_path, "began")):
            assert run.poll() is None
            time.sleep(0.05)
        children = psutil.Process(run.pid).children(recursive=True)
        (java,) = [child for child in children if child.name() == "java"]
        java.kill()
        printed = run.stderr.read()
    assert run.returncode == 1
    assert "error[java-ended]" in printed
    assert "Traceback" not in printed
    assert "EOFError" not in printed
    psutil.wait_procs(children, timeout=20)
    assert workers <= _pids(tmp_path, "closed")


def _pids(directory: Path, event: str) -> set[str]:
    return {path.name.partition("-")[2] for path in directory.glob(f"{event}-*")}
