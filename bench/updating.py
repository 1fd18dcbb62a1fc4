"""Throughput and state of an updating aggregate with many keys.

    ./dev bench updating [--json] [--keys N] [--seconds N] [--rows N]

Penstock runs bench/updating.yaml: generated rows with random keys, of which each batch changes the
results of some. The first and the last sixth of the time after the first batch are compared.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import options
from soak import size

from penstock import app

HERE = Path(__file__).resolve().parent
PARTS = 6
INTERVAL = 0.1
START = 180.0


def measure(keys: int, seconds: float, rows: int) -> dict[str, Any]:
    """Runs the pipeline, and returns rows per second by part of the time, and the size of state."""
    os.environ |= {"LAST_KEY": str(keys - 1), "ROWS": str(rows)}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as path:
        plan = app.plan(shutil.copy(HERE / "updating.yaml", path))
        handle = app.start(plan)
        try:
            samples = [await_rows(handle, 0, time.monotonic() + START)]
            until = samples[0][0] + seconds
            while time.monotonic() < until:
                samples.append(await_rows(handle, samples[-1][1], until))
        finally:
            handle.stop()
            handle.wait()
        return {
            "keys": keys,
            "rows": samples[-1][1],
            "rates": rates(samples, seconds),
            "state_mb": sum(size(each) for each in plan.state.rglob("updating")),
        }


def await_rows(handle: Any, known: int, until: float) -> tuple[float, int]:
    """Returns the time at which more rows than before are read, and their number."""
    while True:
        rows = handle.metrics.snapshot()["nodes"].get("payments", {}).get("rows", 0)
        if rows > known or time.monotonic() >= until:
            return time.monotonic(), rows
        if handle.wait(INTERVAL) is not None:
            raise SystemExit("bench: the run has ended")


def rates(samples: list[tuple[float, int]], seconds: float) -> list[float]:
    """Returns the rows per second of each part, between the batches nearest to its ends."""
    start, length = samples[0][0], seconds / PARTS
    ends = [
        min(samples, key=lambda sample: abs(sample[0] - start - part * length))
        for part in range(PARTS + 1)
    ]
    return [
        (later[1] - earlier[1]) / max(later[0] - earlier[0], INTERVAL)
        for earlier, later in pairwise(ends)
    ]


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000, help="number of keys")
    parser.add_argument("--seconds", type=float, default=60, help="duration of the measurement")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of a batch")
    given = parser.parse_args()
    result = measure(given.keys, given.seconds, given.rows)
    if given.json:
        print(json.dumps(result))
        return
    first, last = result["rates"][0], result["rates"][-1]
    print(f"{result['rows']:,} rows with {given.keys:,} keys")
    print(f"rows/s  first sixth {first:,.0f}  last sixth {last:,.0f}  ({last / first - 1:+.0%})")
    print(f"state   {result['state_mb']:,.1f} MB on disk")


if __name__ == "__main__":
    main()
