"""Stand-in for `penstock run` without Spark: the same state directory, lock, log and exit codes.

The file `behavior` beside the pipeline file decides: `run` (until a stop), `lingering` (two seconds
longer), `complete`, `killed`,
`fail CODE` (a run that fails with an exit code) or `refuse CODE` (ends before the lock). With
`SECONDS` after `run` the lock is taken after that time, as Spark starts first.
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
from penstock.runtime.state.directory import StateDirectory, now

NODE = {
    "kind": "source", "type": "generate", "rows": 3, "bytes": None, "rows_per_second": 1.5,
    "lag": 7, "lag_unit": "records", "dead_letters": 2, "last_batch": time.time(),
}  # fmt: skip
NUMBERS = {
    "seconds": 1.0, "started": True, "stopping": False, "batches": 1, "restarts": 0,
    "dead_letters": 2, "queries": {}, "receivers": {}, "nodes": {"orders": NODE},
}  # fmt: skip


def main(words: list[str]) -> int:
    assert words[0] == "run"
    file, log = Path(words[1]), Path(words[words.index("--log-file") + 1])
    behavior, *numbers = (file.parent / "behavior").read_text().split()
    run = given_run_id()
    if behavior == "refuse":
        line = {"run": run, "level": "error", "event": "error", "code": "state", "error": "no"}
        log.write_text(json.dumps(line) + "\n")
        return int(numbers[0])
    if behavior == "run" and numbers:
        time.sleep(float(numbers[0]))
    state = StateDirectory(file.parent / ".penstock" / file.stem)
    try:
        return hold(state, behavior, numbers, words, run)
    except StateError as error:
        print(error, file=sys.stderr)
        return error.policy.exit_code


def hold(
    state: StateDirectory, behavior: str, numbers: list[str], words: list[str], run: str | None
) -> int:
    """Runs while it holds the lock of the state directory."""
    with state.locked():
        if "--fresh" in words:
            state.reset()
            with (state.root / "resets").open("a") as resets:
                resets.write(f"{run}\n")
        entry = {"id": run, "began": now()}
        state.begin_run(entry)
        written = 0.0
        while behavior in ("run", "lingering") and not (state.root / "stop").exists():
            if time.monotonic() - written > 0.5:
                state.write("status.json", NUMBERS)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
