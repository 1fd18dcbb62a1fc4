"""Stand-in for `penstock run` without Spark: the same state directory, lock, log and exit codes.

The file `behavior` beside the pipeline file decides: `run` (until a stop), `complete`, `killed`,
`fail CODE` (a run that fails with an exit code) or `refuse CODE` (ends before the lock).
The file `connections` then has the connections of the server that the run was given.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

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
    (file.parent / "connections").write_text(os.environ.get("PENSTOCK_CONNECTIONS", ""))
    if behavior == "refuse":
        line = {"run": run, "level": "error", "event": "error", "code": "state", "error": "no"}
        log.write_text(json.dumps(line) + "\n")
        return int(numbers[0])
    state = StateDirectory(file.parent / ".penstock" / file.stem)
    with state.locked():
        if "--fresh" in words:
            state.reset()
        entry = {"id": run, "began": now()}
        state.begin_run(entry)
        while behavior == "run" and not (state.root / "stop").exists():
            state.write("status.json", NUMBERS)
            time.sleep(0.05)
        if behavior == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        code = int(numbers[0]) if behavior == "fail" else 0
        ending = {"run": "stopped", "complete": "complete", "fail": "failed"}[behavior]
        errors = {"q": [{"code": "made-up", "message": "made up"}]} if code else {}
        state.end_run(entry, ended=now(), ending=ending, exit_code=code, errors=errors)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
