"""Latency of records from topic to topic, and CPU of an idle pipeline.

    ./dev bench latency [--json] [--engines NAME,NAME] [--seconds N]

Records pass a filter: 100 a second, 10,000 a second, and one every three seconds through a pipeline
that has nothing else to do. Their time goes from the producer's call to the consumer's, both in
the process of the bench. Penstock runs bench/passing.yaml as it comes; PySpark does the same over
Spark's own Kafka connector with its default trigger. Idle is what all processes of an engine take
while nothing arrives.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any

import clicks_data
import installs
import options
from load import Load, Times
from measure import Failed
from running import Running

from servers.kafka import Kafka

HERE = Path(__file__).resolve().parent
RATES = (100, 10_000)
WARM_UP = 10.0
START = 180.0
SINGLE = 10
PAUSE = 3.0


def penstock(brokers: str, source: str, target: str, directory: Path) -> list[str]:
    pipeline = shutil.copy(HERE / "passing.yaml", directory)
    return [sys.executable, "-m", "penstock", "run", str(pipeline)]


def pyspark(brokers: str, source: str, target: str, directory: Path) -> list[str]:
    installs.java()
    return [
        sys.executable, str(HERE / "peers" / "passing_pyspark.py"), brokers, source, target,
        str(installs.spark_connector()), str(directory / "checkpoint"),
    ]  # fmt: skip


ENGINES: dict[str, Callable[[str, str, str, Path], list[str]]] = {
    "penstock": penstock,
    "pyspark": pyspark,
}


def run(name: str, broker: Kafka, seconds: float) -> dict[str, Any]:
    source, target = f"in-{name}", f"out-{name}"
    for topic in (source, target):
        clicks_data.create(broker.address, topic)
    named = {"BROKERS": broker.address, "SOURCE": source, "TARGET": target}
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        command = ENGINES[name](broker.address, source, target, Path(scratch))
        with (
            Running(command, Path(scratch), {**os.environ, **named}) as engine,
            Load(broker.address, source, target) as load,
        ):
            load.send_one()
            await_first(engine, load)
            result: dict[str, Any] = {str(rate): at_rate(load, rate, seconds) for rate in RATES}
            time.sleep(WARM_UP)
            result["idle_cpu_percent"] = engine.idle_cpu(seconds)
            result["single"] = single(load)
            engine.check()
    return result


def await_first(engine: Running, load: Load) -> None:
    until = time.monotonic() + START
    while True:
        engine.check()
        try:
            return load.wait(1)
        except Failed:
            if time.monotonic() > until:
                raise


def at_rate(load: Load, rate: int, seconds: float) -> dict[str, float]:
    load.send(rate, WARM_UP)
    load.wait()
    load.take()
    load.send(rate, seconds)
    load.wait()
    return summary(load.take())


def single(load: Load) -> dict[str, float]:
    for _ in range(SINGLE):
        load.send_one()
        load.wait()
        time.sleep(PAUSE)
    return summary(load.take())


def summary(times: Times) -> dict[str, float]:
    return {"records": times.count, "p50": times.p50, "p99": times.p99, "worst": times.worst}


def compare(engines: list[str], seconds: float) -> dict[str, Any]:
    result: dict[str, Any] = {"runs": {}, "skipped": {}}
    with Kafka(heavy=True) as broker:
        for name in engines:
            print(f"{name} ...", file=sys.stderr)
            try:
                result["runs"][name] = run(name, broker, seconds)
            except installs.Unavailable as why:
                result["skipped"][name] = shorten(str(why.msg), 300)
            except Failed as failure:
                if name == "penstock":
                    raise
                result["skipped"][name] = f"failed: {str(failure).strip().splitlines()[-1]}"
    return result


def table(result: dict[str, Any]) -> Iterator[str]:
    heads = [f"{rate:,}/s" for rate in RATES]
    yield f"{'milliseconds':14}" + "".join(f"{head:>18}" for head in [*heads, "one in 3 s"])
    yield " " * 14 + f"{'p50':>9}{'p99':>9}" * 2 + f"{'p50':>9}{'worst':>9}" + f"{'idle':>14}"
    for name, run in result["runs"].items():
        cells = [(run[str(rate)]["p50"], run[str(rate)]["p99"]) for rate in RATES]
        cells.append((run["single"]["p50"], run["single"]["worst"]))
        figures = "".join(f"{left:>9,.0f}{right:>9,.0f}" for left, right in cells)
        yield f"{name:14}{figures}{run['idle_cpu_percent']:>8.1f} % of a core"
    for name, why in result["skipped"].items():
        yield f"{name:14} left out: {why}"


def main() -> None:
    parser = options.parser(__doc__)
    options.add_engines(parser, ENGINES)
    parser.add_argument("--seconds", type=float, default=30, help="duration of each measurement")
    given = parser.parse_args()
    try:
        result = compare(given.engines, given.seconds)
    except Failed as failure:
        raise SystemExit(f"bench: {failure}") from None
    print(json.dumps(result) if given.json else "\n".join(table(result)))


if __name__ == "__main__":
    main()
