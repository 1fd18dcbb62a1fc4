"""A run whose Java process is killed ends with one error and prints no traceback."""

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
transforms:
  same:
    {type: python, from: made, schema: id LONG, per: row, code: "def transform(row): return row"}
sinks: {out: {type: blackhole, from: same}}
"""


def test_killed_java_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    program = "from penstock.cli.main import main; import sys; sys.exit(main())"
    command = [sys.executable, "-c", program, "run", "shop.yaml"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        while "started" not in (line := run.stderr.readline()):
            assert line, "the run has ended"
        time.sleep(1)
        java = [child for child in psutil.Process(run.pid).children() if child.name() == "java"]
        java[0].kill()
        printed = run.stderr.read()
    assert run.returncode == 1
    assert "error[java-ended]" in printed
    assert "Traceback" not in printed
    assert "EOFError" not in printed
