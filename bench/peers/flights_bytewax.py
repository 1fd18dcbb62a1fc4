"""The bench `files` by hand in bytewax: Python row by row, on as many workers as cores."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.connectors.files import DirSource
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

NUMBERS = {"flight": 10, "dep_delay": 5, "distance": 15}
WORDS = {"carrier": 9, "tailnum": 11, "origin": 12, "dest": 13, "time_hour": 18}
START = datetime(2013, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)

Flight = dict[str, Any]


def of_csv(line: str) -> Flight | None:
    [fields] = csv.reader([line])
    if fields[0] == "year":
        return None
    flight: Flight = {name: fields[place] for name, place in WORDS.items()}
    for name, place in NUMBERS.items():
        flight[name] = None if fields[place] == "NA" else int(fields[place])
    return flight


def of_json(line: str) -> Flight | None:
    flight = json.loads(line)
    return {name: flight[name] for name in (*WORDS, *NUMBERS)}


def is_late(flight: Flight) -> bool:
    delay = flight["dep_delay"]
    return delay is not None and delay > 60


def hour_of(flight: Flight) -> datetime:
    return datetime.fromisoformat(flight["time_hour"])


class JsonLines(StatelessSinkPartition[Flight]):
    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def write_batch(self, items: list[Flight]) -> None:
        self._file.writelines(json.dumps(item) + "\n" for item in items)

    def close(self) -> None:
        self._file.close()


class Parquet(StatelessSinkPartition[Flight]):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[Flight] = []

    def write_batch(self, items: list[Flight]) -> None:
        self._rows += items

    def close(self) -> None:
        if self._rows:
            pq.write_table(pa.Table.from_pylist(self._rows), self._path)


class Files(DynamicSink[Flight]):
    """A file for each worker."""

    def __init__(
        self, target: Path, extension: str, make: Callable[[Path], StatelessSinkPartition[Flight]]
    ) -> None:
        self._target, self._extension, self._make = target, extension, make
        target.mkdir(parents=True)

    def build(
        self, step_id: str, worker_index: int, worker_count: int
    ) -> StatelessSinkPartition[Flight]:
        return self._make(self._target / f"part-{worker_index}.{self._extension}")


def main(source: Path, target: Path) -> None:
    parse = of_csv if next(source.iterdir()).suffix == ".csv" else of_json
    flow = Dataflow("flights")
    lines = op.input("read", flow, DirSource(source, batch_size=1000))
    late = op.filter("late", op.filter_map("parse", lines, parse), is_late)
    op.output("write_late", late, Files(target / "late", "json", JsonLines))
    hourly = win.fold_window(
        "hourly",
        op.key_on("carrier", late, lambda flight: flight["carrier"]),
        # The files of several months are read side by side: every row must be waited for.
        win.EventClock(hour_of, wait_for_system_duration=timedelta(days=36500)),
        win.TumblingWindower(length=HOUR, align_to=START),
        list[int],
        lambda delays, flight: [*delays, flight["dep_delay"]],
        lambda left, right: left + right,
    )
    rows = op.map("hour", hourly.down, summed)
    op.output("write_hourly", rows, Files(target / "hourly", "parquet", Parquet))
    cluster_main(flow, [], 0, worker_count_per_proc=os.cpu_count() or 1)


def summed(item: tuple[str, tuple[int, Iterable[int]]]) -> Flight:
    carrier, (window, each) = item
    delays = list(each)
    return {
        "hour": START + window * HOUR,
        "carrier": carrier,
        "late": len(delays),
        "mean_delay": sum(delays) / len(delays),
        "worst_delay": max(delays),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
