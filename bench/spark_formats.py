"""The Spark source and sink beside Spark alone, which copies the same rows in the same session.

    ./dev bench spark_formats [--json] [--rows N] [--runs N] [--provider NAME]

Each way copies the files of a format, ORC by default, into files of the same format. `spark` is a
read and a write, without a copy in between: it cannot continue with the same rows after a crash.
`spark, stored` first stores the rows as Parquet, as the source does, and then reads and writes
them. `penstock` is a whole run of a pipeline with the source and the sink: it also plans the
pipeline, and its rows pass through the Python processes of tasks. Each figure is the best of the
runs, after a run that is not counted; each run has a directory of its own. CPU seconds are those of
Java and all Python processes. `slower` is the time for one of `spark`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import options

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "id", "concat('name of ', id) AS name", "id / 7 AS price", "int(id) AS count",
    "timestamp_micros(id * 1234567) AS changed",
)  # fmt: skip
PIPELINE = """\
name: copies
sources:
  rows: {{type: spark, provider: {provider}, path: {input}}}
sinks:
  copy: {{type: spark, from: rows, provider: {provider}, path: out}}
"""
Copy = Callable[[Path], None]
"""Copies the rows into `out` below a directory."""


@dataclass(frozen=True)
class Cost:
    """Seconds and CPU seconds of a copy."""

    seconds: float
    cpu: float


def copies(spark: SparkSession, provider: str, source: Path) -> Mapping[str, Copy]:
    """Returns the ways to copy the rows of a directory."""
    from command_line import CommandLine

    command = CommandLine(spark)

    def copy(directory: Path) -> None:
        rows = spark.read.format(provider).load(str(source))
        rows.write.format(provider).mode("append").save(str(directory / "out"))

    def copy_stored(directory: Path) -> None:
        stored = str(directory / "rows")
        spark.read.format(provider).load(str(source)).write.parquet(stored)
        rows = spark.read.parquet(stored)
        rows.write.format(provider).mode("append").save(str(directory / "out"))

    def run(directory: Path) -> None:
        text = PIPELINE.format(provider=provider, input=source)
        (directory / "copies.yaml").write_text(text)
        done = command(directory, "run", "copies.yaml")
        if done.returncode:
            raise SystemExit(f"bench: the run failed:\n{done.stderr}")

    return {"spark": copy, "spark, stored": copy_stored, "penstock": run}


def measure(rows: int, runs: int, provider: str) -> dict[str, Cost]:
    """Returns the costs of each way to copy rows."""
    from costs import Usage
    from penstock.engine.spark_session.session import session
    from penstock.engine.spark_session.settings import SessionSettings

    usage, found = Usage(), {}
    settings = SessionSettings(master="local[2]", length="minutes")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch,
        session(settings) as spark,
    ):
        source = Path(scratch, "source")
        spark.range(rows).selectExpr(*COLUMNS).write.format(provider).save(str(source))
        for number in range(-1, runs):
            for name, copy in copies(spark, provider, source).items():
                directory = Path(scratch, f"{name} {number}")
                directory.mkdir()
                usage.since_last()
                began = time.perf_counter()
                copy(directory)
                seconds = time.perf_counter() - began
                cost = Cost(seconds, sum(usage.since_last().values()))
                assert spark.read.format(provider).load(str(directory / "out")).count() == rows
                if number >= 0:
                    found[name] = min(found.get(name, cost), cost, key=lambda each: each.seconds)
    return found


def table(rows: int, found: Mapping[str, Cost]) -> Iterator[str]:
    """Yields the lines of the output."""
    yield f"{'':16}{'rows/s':>12}{'seconds':>9}{'slower':>8}{'CPU s':>8}"
    for name, cost in found.items():
        slower = cost.seconds / found["spark"].seconds
        yield (
            f"{name:16}{rows / cost.seconds:>12,.0f}{cost.seconds:>9.2f}{slower:>8.2f}"
            f"{cost.cpu:>8.2f}"
        )


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--provider", default="orc", help="a format of files")
    given = parser.parse_args()
    found = measure(given.rows, given.runs, given.provider)
    if given.json:
        print(json.dumps({name: asdict(cost) for name, cost in found.items()}))
    else:
        print(*table(given.rows, found), sep="\n")


if __name__ == "__main__":
    main()
