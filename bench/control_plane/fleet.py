"""A directory of made-up pipelines whose runs one process holds: their locks and their metrics.

    python bench/control_plane/fleet.py DIRECTORY COUNT [--nodes N]

Writes COUNT pipelines, one of them with N nodes, locks their state directories and writes
metrics each second, as `penstock run` does, until its input ends. A real run takes 800 MB.
"""

from __future__ import annotations

import argparse
import json
import select
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from penstock.core.version import __version__
from penstock.observe.progress import DURATIONS
from penstock.runtime.state.directory import StateDirectory, now

FAILED = 3
"""The number of the pipeline that is not held: its last run has failed."""


def write_pipelines(directory: Path, count: int, nodes: int) -> list[Path]:
    """Writes pipelines. The first one has many nodes, in chains that meet."""
    files = []
    for number in range(count):
        name = f"orders-of-the-region-{number:03}" if number % 10 else f"shop-{number:03}"
        files.append(directory / name / f"{name}.yaml")
        files[-1].parent.mkdir(parents=True)
        files[-1].write_text(_large(name, nodes) if number == 0 else _small(name))
    return files


def hold(files: list[Path]) -> None:
    """Holds the states of pipelines and writes their metrics, until the input ends."""
    with ExitStack() as stack:
        states = []
        for number, file in enumerate(files):
            state = StateDirectory(file.parent / ".penstock" / file.stem)
            if number == FAILED:
                _fail(state)
                continue
            stack.enter_context(state.locked())
            state.begin_run({"id": f"run{number}", "began": now()})
            states.append((number, state, _nodes(file)))
        began, since, rounds = time.monotonic(), time.time(), 0
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            for number, state, nodes in states:
                state.write("status.json", _numbers(number, since, rounds, nodes))
            rounds += 1
            time.sleep(max(began + rounds - time.monotonic(), 0))


def _fail(state: StateDirectory) -> None:
    """Leaves the history of a failed run."""
    with state.locked():
        run = {"id": "failed", "began": now()}
        state.begin_run(run)
        error = {"code": "unknown-column", "message": 'the column "totl" does not exist',
                 "hint": 'Use "total".'}  # fmt: skip
        state.end_run(run, ended=now(), ending="failed", exit_code=2, errors={"out": [error]})


def _small(name: str) -> str:
    return f"""\
name: {name}
sources:
  orders:
    type: generate
    rate: 10
    fields: {{id: sequence, total: {{type: integer, min: 1, max: 9}}}}
transforms:
  large: {{type: filter, from: orders, where: total > 5}}
sinks:
  out: {{type: files, from: large, path: out, format: json}}
"""


def _large(name: str, nodes: int) -> str:
    """Returns a pipeline of several sources, chains of filters, a union and sinks."""
    branches = 5
    length = max((nodes - 2 * branches - 1) // branches, 1)
    text = f"name: {name}\nsources:\n"
    for branch in range(branches):
        text += f"  orders{branch}: {{type: generate, rate: 10, fields: {{id: sequence}}}}\n"
    text += "transforms:\n"
    for branch in range(branches):
        before = f"orders{branch}"
        for step in range(length):
            text += (
                f"  step{branch}_{step}: {{type: filter, from: {before}, where: id >= {step}}}\n"
            )
            before = f"step{branch}_{step}"
    ends = [f"SELECT id FROM step{branch}_{length - 1}" for branch in range(branches)]
    text += f"  all_of_them: {{type: sql, sql: {json.dumps(' UNION ALL '.join(ends))}}}\nsinks:\n"
    for branch in range(branches):
        text += f"  out{branch}: {{type: blackhole, from: all_of_them}}\n"
    return text


def _nodes(file: Path) -> dict[str, tuple[str, str]]:
    """Returns kind and type of each node of a pipeline that this program wrote."""
    found, kind = {}, ""
    for line in file.read_text().splitlines():
        if not line.startswith(" "):
            kind = line.rstrip(":")[:-1]
        elif kind in ("source", "transform", "sink"):
            name, _, rest = line.strip().partition(":")
            found[name] = (kind, rest.partition("type: ")[2].partition(",")[0])
    return found


def _numbers(
    number: int, since: float, rounds: int, nodes: dict[str, tuple[str, str]]
) -> dict[str, Any]:
    """Returns the metrics of a run with one query, which has a batch each second."""
    idle = number % 7 == 5
    speed = 0.0 if idle else 100.0 + number + rounds % 5
    letters = 4 if number % 50 == 7 else 0
    flows = {}
    for name, (kind, type) in nodes.items():
        is_first = name == next(iter(nodes))
        flows[name] = {
            "kind": kind, "type": type, "rows": int(speed * rounds), "bytes": None,
            "rows_per_second": speed, "lag": 40 + rounds % 9 if kind == "source" else None,
            "lag_unit": "records", "dead_letters": letters if is_first else 0, "lost": 0,
            "retained": None, "retained_seconds": None, "without_event_time": 0, "late_rows": 0,
            "last_batch": time.time() - (600 if idle else 0), "batch_seconds": 0.2, "labels": {},
        }  # fmt: skip
    query = {
        "state": "running", "since": since, "error": None, "code": None, "sink": None,
        "failures": 0, "next_attempt": None, "batch": rounds, "batch_since": time.time(),
        "open_windows": None, "state_rows": 90 + number, "state_bytes": 70_000 + number,
        "batches": rounds, "batch_seconds": 0.2 * rounds,
        "batch_durations": [0, rounds, *[0] * (len(DURATIONS) - 1)],
        "phase_seconds": dict.fromkeys(("read", "process", "write", "commit"), 0.05 * rounds),
        "watermark": time.time() - 5,
    }  # fmt: skip
    return {
        "run": f"run{number}", "version": __version__, "began": since, "seconds": float(rounds),
        "started": True, "stopping": False, "batches": rounds, "restarts": 0,
        "dead_letters": letters, "watermarks": {}, "late_rows": 0, "late_rows_exact": True,
        "queries": {"out": query}, "receivers": {}, "side_outputs": {}, "nodes": flows,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--nodes", type=int, default=50)
    options = parser.parse_args()
    hold(write_pipelines(options.directory.absolute(), options.count, options.nodes))


if __name__ == "__main__":
    main()
