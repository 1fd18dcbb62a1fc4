"""JSON from topic to topic: filter, three derived columns; beside the same work written by hand.

    ./dev bench kafka [--json] [--records N] [--engines NAME,NAME] [--repeat N]

One broker, one topic of clicks (189 bytes each) that all engines read, and a topic of its own for
each run. Penstock runs bench/clicks.yaml; the peers are in bench/peers: PySpark over Spark's own
Kafka connector with its defaults and tuned, Kafka Streams (Java, two threads), bytewax. Each figure
is the best of the runs, and a run is a whole process with all that it starts, the start of Python
and Java and Spark included, the broker not. The rows of every run are compared with those that
were expected.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from textwrap import shorten
from typing import Any

import clicks_data
import installs
import options
from clicks_data import Contents
from measure import Cost, Failed, best, measure

from servers.kafka import Kafka

HERE = Path(__file__).resolve().parent
SOURCE = "clicks"
BYTES_PER_RECORD = 300
"""Disk space of a record in the input and output topics."""


@dataclass(frozen=True)
class Work:
    """One run: what to read, where to write, and a directory for the engine's own files."""

    brokers: str
    target: str
    records: int
    directory: Path


def penstock(work: Work) -> list[str]:
    """Its state is kept beside the pipeline file, so the file is copied."""
    pipeline = shutil.copy(HERE / "clicks.yaml", work.directory)
    return [sys.executable, "-m", "penstock", "run", "--until-caught-up", str(pipeline)]


def pyspark(work: Work, *options: str) -> list[str]:
    installs.java()
    jars = installs.spark_connector()
    return [
        sys.executable, str(HERE / "peers" / "clicks_pyspark.py"), work.brokers, SOURCE,
        work.target, str(jars), str(work.directory / "checkpoint"), *options,
    ]  # fmt: skip


def kafka_streams(work: Work) -> list[str]:
    home = installs.streams()
    return [
        installs.java(), "-cp", f"{home / 'classes'}:{home}/*", "Clicks", work.brokers, SOURCE,
        work.target, str(work.records), str(work.directory / "state"),
    ]  # fmt: skip


def bytewax(work: Work) -> list[str]:
    script = str(HERE / "peers" / "clicks_bytewax.py")
    return [str(installs.bytewax()), script, work.brokers, SOURCE, work.target]


ENGINES: dict[str, Callable[[Work], list[str]]] = {
    "penstock": penstock,
    "pyspark": pyspark,
    "pyspark-tuned": lambda work: pyspark(work, "--tuned"),
    "kafka-streams": kafka_streams,
    "bytewax": bytewax,
}


def once(
    name: str, numbers: Iterator[int], broker: Kafka, records: int, expected: Contents
) -> Cost:
    """Runs an engine until its last record and checks its output."""
    target = f"out-{name}-{next(numbers)}"
    clicks_data.create(broker.address, target)
    named = {"BROKERS": broker.address, "SOURCE": SOURCE, "TARGET": target}
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            work = Work(broker.address, target, records, Path(scratch))
            cost = measure(ENGINES[name](work), cwd=work.directory, env={**os.environ, **named})
        if (found := clicks_data.written(broker.address, target)) != expected:
            raise Failed(f"wrote {found} instead of {expected}")
    finally:
        clicks_data.delete(broker.address, target)
    return cost


def fill(broker: Kafka, records: int) -> Contents:
    free = shutil.disk_usage(broker.directory.path).free
    if free < records * BYTES_PER_RECORD:
        raise Failed(
            f"{records:,} records take {records * BYTES_PER_RECORD / 2**30:.1f} GB in "
            f"{broker.directory.path}, where {free / 2**30:.1f} GB are free; fewer --records do"
        )
    print(f"{records:,} clicks ...", file=sys.stderr)
    clicks_data.create(broker.address, SOURCE)
    return clicks_data.produce(broker.address, SOURCE, records)


def compare(records: int, engines: list[str], runs: int) -> dict[str, Any]:
    costs: dict[str, Cost] = {}
    skipped: dict[str, str] = {}
    with Kafka(heavy=True) as broker:
        expected = fill(broker, records)
        taken = sum(path.stat().st_size for path in broker.directory.path.rglob("*.log"))
        for name in engines:
            print(f"{name} ...", file=sys.stderr)
            numbers = count()
            try:
                costs[name] = best(runs, partial(once, name, numbers, broker, records, expected))
            except installs.Unavailable as why:
                skipped[name] = shorten(str(why.msg), 300)
            except Failed as failure:
                if name == "penstock":
                    raise
                skipped[name] = f"failed: {str(failure).strip().splitlines()[-1]}"
    return {
        "records": records,
        "results": expected.rows,
        "topic_mb": taken / 2**20,
        "runs": {
            name: {**asdict(cost), "rows_per_second": records / cost.wall}
            for name, cost in costs.items()
        },
        "skipped": skipped,
        "ratio_cpu": ratio(costs, "pyspark-tuned"),
        "ratio_cpu_kafka_streams": ratio(costs, "kafka-streams"),
        "spark_connector": (
            installs.connector_version(installs.spark_connector())
            if any(name.startswith("pyspark") for name in costs)
            else None
        ),
    }


def ratio(costs: dict[str, Cost], peer: str) -> float | None:
    """How many times Penstock's CPU seconds a peer takes."""
    if peer in costs and "penstock" in costs:
        return costs[peer].cpu / costs["penstock"].cpu
    return None


def table(result: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{result['records']:,} records to {result['results']:,}; "
        f"the topic takes {result['topic_mb']:,.0f} MB"
    )
    yield f"{'':14} {'rows/s':>10} {'seconds':>8} {'CPU s':>8} {'largest process':>16}"
    for name, run in result["runs"].items():
        yield (
            f"{name:14} {run['rows_per_second']:>10,.0f} {run['wall']:>8.1f} {run['cpu']:>8.1f} "
            f"{run['largest_mb']:>13,.0f} MB"
        )
    for name, why in result["skipped"].items():
        yield f"{name:14} left out: {why}"
    if result["ratio_cpu"]:
        yield f"PySpark, tuned, takes {result['ratio_cpu']:.2f} times Penstock's CPU seconds."
    if result["ratio_cpu_kafka_streams"]:
        yield (
            f"Kafka Streams takes {result['ratio_cpu_kafka_streams']:.2f} times Penstock's "
            "CPU seconds."
        )
    own, connector = version("pyspark"), result["spark_connector"]
    if connector not in (None, own):
        yield f"PySpark {own} ran with the Kafka connector of {connector}: its own cannot be had."


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    options.add_engines(parser, ENGINES)
    parser.add_argument("--repeat", type=int, default=3, help="number of runs; the best one counts")
    given = parser.parse_args()
    try:
        result = compare(given.records, given.engines, given.repeat)
    except Failed as failure:
        raise SystemExit(f"bench: {failure}") from None
    print(json.dumps(result) if given.json else "\n".join(table(result)))


if __name__ == "__main__":
    main()
