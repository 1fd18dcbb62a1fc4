"""Memory and CPU of pipelines in processes of their own, beside pipelines that share a session.

    ./dev bench sharing [--json] [--pipelines N] [--alone N] [--seconds N]

Each pipeline watches a directory, filters its rows and writes them to a sink without output. First
no file arrives, then one of 100 rows for each pipeline each second. Memory is proportional (PSS):
pages that processes share are divided among them.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import options
import psutil
from measure import Failed
from running import Running

PIPELINE = """\
name: p{number}
sources:
  rows: {{type: files, path: in, watch: true, format: json, schema: "id LONG, text STRING"}}
transforms:
  kept: {{type: filter, from: rows, where: id % 2 = 0}}
sinks: {{out: {{type: blackhole, from: kept}}}}
"""
PROGRAM = """
import sys
from penstock import app
plans = [app.plan(path) for path in sys.argv[1:]]
with app.session(plans[0]) as spark:
    handles = [app.start(plan, spark=spark.newSession()) for plan in plans]
    for handle in handles:
        handle.wait()
"""
START_SECONDS = 180.0
LAST_BATCH_SECONDS = 5.0
COUNTS = ("pipelines", "processes")
COSTS = ("jvm_mb", "python_mb", "mb", "idle_cpu_percent", "cpu_ms_per_batch")
ROWS = "".join(f'{{"id": {number}, "text": "made up"}}\\n' for number in range(100))


class Group:
    """Pipelines, and the processes that run them."""

    def __init__(self, directory: Path, count: int) -> None:
        self.paths = [directory / f"{number}" / "p.yaml" for number in range(count)]
        for number, path in enumerate(self.paths):
            (path.parent / "in").mkdir(parents=True)
            path.write_text(PIPELINE.format(number=number))
        self._engines: list[Running] = []

    def start(self, stack: ExitStack, commands: Mapping[Path, Sequence[str]]) -> None:
        """Starts a process for each directory, and waits until all pipelines have written rows."""
        for directory, command in commands.items():
            engine = Running([sys.executable, *command], directory, dict(os.environ))
            self._engines.append(stack.enter_context(engine))
            self._await_rows(1, [path for path in self.paths if directory in path.parents])

    def _await_rows(self, number: int, paths: Sequence[Path]) -> None:
        """Adds a file for each pipeline, and waits until all have written a batch."""
        self._feed(number, paths)
        until = time.monotonic() + START_SECONDS
        while not all(map(_batches, paths)):
            for engine in self._engines:
                engine.check()
            if time.monotonic() > until:
                raise Failed("a pipeline has written no batch")
            time.sleep(0.2)

    def _feed(self, number: int, paths: Sequence[Path]) -> None:
        for path in paths:
            hidden = path.parent / "in" / f".{number}.json"
            hidden.write_text(ROWS)
            hidden.rename(path.parent / "in" / f"{number}.json")

    def memory(self) -> dict[str, float]:
        """Returns the proportional MB of the processes by their roles."""
        found: dict[str, float] = {"JVM": 0.0, "Python": 0.0}
        for engine in self._engines:
            for process in engine.members():
                with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                    role = "JVM" if Path(process.exe()).name == "java" else "Python"
                    found[role] += process.memory_full_info().pss / 2**20
        return found

    def cpu(self) -> float:
        """Returns the CPU seconds of the processes so far."""
        return sum(engine.cpu() for engine in self._engines)

    def costs(self, seconds: int) -> dict[str, Any]:
        """Returns memory and CPU of each pipeline, without and with files."""
        count, before = len(self.paths), self.cpu()
        time.sleep(seconds)
        idle, memory = self.cpu() - before, self.memory()
        begin, batches = self.cpu(), sum(map(_batches, self.paths))
        for number in range(2, 2 + seconds):
            self._feed(number, self.paths)
            time.sleep(1)
        time.sleep(LAST_BATCH_SECONDS)
        done = sum(map(_batches, self.paths)) - batches
        return {
            "pipelines": count,
            "processes": sum(1 for engine in self._engines for _ in engine.members()),
            "jvm_mb": memory["JVM"] / count,
            "python_mb": memory["Python"] / count,
            "mb": sum(memory.values()) / count,
            "idle_cpu_percent": 100 * idle / seconds / count,
            "cpu_ms_per_batch": 1000 * (self.cpu() - begin) / done,
        }


def _batches(path: Path) -> int:
    """Returns the number of batches that a pipeline has committed."""
    numbers = [
        int(entry.name) for entry in path.parent.glob(".penstock/*/checkpoints/*/commits/[0-9]*")
    ]
    return max(numbers, default=-1) + 1


def rows(shared: int, alone: int, seconds: int) -> Iterator[dict[str, Any]]:
    """Yields the costs of a pipeline in a process of its own, and in a session of several."""
    for kind, count in (("alone", alone), ("shared", shared)):
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as path, ExitStack() as stack:
            group = Group(Path(path), count)
            if kind == "alone":
                run = ["-m", "penstock", "run"]
                commands = {each.parent: [*run, str(each)] for each in group.paths}
            else:
                commands = {Path(path): ["-c", PROGRAM, *map(str, group.paths)]}
            group.start(stack, commands)
            yield {"kind": kind, **group.costs(seconds)}


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--pipelines", type=int, default=10, help="that share a session")
    parser.add_argument("--alone", type=int, default=3, help="in processes of their own")
    parser.add_argument("--seconds", type=int, default=20)
    given = parser.parse_args()
    found = list(rows(given.pipelines, given.alone, given.seconds))
    alone, shared = found
    ratios = {name: shared[name] / alone[name] for name in COSTS if alone[name]}
    if given.json:
        print(json.dumps({"rows": found, "ratios": ratios}))
        return
    print(" " * 7 + "".join(f"{name:>18}" for name in (*COUNTS, *COSTS)))
    for row in found:
        costs = "".join(f"{row[name]:>18,.1f}" for name in COSTS)
        print(f"{row['kind']:>7}" + "".join(f"{row[name]:>18}" for name in COUNTS) + costs)
    print(f"{'ratio':>7}" + " " * 36 + "".join(f"{ratios.get(name, 0):>18.2f}" for name in COSTS))


if __name__ == "__main__":
    main()
