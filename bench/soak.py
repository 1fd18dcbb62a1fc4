"""Memory, state and latency of a Penstock pipeline by minute.

    ./dev bench soak [--json] [--minutes N] [--rate N]

Penstock runs bench/soak.yaml at a steady rate: records of 190 bytes pass a filter from topic to
topic, and are counted by user in windows of ten seconds, whose rows go to a second topic. Memory
is what is resident; the drift compares the last minute with the second.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clicks_data
import latency
import options
from load import Load
from measure import Failed
from running import Running

from servers.kafka import Kafka

HERE = Path(__file__).resolve().parent
COMPARED = ("total_mb", "state_mb", "p50", "p99", "cpu_percent")


def soak(minutes: int, rate: int) -> Iterator[dict[str, Any]]:
    """One row for each minute, as it ends."""
    topics = {"SOURCE": "in", "TARGET": "out", "COUNTS": "counts"}
    with Kafka(heavy=True) as broker, tempfile.TemporaryDirectory(prefix="penstock-bench-") as path:
        for topic in topics.values():
            clicks_data.create(broker.address, topic)
        env = {**os.environ, "BROKERS": broker.address, **topics}
        directory = Path(path)
        pipeline = shutil.copy(HERE / "soak.yaml", directory)
        command = [sys.executable, "-m", "penstock", "run", str(pipeline)]
        with (
            Running(command, directory, env) as engine,
            Load(broker.address, topics["SOURCE"], topics["TARGET"]) as load,
        ):
            load.send_one()
            latency.await_first(engine, load)
            load.take()
            before = engine.cpu()
            for minute in range(1, minutes + 1):
                load.send(rate, 60)
                engine.check()
                cpu = engine.cpu()
                memory = engine.memory()
                yield {
                    "minute": minute,
                    **latency.summary(load.take()),
                    "memory_mb": memory,
                    "total_mb": sum(map(sum, memory.values())),
                    "state_mb": size(directory / ".penstock"),
                    "cpu_percent": 100 * (cpu - before) / 60,
                }
                before = cpu
            load.wait()


def size(directory: Path) -> float:
    """The MB of its files, some of which may be removed meanwhile."""
    total = 0
    for path, _, names in os.walk(directory):
        for name in names:
            try:
                total += Path(path, name).stat().st_size
            except FileNotFoundError:
                continue
    return total / 2**20


HEAD = (
    f"{'minute':>6} {'records':>10} {'p50 ms':>7} {'p99 ms':>7} {'CPU %':>6} {'driver':>7} "
    f"{'JVM':>7} {'warm Python':>12} {'workers':>14} {'all MB':>7} {'state MB':>9}"
)


def line(row: dict[str, Any]) -> str:
    memory = {role: sum(each) for role, each in row["memory_mb"].items()}
    workers = row["memory_mb"].get("worker", [])
    driver, jvm, warm = (memory.get(role, 0) for role in ("driver", "JVM", "warm Python"))
    return (
        f"{row['minute']:>6} {row['records']:>10,} {row['p50']:>7,.0f} {row['p99']:>7,.0f} "
        f"{row['cpu_percent']:>6.0f} {driver:>7,.0f} {jvm:>7,.0f} {warm:>12,.0f} "
        f"{f'{sum(workers):,.0f} ({len(workers)})':>14} {row['total_mb']:>7,.0f} "
        f"{row['state_mb']:>9.1f}"
    )


def drift(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The last minute over the second, less one."""
    return {name: rows[-1][name] / rows[1][name] - 1 for name in COMPARED}


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--minutes", type=int, default=10, help="at least 3")
    parser.add_argument("--rate", type=int, default=20_000, help="records per second")
    given = parser.parse_args()
    if given.minutes < 3:
        parser.error("--minutes: the last is compared with the second, so it must be 3 or more")
    rows: list[dict[str, Any]] = []
    if not given.json:
        print(f"{given.rate:,} records a second\n{HEAD}", flush=True)
    try:
        for row in soak(given.minutes, given.rate):
            rows.append(row)
            if not given.json:
                print(line(row), flush=True)
    except Failed as failure:
        raise SystemExit(f"bench: {failure}") from None
    drifts = drift(rows)
    if given.json:
        print(json.dumps({"rate": given.rate, "minutes": rows, "drift": drifts}))
        return
    named = {"total_mb": "memory", "state_mb": "state", "cpu_percent": "CPU"}
    print(
        f"from minute 2 to minute {given.minutes}: "
        + ", ".join(f"{named.get(name, name)} {value:+.0%}" for name, value in drifts.items())
    )


if __name__ == "__main__":
    main()
