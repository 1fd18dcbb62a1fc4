"""Time to the first rows of plain PySpark and Penstock, from a cold shell.

    python bench/startup.py [--json] [--rounds 3] [--cases PIPELINE ...]

Each figure is the best of the rounds, each round a fresh process. The query reads a Python data
source and collects its rows in `foreachBatch`. A first run of Penstock, with an
empty cache, is shown apart from the later ones that have Java's class cache. Then `penstock test`
runs the cases of pipelines, by default those of the tests, in one session.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 10
FURTHER = 5
CACHE_TIMEOUT = 90.0
ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PIPELINES = ROOT / "tests" / "golden" / "pipelines"
LABELS = {
    "session": "session is up",
    "first": "first rows",
    "further": "each further query",
    "all": "process is over",
}


def measure(kind: str, began: float) -> dict[str, float]:
    """In the process that is measured; `began` is when its parent started it."""
    spark = plain_session() if kind == "plain" else penstock_session()
    times = {"session": time.time() - began}
    register(spark)
    times["first"] = run_query(spark) - began
    further = []
    for _ in range(FURTHER):
        asked = time.time()
        further.append(run_query(spark) - asked)
    times["further"] = min(further)
    spark.stop() if kind == "plain" else close_penstock()
    return times


def plain_session() -> SparkSession:
    from pyspark.sql import SparkSession

    return SparkSession.builder.master("local[2]").getOrCreate()


def penstock_session() -> SparkSession:
    from penstock.engine.spark_session.session import create
    from penstock.engine.spark_session.settings import SessionSettings

    return create(SessionSettings(master="local[2]"))


def close_penstock() -> None:
    from penstock.engine.spark_session.session import close

    close()


def register(spark: SparkSession) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:
            return {"row": 0}

        def latestOffset(self, *given: Any) -> dict[str, int]:
            return {"row": ROWS}

        def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
            return [InputPartition((start["row"], end["row"]))]

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            return ((row,) for row in range(*partition.value))

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "row INT"

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return Reader()

    spark.dataSource.register(Source)


def run_query(spark: SparkSession) -> float:
    """The time at which the rows were there."""
    arrived: list[float] = []

    def collect(batch: Any, number: int) -> None:
        if batch.collect():
            arrived.append(time.time())

    reader = spark.readStream.format("numbers")
    if (
        spark.conf.get("spark.sql.streaming.queryEvolution.enableSourceEvolution", "false")
        == "true"
    ):
        reader = reader.name("numbers")
    query = reader.load().writeStream.foreachBatch(collect).trigger(availableNow=True).start()
    query.awaitTermination()
    return arrived[0]


def plain_java() -> tuple[bool, str]:
    """Whether plain PySpark finds a Java that it can start, and what to say about it."""
    named = os.environ.get("JAVA_HOME")
    if named and Path(named, "bin", "java").exists():
        return True, "PySpark on the Java of JAVA_HOME, Penstock on the bundled one"
    if shutil.which("java"):
        return True, "PySpark on the Java of PATH, Penstock on the bundled one"
    return False, (
        "no plain PySpark: there is no system Java, and on the bundled one Spark's own launcher "
        "fails, since it asks for a module (jdk.incubator.vector) that this runtime lacks"
    )


def in_fresh_process(kind: str) -> dict[str, float]:
    environment = dict(os.environ)
    if kind == "plain":
        environment["PYSPARK_PYTHON"] = sys.executable
    else:
        path = [str(SOURCE), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    began = time.time()
    done = subprocess.run(
        [sys.executable, __file__, "--measure", kind, str(began)],
        capture_output=True,
        env=environment,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return {**json.loads(done.stdout.splitlines()[-1]), "all": time.time() - began}


def best(kind: str, rounds: int) -> dict[str, float]:
    runs = [in_fresh_process(kind) for _ in range(rounds)]
    return {name: min(run[name] for run in runs) for name in LABELS}


def first_ever(cache: str) -> dict[str, float]:
    """A run with an empty cache, and the wait until the class cache is made from it."""
    os.environ["PENSTOCK_CACHE"] = cache
    times = in_fresh_process("ours")
    deadline = time.monotonic() + CACHE_TIMEOUT
    while not list(Path(cache).glob("classes/*/seal.json")) and time.monotonic() < deadline:
        time.sleep(0.2)
    return times


def test_cases(pipelines: Sequence[Path]) -> dict[str, float]:
    """The time of each case in `penstock test`, and of the process."""
    began = time.time()
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "test", "--json", *map(str, pipelines)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds = [case["seconds"] for case in json.loads(done.stdout)["cases"]]
    return {
        "cases": len(seconds),
        "median": statistics.median(seconds),
        "under_half_a_second": sum(each < 0.5 for each in seconds),
        "all": time.time() - began,
    }


def table(report: dict[str, Any]) -> str:
    names = [name for name in ("plain", "first_ever", "ours") if name in report]
    heads = {"plain": "PySpark", "first_ever": "Penstock, first ever", "ours": "Penstock"}
    lines = [" " * 22 + "".join(f"{heads[name]:>22}" for name in names)]
    for key, label in LABELS.items():
        lines.append(f"{label:<22}" + "".join(f"{report[name][key]:>20.2f} s" for name in names))
    cases = report["cases"]
    lines.append(
        f"penstock test: {cases['cases']} cases in {cases['all']:.1f} s with the process; "
        f"the median case {cases['median']:.2f} s, {cases['under_half_a_second']} under 0.5 s"
    )
    return "\n".join([*lines, "", report["java"]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--cases",
        type=Path,
        nargs="+",
        default=sorted(set(PIPELINES.glob("*.yaml")) - set(PIPELINES.glob("*.test.yaml"))),
        help="pipelines with test cases",
    )
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure[0], float(given.measure[1]))))
        return
    if find_spec("pyspark") is None:
        parser.exit(2, "PySpark is not installed here\n")
    usable, said = plain_java()
    report: dict[str, Any] = {"java": said}
    if usable:
        report["plain"] = best("plain", given.rounds)
    with tempfile.TemporaryDirectory(prefix="bench-") as cache:
        report["first_ever"] = first_ever(cache)
        report["ours"] = best("ours", given.rounds)
        report["cases"] = test_cases(given.cases)
    print(json.dumps(report, indent=2) if given.json else table(report))


if __name__ == "__main__":
    main()
