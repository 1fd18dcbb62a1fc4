"""A class of a `python` transform over the batches of a run, in worker processes."""

from __future__ import annotations

from collections import Counter

import pytest
from pipelines import Workspace, dump

pytestmark = pytest.mark.spark

PIPELINE = """
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
  out: {type: memory, from: scored}
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
"""


def test_a_model_is_loaded_once_in_each_worker(workspace: Workspace) -> None:
    """The end of a worker closes its model: see `test_end_of_java`."""
    (workspace.root / "model.py").write_text(MODEL)
    for n in range(6):
        workspace.put(f"in/{n}.jsonl", [dump({"n": n})])
    workspace.run(PIPELINE)
    events = [line.split() for line in (workspace.root / "log").read_text().splitlines()]
    workers = {pid for event, pid in events if event == "batch"}
    counts = Counter(event for event, pid in events if pid in workers)
    assert counts["batch"] == 6
    assert counts["open"] == len(workers) < 6
    assert sorted(workspace.result()["n"]) == list(range(6))
