"""Sliding windows by panes: the same rows as those of a computation of each row and window."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from penstock import app
from penstock.engine import start
from penstock.engine.windows.panes import by_panes
from penstock.runtime.dead_letters.store import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DELAY, WIDTH, SLIDE = 5, 30, 4
QUERY = f"""
    SELECT unix_seconds(window.start) AS start, upper(user) AS user, count(*) AS rows,
           count(price) AS prices, 1 + sum(price) AS total, sum(size) FILTER (WHERE price > 0) AS s,
           avg(size) AS mean, min(price) AS low, max(user) AS top, bool_or(size > 8) AS large,
           CAST(sum(cost) AS DOUBLE) AS costs, size(collect_set(size)) AS sizes,
           bit_or(size) AS bits
    FROM clicks WHERE size IS NULL OR size <> 3
    GROUP BY window(at, '{WIDTH} seconds', '{SLIDE} seconds'), upper(user) HAVING count(*) > 1
"""
PIPELINE = f"""\
runtime: {{state: state}}
sources:
  clicks:
    type: files
    path: in/*.jsonl
    max_files: 1
    schema: at TIMESTAMP, user STRING, price DOUBLE, size INT, cost DECIMAL(9, 2)
    watermark: {{column: at, delay: {DELAY} seconds}}
    late: dead_letter
transforms:
  counts:
    type: sql
    sql: |{QUERY.replace(chr(10), chr(10) + "  ")}
sinks:
  out: {{type: files, path: out, format: json, from: counts}}
"""


def clicks(number: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yields rows of 40 seconds, some of them early or late."""
    for _ in range(120):
        after = 40 * number + rng.choice([0, 0, 0, 20, -25, -45]) + rng.random() * 40
        yield {
            "at": rng.choice([BEGIN + timedelta(seconds=after)] * 30 + [None]),
            "user": rng.choice(["ann", "bob", None]),
            "price": rng.choice([0.5, 1.25, -2.0, None]),
            "size": rng.choice([1, 2, 3, 8, 17, None]),
            "cost": rng.choice([0.25, 7.5]),
        }


class Clicks:
    """Files of clicks, one for each batch, and the lateness of their rows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "in"
        self.directory.mkdir()
        self.rng = random.Random(5)
        self.rows: list[dict[str, Any]] = []
        self.files, self.latest = 0, 0.0
        self.watermarks = [0.0, 0.0]

    def add(self) -> None:
        """Adds the file of the next batch. Its rows are late by the watermark before the last."""
        rows = list(clicks(self.files, self.rng))
        text = "\n".join(json.dumps(row, default=datetime.isoformat) for row in rows)
        path = self.directory / f"{self.files}.jsonl"
        path.write_text(text + "\n")
        os.utime(path, (1_700_000_000 + self.files,) * 2)
        self.files += 1
        self.rows += [{**row, "late": self.watermarks[-2]} for row in rows]
        self.latest = max([self.latest, *(row["at"].timestamp() for row in rows if row["at"])])
        self.watermarks.append(self.latest - DELAY)

    def close(self) -> None:
        """Counts the batch without rows at the end of a run."""
        self.watermarks.append(self.watermarks[-1])

    def count_late(self) -> int:
        """Counts the rows whose windows are all over."""
        times = [(row["at"].timestamp(), row) for row in self.rows if row["at"]]
        return sum(
            row["size"] != 3 and time // SLIDE * SLIDE + WIDTH <= row["late"] for time, row in times
        )

    def expected(self, *, late: bool = True) -> list[dict[str, Any]]:
        """Computes the windows from each row in each of its windows."""
        size, price = pl.col("size"), pl.col("price")
        at = pl.col("at").dt.epoch("us") / 1_000_000
        schema = {"at": pl.Datetime("us", "UTC"), "user": pl.String, "price": pl.Float64,
                  "size": pl.Int64, "cost": pl.Float64, "late": pl.Float64}  # fmt: skip
        starts = pl.concat_list((at // SLIDE - back) * SLIDE for back in range(-(-WIDTH // SLIDE)))
        is_open = pl.col("start") + WIDTH > pl.col("late")
        return (
            pl.DataFrame(self.rows, schema=schema)
            .filter(size.is_null() | (size != 3), pl.col("at").is_not_null())
            .with_columns(start=starts, time=at)
            .explode("start")
            .filter(pl.col("time") < pl.col("start") + WIDTH, is_open | (not late))
            .with_columns(pl.col("start").cast(pl.Int64), key=pl.col("user").str.to_uppercase())
            .group_by("start", "key")
            .agg(
                rows=pl.len(), prices=price.count(),
                total=pl.when(price.count() > 0).then(1 + price.sum()),
                s=pl.when((price.is_not_null() & size.is_not_null() & (price > 0)).any())
                .then(size.filter(price > 0).sum()),
                mean=size.mean(), low=price.min(), top=pl.col("user").max(),
                large=(size > 8).max(), costs=pl.col("cost").sum(),
                sizes=size.drop_nulls().n_unique(), bits=size.bitwise_or(),
            )
            .filter(pl.col("rows") > 1)
            .rename({"key": "user"})
            .sort("start", "user")
            .to_dicts()
        )  # fmt: skip


class Runs:
    def __init__(self, directory: Path, session: SparkSession) -> None:
        self.directory, self.session = directory, session
        self.pipeline = directory / "p.yaml"
        self.pipeline.write_text(PIPELINE)

    def run(self, **options: Any) -> None:
        app.run(
            app.plan(self.pipeline),
            spark=self.session.newSession(),
            options=app.RunOptions(**options),
        )

    def count_dead_letters(self) -> int:
        return DeadLetters(app.plan(self.pipeline).state / "dead_letters").count()

    def rows(self) -> list[dict[str, Any]]:
        names = ["start", "user", "rows", "prices", "total", "s", "mean", "low", "top", "large",
                 "costs", "sizes", "bits"]  # fmt: skip
        lines = (
            json.loads(line)
            for file in (self.directory / "out").glob("*.jsonl")
            for line in file.read_text().splitlines()
        )
        rows = [{name: line.get(name) for name in names} for line in lines]
        return sorted(rows, key=lambda row: (row["start"], row["user"] is not None, row["user"]))


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Returns whether panes were used, for each started query."""
    found: list[bool] = []

    def spy(frame: Any) -> Any:
        result = by_panes(frame)
        found.append(result is not frame)
        return result

    monkeypatch.setattr(start, "by_panes", spy)
    return found


def test_rows_are_those_of_single_rows_also_after_a_restart(
    tmp_path: Path, penstock_spark: SparkSession, divided: list[bool]
) -> None:
    """Rows behind their pane count in the windows that are open."""
    clicks, runs = Clicks(tmp_path), Runs(tmp_path, penstock_spark)
    for _ in range(3):
        clicks.add()
    runs.run(until="caught_up")
    clicks.close()
    for _ in range(2):
        clicks.add()
    runs.run()
    expected = clicks.expected()
    assert runs.rows() == expected
    assert expected != clicks.expected(late=False)
    assert runs.count_dead_letters() == clicks.count_late() > 0
    assert divided
    assert all(divided)


@pytest.mark.parametrize(
    ("query", "rewritten"),
    [
        ("count(*) AS n|window(timestamp, '1 minute', '1 second')", True),
        ("sum(CAST(value AS DECIMAL(9, 2))) AS n|window(timestamp, '1 minute', '1 second')", True),
        ("count(*) AS n|window(timestamp, '1 minute', '30 seconds')", False),
        ("count(*) AS n|window(timestamp, '1 minute')", False),
        ("count(*) AS n|window(timestamp, '60 seconds', '7 seconds', '1 second')", False),
        ("count(*) AS n|window(timestamp + INTERVAL '1' SECOND, '60 seconds', '7 seconds')", False),
        ("stddev(value) AS n|window(timestamp, '1 minute', '1 second')", False),
        ("first(value) AS n|window(timestamp, '1 minute', '1 second')", False),
        ("sum(CAST(value AS DECIMAL(19))) AS n|window(timestamp, '1 minute', '1 second')", False),
        ("collect_list(value) AS n|window(timestamp, '1 minute', '1 second')", False),
        ("count(*), collect_list(value) AS n|window(timestamp, '1 minute', '1 second')", False),
        ("max(struct(value)) AS n|window(timestamp, '1 minute', '1 second')", False),
        ("count(*) AS n|window(timestamp, '1 minute', '1 second'), array(value)", False),
    ],
    ids=["many", "decimal", "two", "tumbling", "start-time", "computed-time", "stddev", "first",
         "long-decimal", "list", "list-and-count", "nested-value", "nested-key"],
)  # fmt: skip
def test_only_exact_queries_have_panes(
    penstock_spark: SparkSession, query: str, rewritten: bool
) -> None:
    session = penstock_spark.newSession()
    rates = (
        session.readStream.format("rate")
        .name("rates")
        .load()
        .withWatermark("timestamp", "1 second")
    )
    rates.createOrReplaceTempView("rates")
    items, groups = query.split("|")
    frame = session.sql(f"SELECT {items} FROM rates GROUP BY {groups}")
    result = by_panes(frame)
    assert (result is not frame) == rewritten
    assert result.schema == frame.schema
