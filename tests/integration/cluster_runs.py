"""Runs of `penstock` in one application of a cluster, and their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

PROGRAM = """
import json, sys
from pathlib import Path
from command_line import CommandLine
from penstock import app

def perform(command):
    if command[0] == "write":
        Path(command[1]).write_text(command[2])
        return {"args": ["penstock", *command], "returncode": 0, "stdout": "", "stderr": ""}
    if command[0] == "preview":
        found = app.preview(app.plan(command[1]), command[2:], rows=1000, spark=spark)
        rows = {name: table.to_pylist() for name, table in found.tables.items()}
        return {"args": ["penstock", *command], "returncode": 0, "stdout": json.dumps(rows),
                "stderr": str(found.error or "")}
    return vars(CommandLine(spark)(Path(), *command))

with app.session(app.plan(sys.argv[2])) as spark:
    print(json.dumps([perform(command) for command in json.loads(sys.argv[1])]))
"""
"""Commands in one application of the cluster, which has a driver and two executors."""

Done = subprocess.CompletedProcess[str]


def perform(
    directory: Path, commands: Sequence[Sequence[str]], session: str, variables: Mapping[str, str]
) -> list[Done]:
    """Runs `penstock` by commands in the session of a file. Its Python is not in PATH."""
    directories = os.environ["PATH"].split(os.pathsep)
    others = [each for each in directories if Path(each) != Path(sys.executable).parent]
    modules = filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])
    environment = {
        **os.environ, **variables,
        "PATH": os.pathsep.join(others), "PYTHONPATH": os.pathsep.join(modules),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands), session], cwd=directory,
        capture_output=True, text=True, env=environment, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [subprocess.CompletedProcess(**each) for each in json.loads(done.stdout)]


def rows_of(directory: Path) -> list[dict[str, object]]:
    """Returns the rows of the files of a sink."""
    paths = sorted(directory.glob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def dead_letters_of(done: Done) -> Counter[tuple[str, str, str]]:
    """Returns the node, the code and the payload of each dead letter of `penstock dead list`."""
    letters = json.loads(done.stdout)["letters"]
    return Counter((each["node"], each["code"], str(each["payload"])) for each in letters)
