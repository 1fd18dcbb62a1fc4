"""Runs on a standalone cluster of two workers, with and without a shared state directory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from servers.spark import SparkCluster

pytestmark = pytest.mark.spark

PIPELINE = """\
name: totals
runtime:
  master: MASTER
  state: STATE
  spark:
    spark.executor.memory: 512m
    spark.executor.extraJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
SETTINGS
sources:
  in: {type: files, path: in.json, format: json, schema: "k STRING, n INT", max_size: 1KB}
transforms:
  totals: {type: sql, sql: "SELECT k, count(*) AS n, sum(n) AS total FROM in GROUP BY k"}
sinks:
  out: {type: files, from: totals, path: out, format: json}
"""
ONE_EXECUTOR = "    spark.cores.max: 1"
BAD = 10


def penstock(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command by its path. The directory of its Python is not in PATH."""
    program = Path(sys.executable).with_name("penstock")
    entries = os.environ["PATH"].split(os.pathsep)
    path = os.pathsep.join(entry for entry in entries if Path(entry) != program.parent)
    environment = {**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [str(program), *words], cwd=directory, capture_output=True, text=True, env=environment,
        timeout=300,
    )  # fmt: skip


def run(
    directory: Path, cluster: SparkCluster, state: Path, settings: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a pipeline with this state directory, and further settings of Spark."""
    lines = [json.dumps({"k": f"k{number % 3}", "n": number}) for number in range(300)]
    lines[::30] = ["{damaged"] * BAD
    (directory / "in.json").write_text("\n".join(lines) + "\n")
    text = PIPELINE.replace("SETTINGS", settings).replace("STATE", str(state))
    (directory / "totals.yaml").write_text(text.replace("MASTER", cluster.url))
    return penstock(directory, "run", "totals.yaml")


def test_a_shared_state_directory(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    done = run(tmp_path, spark_cluster, tmp_path / "state")
    assert done.returncode == 0, done.stderr
    last: dict[str, tuple[int, int]] = {}
    for path in sorted((tmp_path / "out").glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            last[row["k"]] = max(last.get(row["k"], (0, 0)), (row["n"], row["total"]))
    good = [number for number in range(300) if number % 30]
    groups = {f"k{key}": [number for number in good if number % 3 == key] for key in range(3)}
    assert last == {key: (len(numbers), sum(numbers)) for key, numbers in groups.items()}
    assert f"{BAD} dead letters" in penstock(tmp_path, "dead", "list", "totals.yaml").stdout
    offsets = (tmp_path / "state/totals/checkpoints/totals/offsets/0").read_text()
    assert '"spark.sql.shuffle.partitions":"2"' in offsets


def test_a_state_directory_that_is_not_shared(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    done = run(tmp_path, spark_cluster, spark_cluster.hidden / "state", ONE_EXECUTOR)
    assert done.returncode == 4
    assert "error[state-not-shared]" in done.stderr
    assert re.search("executor on node-[ab], driver on ", done.stderr)
    assert not (tmp_path / "out").exists()
