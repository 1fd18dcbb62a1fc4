"""A pipeline that counts the rows of each minute of a source with partitions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import app
from penstock.runtime.handle import RunHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
PIPELINE = """\
name: clicks
sources:
  clicks: {source}
transforms:
  counts:
    type: sql
    sql: SELECT window.start AS at, count(*) AS n FROM clicks GROUP BY window(at, '1 minute')
sinks:
  out: {{type: files, from: counts, path: out, format: json}}
{more}runtime: {{state: state}}
"""
COPY = "  copy: {type: files, from: counts, path: copy, format: json}\n"


class MinuteCounts:
    """A pipeline that counts the rows of each minute.

    `source` has the options of its source, whose rows have the column `at`. `write` writes payloads
    to a partition by its number.
    """

    def __init__(
        self,
        source: Mapping[str, Any],
        write: Callable[[int, Sequence[bytes]], None],
        spark: SparkSession,
        root: Path,
    ) -> None:
        self._source, self._write_payloads = source, write
        self._spark, self._root = spark, root

    def put(self, partition: int, minutes: Sequence[int]) -> None:
        """Writes a row in each of these minutes to a partition."""
        times = [START + timedelta(minutes=minute) for minute in minutes]
        rows = [json.dumps({"at": time.isoformat()}).encode() for time in times]
        self._write_payloads(partition, rows)

    def start(self, max_records: int = 1000, idle: str = "1 hour") -> RunHandle:
        """Starts the pipeline."""
        return app.start(self._write(max_records, idle), spark=self._spark.newSession())

    def catch_up(self, max_records: int) -> int:
        """Runs the pipeline until it has caught up. Returns the number of late rows."""
        file = self._write(max_records, "1 hour")
        options = app.RunOptions(until="caught_up")
        handle = app.start(file, spark=self._spark.newSession(), options=options)
        outcome = handle.wait(300)
        assert outcome is not None and outcome.errors == {}
        return int(handle.metrics.snapshot()["late_rows"])

    def backfill(self) -> None:
        """Writes the counts so far to another sink."""
        options = app.RunOptions(until="caught_up", backfill="copy")
        outcome = app.run(
            self._write(1000, "1 hour", COPY), spark=self._spark.newSession(), options=options
        )
        assert outcome.errors == {}

    def counts(self, sink: str = "out") -> dict[int, int]:
        """Returns the counts in a sink by minute; each minute is there once."""
        files = self._root.glob(f"{sink}/*.jsonl")
        rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        counts = {datetime.fromisoformat(row["at"]): row["n"] for row in rows}
        assert len(counts) == len(rows)
        return {int((at - START).total_seconds()) // 60: n for at, n in counts.items()}

    def check_partition_behind(self, size: int, max_records: int) -> None:
        """Checks that no row of a partition that is behind another one is late, with a restart."""
        ahead, behind = list(range(size)), [n // 10 for n in range(size * 2)]
        self.put(0, ahead)
        self.put(1, behind[:size])
        assert self.catch_up(max_records) == 0
        self.put(1, [*behind[size:], 100])
        self.put(0, [100])
        assert self.catch_up(max_records) == 0
        assert self.counts() == Counter(ahead + behind)

    def _write(self, max_records: int, idle: str, more: str = "") -> Path:
        file = self._root / "pipeline.yaml"
        source = {
            **self._source,
            "max_records": max_records,
            "schema": "at TIMESTAMP",
            "watermark": {"column": "at", "idle": idle},
        }
        file.write_text(PIPELINE.format(source=json.dumps(source), more=more))
        return file
