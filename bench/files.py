"""A year of flights from files to files: parse, filter, aggregate by hour, write.

    python bench/files.py [--json] [--form csv|jsonl] [--years N] [--runs N] [--peers NAME ...]

Penstock runs a pipeline file; the peers are in bench/peers, written by hand. All read the same
files, write the flights that left more than an hour late as JSON lines, and how many there were by
hour and airline as Parquet. Penstock and PySpark do it as streams, three files to a batch, with
event-time windows; polars and bytewax in one go. Each figure is the best of the runs, and a run is
a whole process: starting Python and Java and Spark is in it, which `--years 10` makes less of.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import flights_data
import polars as pl
from measure import Cost, Failed, best, measure

FILES_PER_BATCH = 3
PEERS = Path(__file__).parent / "peers"

PIPELINE = """\
name: late-flights
sources:
  flights:
    type: files
    path: {source}
    order: name
    max_files: {files_per_batch}
    format: {format}
    schema: |
      carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
      dep_delay INT, distance INT, time_hour TIMESTAMP
    watermark: {{column: time_hour, delay: 1 hour}}
transforms:
  late: {{type: sql, sql: SELECT * FROM flights WHERE dep_delay > 60}}
  hourly:
    type: sql
    sql: |
      SELECT window.start AS hour, carrier,
             count(*) AS late, avg(dep_delay) AS mean_delay, max(dep_delay) AS worst_delay
      FROM late GROUP BY window(time_hour, '1 hour'), carrier
sinks:
  late_rows: {{type: files, from: late, path: late, format: json}}
  hourly_rows: {{type: files, from: hourly, path: hourly, format: parquet}}
"""

Command = Callable[[Path, Path], list[str]]


def penstock(source: Path, target: Path) -> list[str]:
    """The command and its pipeline file."""
    form = "{type: csv, nulls: [NA]}" if source.name.startswith("csv") else "json"
    text = PIPELINE.format(
        source=json.dumps(f"{source}/*"), files_per_batch=FILES_PER_BATCH, format=form
    )
    target.mkdir()
    (target / "pipeline.yaml").write_text(text)
    return [sys.executable, "-m", "penstock", "run", str(target / "pipeline.yaml")]


def peer(name: str, *arguments: object) -> Command:
    script = str(PEERS / f"flights_{name}.py")
    return lambda source, target: [
        sys.executable, script, str(source), str(target), *map(str, arguments),
    ]  # fmt: skip


COMMANDS: dict[str, Command] = {
    "penstock": penstock,
    "pyspark": peer("pyspark", FILES_PER_BATCH),
    "polars": peer("polars"),
    "bytewax": peer("bytewax"),
}


def missing(name: str) -> str | None:
    """Returns the reason why a peer cannot run."""
    if name == "pyspark" and shutil.which("java") is None:
        return "Spark's own launcher needs a java on the PATH"
    if name == "bytewax" and find_spec("bytewax") is None:
        return "pip install bytewax"
    return None


def several_years(form: Any, years: int) -> Path:
    """The directory of the files of 2013, or of that year repeated under later dates."""
    of_2013 = flights_data.year(form)
    directory = of_2013[0].parent
    if years == 1:
        return directory
    longer = directory.with_name(f"{form}-{years}-years")
    if not longer.exists():
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            written = Path(scratch, longer.name)
            written.mkdir()
            for year in range(2013, 2013 + years):
                for path in of_2013:
                    text = re.sub(r"\b201[34]-", _later(year - 2013), path.read_text())
                    (written / path.name.replace("2013", str(year))).write_text(text)
            written.rename(longer)
    return longer


def _later(years: int) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{int(match[0][:-1]) + years}-"


def once(command: Command, source: Path, check: Callable[[Path], None]) -> Cost:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        target = Path(scratch, "run")
        cost = measure(command(source, target), cwd=Path(scratch))
        check(target)
        return cost


def same_rows(source: Path) -> Callable[[Path], None]:
    """Checks that a run wrote every late flight once."""
    pattern = re.compile(rb'"dep_delay":(\d+)' if "jsonl" in source.name else rb"^(?:\d+,){5}(\d+)")
    expected = sum(
        int(delay) > 60
        for path in source.iterdir()
        for line in path.read_bytes().splitlines()
        for delay in pattern.findall(line)
    )

    def check(target: Path) -> None:
        lines = sum(
            path.read_bytes().count(b"\n") for path in (target / "late").glob("[!.]*.json*")
        )
        counted = pl.read_parquet(target / "hourly" / "*.parquet").get_column("late").sum()
        # PySpark's availableNow leaves the last windows open: the last hours are not written.
        if lines != expected or not 0.999 * expected <= counted <= expected:
            raise Failed(f"wrote {lines} and counted {counted} late flights of {expected}")

    return check


def compare(form: str, years: int, runs: int, peers: list[str]) -> dict[str, Any]:
    source = several_years(form, years)
    rows = sum(path.read_bytes().count(b"\n") for path in source.iterdir())
    rows -= len(list(source.iterdir())) if form == "csv" else 0
    check = same_rows(source)
    costs: dict[str, Cost] = {}
    skipped: dict[str, str] = {}
    for name in peers:
        if why := missing(name):
            skipped[name] = why
            continue
        print(f"{name} ...", file=sys.stderr)
        try:
            costs[name] = best(runs, partial(once, COMMANDS[name], source, check))
        except Failed as failure:
            if name == "penstock":
                raise
            skipped[name] = f"failed: {str(failure).strip().splitlines()[-1]}"
    runs_by_engine = {
        name: {**asdict(cost), "rows_per_second": rows / cost.wall} for name, cost in costs.items()
    }
    both = "penstock" in costs and "pyspark" in costs
    return {
        "form": form,
        "rows": rows,
        "runs": runs_by_engine,
        "skipped": skipped,
        "ratio_cpu": costs["pyspark"].cpu / costs["penstock"].cpu if both else None,
        "ratio_rows": costs["pyspark"].wall / costs["penstock"].wall if both else None,
    }


def table(result: dict[str, Any]) -> Iterator[str]:
    yield f"{result['rows']:,} flights as {result['form']}"
    yield f"{'':10} {'rows/s':>10} {'seconds':>8} {'CPU s':>8} {'largest process':>16}"
    for name, run in result["runs"].items():
        yield (
            f"{name:10} {run['rows_per_second']:>10,.0f} {run['wall']:>8.1f} {run['cpu']:>8.1f} "
            f"{run['largest_mb']:>13,.0f} MB"
        )
    for name, why in result["skipped"].items():
        yield f"{name:10} left out: {why}"
    if result["ratio_cpu"]:
        yield (
            f"PySpark takes {result['ratio_cpu']:.2f} times Penstock's CPU seconds; "
            f"Penstock does {result['ratio_rows']:.2f} times PySpark's rows a second."
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--form", choices=("csv", "jsonl"), default="csv")
    parser.add_argument("--years", type=int, default=1, help="repeat the year under later dates")
    parser.add_argument("--runs", type=int, default=3, help="number of runs; the best one counts")
    parser.add_argument("--peers", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    given = parser.parse_args()
    try:
        result = compare(given.form, given.years, given.runs, given.peers)
    except Failed as failure:
        raise SystemExit(f"bench: {failure}") from None
    print(json.dumps(result) if given.json else "\n".join(table(result)))


if __name__ == "__main__":
    main()
