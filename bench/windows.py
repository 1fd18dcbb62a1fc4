"""Windows of event time from topic to topic, beside PySpark, Flink SQL and Kafka Streams.

    ./dev bench windows [--json] [--rows N] [--engines NAME,NAME] [--repeat N]

Each click counts in the window of 10 seconds of its user. There are 900,000 users: most windows
have one row, so state and output are as large as the input. PySpark uses Spark's own Kafka
connector and RocksDB; Flink is PyFlink with SQL, its state on the heap, parallelism 2; Kafka
Streams is Java with RocksDB and two threads. The topic is partitioned by user, as Kafka Streams
needs it to group without another topic; the others divide the rows themselves. Penstock also runs
`tumble`, windows of 10 seconds by country, and `hop`, windows of 60 seconds by 1 second by
country: each row belongs to 60 windows. A run is a whole process with its start. The rows of
every run are compared with those that polars computes.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from textwrap import shorten
from typing import Any

import clicks_data
import installs
import options
import polars as pl
from clicks_data import CHUNK, PARTITIONS, Contents
from confluent_kafka import Producer
from measure import Cost, Failed, best, measure

from servers.kafka import Kafka

HERE = Path(__file__).resolve().parent
SOURCE = "clicks"
RESULT = {"start": pl.Int64, "key": pl.String, "clicks": pl.Int64, "price": pl.Float64}
AFTER = 86_400
"""Seconds from the last click to those that close its windows."""


@dataclass(frozen=True)
class Windows:
    """Windows of a key, with their width and slide in seconds."""

    key: str
    width: int
    slide: int

    def sql(self) -> str:
        return f"'{self.width} seconds', '{self.slide} seconds'"

    def of(self, clicks: pl.DataFrame) -> pl.DataFrame:
        """Computes the windows of clicks."""
        second = pl.col("at").dt.epoch("s")
        panes = clicks.group_by(second // self.slide * self.slide, pl.col(self.key).alias("key"))
        starts = [pl.col("at") - back for back in range(0, self.width, self.slide)]
        return (
            panes.agg(pl.len().alias("clicks"), pl.col("price").sum())
            .with_columns(pl.concat_list(starts).alias("start"))
            .explode("start")
            .group_by("start", "key")
            .agg(pl.col("clicks", "price").sum())
        )


@dataclass(frozen=True)
class Work:
    """One run: how many clicks to read, where to write, and a directory for the engine's files."""

    brokers: str
    target: str
    rows: int
    directory: Path


@dataclass(frozen=True)
class Engine:
    """A program and the windows that it computes."""

    command: Callable[[Work], list[str]]
    windows: Windows


def penstock(work: Work) -> list[str]:
    pipeline = shutil.copy(HERE / "windows.yaml", work.directory)
    return [sys.executable, "-m", "penstock", "run", "--until-caught-up", str(pipeline)]


def pyspark(work: Work) -> list[str]:
    installs.java()
    return [
        sys.executable, str(HERE / "peers" / "windows_pyspark.py"), work.brokers, SOURCE,
        work.target, str(installs.spark_connector()), str(work.directory / "checkpoint"),
    ]  # fmt: skip


def flink(work: Work) -> list[str]:
    installs.java()
    home = installs.flink()
    script = str(HERE / "peers" / "windows_flink.py")
    python = str(home / "venv" / "bin" / "python")
    return [python, script, work.brokers, SOURCE, work.target, str(home)]


def kafka_streams(work: Work) -> list[str]:
    home, records = installs.streams(), work.rows + PARTITIONS
    return [
        installs.java(), "-cp", f"{home / 'classes'}:{home}/*", "Windows", work.brokers, SOURCE,
        work.target, str(records), str(work.directory / "state"),
    ]  # fmt: skip


USERS = Windows("user", 10, 10)
ENGINES = {
    "penstock": Engine(penstock, USERS),
    "pyspark": Engine(pyspark, USERS),
    "flink": Engine(flink, USERS),
    "kafka-streams": Engine(kafka_streams, USERS),
    "tumble": Engine(penstock, Windows("country", 10, 10)),
    "hop": Engine(penstock, Windows("country", 60, 1)),
}
TITLES = {
    "pyspark": "PySpark, tuned,", "flink": "Flink", "kafka_streams": "Kafka Streams",
}  # fmt: skip


def fill(broker: Kafka, rows: int) -> int:
    """Fills the topic. Returns the time from which windows do not count."""
    clicks_data.create(broker.address, SOURCE)
    clicks_data.produce(broker.address, SOURCE, rows, by_user=True)
    last = clicks_data.clicks(rows - 1, 1)["at"][0]
    end = int(last.timestamp()) + AFTER
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    at = pl.select(pl.from_epoch(pl.lit(end), "s").dt.strftime("%Y-%m-%dT%H:%M:%S.000Z")).item()
    for place in range(PARTITIONS):
        click = {"user": "last", "country": "last", "price": 0, "at": at}
        producer.produce(SOURCE, json.dumps(click), "last", partition=place)
    if producer.flush(clicks_data.TIMEOUT_SECONDS):
        raise Failed("the last clicks could not be sent")
    return end - AFTER // 2


def expected(windows: Windows, rows: int) -> Contents:
    parts = (
        clicks_data.clicks(first, min(CHUNK, rows - first)).select("at", windows.key, "price")
        for first in range(0, rows, CHUNK)
    )
    return contents(windows.of(pl.concat(parts)))


def written(brokers: str, topic: str, end: int) -> Contents:
    found = Contents()
    for values in clicks_data.values(brokers, topic):
        rows = pl.read_ndjson(io.BytesIO(b"\n".join(values)), schema=RESULT)
        found += contents(rows.filter(pl.col("start") < end))
    return found


def contents(rows: pl.DataFrame) -> Contents:
    cents = (pl.col("price") * 100).round().cast(pl.Int64)
    clicks = pl.col("clicks").cast(pl.Int64)
    return clicks_data.contents(rows.select("start", "key", clicks, cents))


def once(
    name: str, numbers: Iterator[int], broker: Kafka, rows: int, reference: Contents, end: int
) -> Cost:
    """Runs an engine until its last row and checks its output."""
    engine, target = ENGINES[name], f"out-{name}-{next(numbers)}"
    clicks_data.create(broker.address, target)
    named = {
        "BROKERS": broker.address, "SOURCE": SOURCE, "TARGET": target,
        "KEY": engine.windows.key, "WINDOW": engine.windows.sql(),
    }  # fmt: skip
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            work = Work(broker.address, target, rows, Path(scratch))
            cost = measure(engine.command(work), cwd=work.directory, env={**os.environ, **named})
        if (found := written(broker.address, target, end)) != reference:
            raise Failed(f"{name} wrote {found} instead of {reference}")
    finally:
        clicks_data.delete(broker.address, target)
    return cost


def compare(rows: int, engines: list[str], runs: int) -> dict[str, Any]:
    costs: dict[str, Cost] = {}
    skipped: dict[str, str] = {}
    results: dict[str, int] = {}
    with Kafka(heavy=True) as broker:
        print(f"{rows:,} clicks ...", file=sys.stderr)
        end = fill(broker, rows)
        for name in engines:
            print(f"{name} ...", file=sys.stderr)
            reference = expected(ENGINES[name].windows, rows)
            try:
                run = partial(once, name, count(), broker, rows, reference, end)
                costs[name], results[name] = best(runs, run), reference.rows
            except installs.Unavailable as why:
                skipped[name] = shorten(str(why.msg), 300)
            except Failed as failure:
                if ENGINES[name].command is penstock:
                    raise
                skipped[name] = f"failed: {str(failure).strip().splitlines()[-1]}"
    return {
        "rows": rows,
        "runs": {
            name: {
                **asdict(cost), "rows_per_second": rows / cost.wall, "results": results[name],
            }
            for name, cost in costs.items()
        },
        "skipped": skipped,
        "ratio_cpu_pyspark": ratio(costs, "pyspark", "penstock"),
        "ratio_cpu_flink": ratio(costs, "flink", "penstock"),
        "ratio_cpu_kafka_streams": ratio(costs, "kafka-streams", "penstock"),
        "ratio_cpu_hop": ratio(costs, "hop", "tumble"),
    }  # fmt: skip


def ratio(costs: dict[str, Cost], one: str, other: str) -> float | None:
    """Returns how many times the CPU seconds of `other` a run takes."""
    if one in costs and other in costs:
        return costs[one].cpu / costs[other].cpu
    return None


def table(result: dict[str, Any]) -> Iterator[str]:
    yield f"{result['rows']:,} rows"
    heads = f"{'results':>12} {'rows/s':>10} {'seconds':>8} {'CPU s':>8} {'largest process':>16}"
    yield f"{'':14} {heads}"
    for name, run in result["runs"].items():
        yield (
            f"{name:14} {run['results']:>12,} {run['rows_per_second']:>10,.0f} "
            f"{run['wall']:>8.1f} {run['cpu']:>8.1f} {run['largest_mb']:>13,.0f} MB"
        )
    for name, why in result["skipped"].items():
        yield f"{name:14} left out: {why}"
    for peer, title in TITLES.items():
        if result[f"ratio_cpu_{peer}"]:
            yield f"{title} takes {result[f'ratio_cpu_{peer}']:.2f} times Penstock's CPU seconds."
    if result["ratio_cpu_hop"]:
        yield f"The hop takes {result['ratio_cpu_hop']:.2f} times the CPU seconds of the tumble."


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    options.add_engines(parser, ENGINES)
    parser.add_argument("--repeat", type=int, default=1, help="number of runs; the best one counts")
    given = parser.parse_args()
    try:
        result = compare(given.rows, given.engines, given.repeat)
    except Failed as failure:
        raise SystemExit(f"bench: {failure}") from None
    print(json.dumps(result) if given.json else "\n".join(table(result)))


if __name__ == "__main__":
    main()
