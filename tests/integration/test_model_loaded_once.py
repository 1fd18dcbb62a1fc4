"""A class of a `python` transform over the batches of a run, in worker processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PIPELINE = """
runtime: {state: state, master: "local[1]"}
sources:
  numbers:
    type: files
    path: in/*.jsonl
    format: json
    schema: n BIGINT
    max_files: 1
transforms:
  scored: {type: python, from: numbers, function: "model:Model", schema: n BIGINT}
sinks:
  out: {type: files, from: scored, path: out, format: json}
"""
MODEL = """
import os
from pathlib import Path

LOG = Path(__file__).with_name("log")

def note(event):
    with LOG.open("a") as file:
        file.write(f"{event} {os.getpid()}\\n")

class Model:
    def open(self):
        note("open")
    def transform(self, batch):
        note("batch")
        return batch
    def close(self):
        note("close")
"""


def test_a_model_is_loaded_once_in_each_worker(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "in").mkdir()
    for n in range(6):
        (tmp_path / "in" / f"{n}.jsonl").write_text(json.dumps({"n": n}) + "\n")
    subprocess.run(
        [sys.executable, "-m", "penstock", "run", "p.yaml", "--quiet"],
        cwd=tmp_path, check=True, timeout=120,
    )  # fmt: skip
    events = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    workers = {pid for event, pid in events if event == "batch"}
    counts = Counter(event for event, pid in events if pid in workers)
    assert counts["batch"] == 6
    assert counts["open"] == counts["close"] == len(workers) < 6
    written = [
        json.loads(line)["n"]
        for file in (tmp_path / "out").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert sorted(written) == list(range(6))
