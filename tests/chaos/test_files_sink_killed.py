"""The sink of files in a process that is killed again and again."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.chaos

BATCHES = 100
KILLS = 6
PROGRAM = """
import sys
import time
from pathlib import Path
import pyarrow as pa
from penstock.connectors.files import FilesSink, FilesSinkConfig
from penstock.sdk import BatchId, registry

here, batches = Path(sys.argv[1]), int(sys.argv[2])
schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
options = {"path": str(here / "out"), "roll": {"max_size": "3 KB"}, "partition_by": ["v"]}
sink = FilesSink(FilesSinkConfig.model_validate(options))
json = registry.find("format", "json")
sink.format = json(json.config_type())
log = here / "commits"
number = int(log.read_text()) if log.exists() else 0
sink.recover()
while number < batches:
    receipts = []
    for partition in range(2):
        writer = sink.writer(None, BatchId("q", number), partition, schema)
        first = number * 20 + partition * 10
        rows = [{"id": i, "v": "ab"[i % 2]} for i in range(first, first + 10)]
        writer.write(pa.RecordBatch.from_pylist(rows, schema=schema))
        receipts.append(writer.commit())
    sink.commit(BatchId("q", number), receipts)
    number += 1
    (here / "draft").write_text(str(number))
    (here / "draft").replace(log)
sink.complete()
(here / "done").touch()
"""


def test_every_row_is_there_once(tmp_path: Path) -> None:
    kills = 0
    while not (tmp_path / "done").exists():
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path), str(BATCHES)])
        before = committed(tmp_path)
        while committed(tmp_path) == before and process.poll() is None:
            time.sleep(0.001)
        try:
            process.wait(random.random() * 0.6 if kills < KILLS else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        assert process.returncode in (0, -9)
        seen = visible(tmp_path / "out")
        assert len(seen) == len(set(seen)), "a row is there twice"
    assert kills, "it was never killed"
    assert sorted(seen) == list(range(BATCHES * 20))


def committed(root: Path) -> str:
    """The number of the last batch, as the program keeps it."""
    log = root / "commits"
    return log.read_text() if log.exists() else ""


def visible(root: Path) -> list[int]:
    """The ids in all files that a reader sees."""
    return [
        json.loads(line)["id"]
        for path in root.rglob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
