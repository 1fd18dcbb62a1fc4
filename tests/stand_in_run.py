"""Stand-in for `penstock run` without Spark: the same state directory, lock, log and exit codes.

The file `behavior` beside the pipeline file decides: `run` (until a stop), `lingering` (two
seconds longer), `complete`, `killed`, `fail CODE` (a run that fails with an exit code) or
`refuse CODE` (ends before the lock). With `SECONDS` after `run` the lock is taken after that time,
as Spark starts first. The file `connections` then has the connections of the server that the run
was given. A run ends with the process of its tests, which may be killed before it stops the run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from penstock.core.errors import StateError
from penstock.core.run_id import given_run_id
from penstock.observe.batches import BatchReports
from penstock.runtime.state.batch_log import BatchLog
from penstock.runtime.state.directory import StateDirectory, now

TESTS = "PROCESS_OF_TESTS"
"""The variable with the number of the process of the tests."""
PHASES = {
    "offsets": 0.1,
    "planning": 0.2,
    "log": 0.1,
    "processing": 2.4,
    "commit": 0.1,
    "other": 0.1,
}


def snapshot(run: str | None, began: float) -> dict[str, object]:
    """Returns the metrics of a run: 3 rows, of which 2 are dead letters, in 2 batches."""
    node = {
        "kind": "source", "type": "generate", "rows": 3, "bytes": None, "rows_per_second": 1.5,
        "lag": 7, "lag_unit": "records", "dead_letters": 2, "last_batch": began,
        "labels": {"team": "shop"},
    }  # fmt: skip
    sink = {**node, "kind": "sink", "type": "files", "bytes": 120, "lag": None, "dead_letters": 0}
    query = {
        "state": "running", "since": began, "error": None, "code": None, "sink": None,
        "failures": 0, "next_attempt": None, "batch": None, "batch_since": None,
        "batches": 2, "batch_seconds": 3.0, "batch_durations": [0] * 5 + [2] + [0] * 6,
        "phase_seconds": PHASES, "watermark": began - 60, "state_rows": 4, "state_bytes": 900,
        "late_rows": 1, "late_rows_exact": True, "late_rows_by_node": {"orders": 1},
    }  # fmt: skip
    return {
        "run": run, "version": "0", "began": began, "seconds": time.time() - began,
        "started": True, "stopping": False, "batches": 2, "restarts": 1, "dead_letters": 2,
        "queries": {"orders": query}, "receivers": {}, "nodes": {"orders": node, "out": sink},
        "side_outputs": {},
    }  # fmt: skip


def batch(number: int, began: float) -> dict[str, object]:
    """Returns the progress event of a batch, as Spark reports it."""
    timestamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(began))
    durations = {"triggerExecution": 1500, "addBatch": 1200, "walCommit": 50, "queryPlanning": 100}
    return {
        "name": "orders", "batchId": number, "timestamp": timestamp, "durationMs": durations,
        "eventTime": {"watermark": timestamp}, "stateOperators": [{"numRowsTotal": 4}],
    }  # fmt: skip


def main(words: list[str]) -> int:
    assert words[0] == "run"
    log = Path(words[words.index("--log-file") + 1])
    connections = os.environ.get("PENSTOCK_CONNECTIONS", "")
    return perform(Path(words[1]), log, given_run_id(), connections, fresh="--fresh" in words)


def perform(file: Path, log: Path, run: str | None, connections: str, *, fresh: bool) -> int:
    """Performs a run, and returns its exit code."""
    behavior, *numbers = (file.parent / "behavior").read_text().split()
    (file.parent / "connections").write_text(connections)
    if behavior == "refuse":
        line = {"run": run, "level": "error", "event": "error", "code": "state", "error": "no"}
        log.write_text(json.dumps(line) + "\n")
        return int(numbers[0])
    if behavior == "run" and numbers:
        time.sleep(float(numbers[0]))
    try:
        return hold(state_of(file), behavior, numbers, run, fresh=fresh)
    except StateError as error:
        line = {"run": run, "level": "error", "event": "error", "code": error.code}
        log.write_text(json.dumps({**line, "error": error.message, "hint": error.hint}) + "\n")
        return error.policy.exit_code


def state_of(file: Path) -> StateDirectory:
    """Returns the state directory of a file; one with the real lease for an object store."""
    if "s3://" not in file.read_text():
        return StateDirectory(file.parent / ".penstock" / file.stem)
    from penstock.app import plan
    from penstock.runtime.state.pipeline import open_state

    return open_state(plan(file))


def hold(
    state: StateDirectory, behavior: str, numbers: list[str], run: str | None, *, fresh: bool
) -> int:
    """Runs while it holds the lock of the state directory."""
    with state.locked():
        if fresh:
            state.reset()
            with (state.root / "resets").open("a") as resets:
                resets.write(f"{run}\n")
        entry = {"id": run, "began": now()}
        state.begin_run(entry)
        began = time.time()
        reports = BatchReports()
        reports.observers.append(BatchLog(state, run or "").add)
        for number in (0, 1):
            reports.begin("orders", number)
            reports.add("orders", number, "out", rows=3, bad=0)
            reports.finish(batch(number, began + number))
        written = 0.0
        while behavior in ("run", "lingering") and not ends(state):
            if time.monotonic() - written > 0.5:
                state.write("status.json", snapshot(run, began))
                written = time.monotonic()
            time.sleep(0.05)
        if behavior == "lingering":
            time.sleep(2)
        if behavior == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        code = int(numbers[0]) if behavior == "fail" else 0
        ending = {
            "run": "stopped",
            "lingering": "stopped",
            "complete": "complete",
            "fail": "failed",
        }[behavior]
        errors = {"q": [{"code": "made-up", "message": "made up"}]} if code else {}
        state.end_run(entry, ended=now(), ending=ending, exit_code=code, errors=errors)
    return code


def ends(state: StateDirectory) -> bool:
    """Returns whether a run is to end: it is stopped, or its tests have ended."""
    if tests := os.environ.get(TESTS):
        try:
            os.kill(int(tests), 0)
        except ProcessLookupError:
            return True
    return (state.root / "stop").exists()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
