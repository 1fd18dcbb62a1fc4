"""Runs on a standalone cluster of two workers, with and without a shared state directory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
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
sources:
  in: {type: files, path: ../in.json, format: json, schema: "k STRING, n INT", max_size: 1KB}
transforms:
  totals: {type: sql, sql: "SELECT k, count(*) AS n, sum(n) AS total FROM in GROUP BY k"}
sinks:
  out: {type: files, from: totals, path: out, format: json}
"""
BAD = 10
PROGRAM = """
import json, sys
from pathlib import Path
from command_line import CommandLine
from penstock import app

with app.session(app.plan("shared/totals.yaml")) as spark:
    commands = [command.split() for command in sys.argv[1:]]
    print(json.dumps([vars(CommandLine(spark)(Path(), *words)) for words in commands]))
"""
"""Commands in one application of the cluster, which has a driver and two executors."""


@dataclass(frozen=True)
class Ran:
    """The directory of the pipelines, and the results of their commands."""

    directory: Path
    run: subprocess.CompletedProcess[str]
    dead: subprocess.CompletedProcess[str]
    run_hidden: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def ran(spark_cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    directory = tmp_path_factory.mktemp("cluster")
    lines = [json.dumps({"k": f"k{number % 3}", "n": number}) for number in range(300)]
    lines[::30] = ["{damaged"] * BAD
    (directory / "in.json").write_text("\n".join(lines) + "\n")
    for name, state in (("shared", "state"), ("hidden", spark_cluster.hidden / "state")):
        (directory / name).mkdir()
        text = PIPELINE.replace("STATE", str(state)).replace("MASTER", spark_cluster.url)
        (directory / name / "totals.yaml").write_text(text)
    commands = ("run shared/totals.yaml", "dead list shared/totals.yaml", "run hidden/totals.yaml")
    return Ran(directory, *_perform(directory, commands))


def _perform(directory: Path, commands: Sequence[str]) -> list[subprocess.CompletedProcess[str]]:
    """Runs `penstock` by commands. The directory of its Python is not in PATH."""
    directories = os.environ["PATH"].split(os.pathsep)
    others = [each for each in directories if Path(each) != Path(sys.executable).parent]
    modules = filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])
    environment = {
        **os.environ, "PATH": os.pathsep.join(others), "PYTHONPATH": os.pathsep.join(modules),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *commands], cwd=directory, capture_output=True, text=True,
        env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [subprocess.CompletedProcess(**each) for each in json.loads(done.stdout)]


def test_a_shared_state_directory(ran: Ran) -> None:
    assert ran.run.returncode == 0, ran.run.stderr
    directory = ran.directory / "shared"
    last: dict[str, tuple[int, int]] = {}
    for path in sorted((directory / "out").glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            last[row["k"]] = max(last.get(row["k"], (0, 0)), (row["n"], row["total"]))
    good = [number for number in range(300) if number % 30]
    groups = {f"k{key}": [number for number in good if number % 3 == key] for key in range(3)}
    assert last == {key: (len(numbers), sum(numbers)) for key, numbers in groups.items()}
    assert f"{BAD} dead letters" in ran.dead.stdout
    offsets = (directory / "state/totals/checkpoints/totals/offsets/0").read_text()
    assert '"spark.sql.shuffle.partitions":"2"' in offsets


def test_a_state_directory_that_is_not_shared(ran: Ran) -> None:
    assert ran.run_hidden.returncode == 4
    assert "error[state-not-shared]" in ran.run_hidden.stderr
    assert re.search("executor on node-[ab], driver on ", ran.run_hidden.stderr)
    assert not (ran.directory / "hidden" / "out").exists()
