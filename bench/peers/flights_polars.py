"""The bench `files` by hand in polars: all files at once, in one process."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour")
ALL = [
    "year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time",
    "sched_arr_time", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest", "air_time",
    "distance", "hour", "minute", "time_hour",
]  # fmt: skip
SCHEMA = {name: pl.String if name in TEXTS else pl.Int32 for name in ALL}
COLUMNS = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "distance", "time_hour"]


def main(source: Path, target: Path) -> None:
    files = sorted(source.iterdir())
    (target / "late").mkdir(parents=True)
    (target / "hourly").mkdir(parents=True)
    if files[0].suffix == ".csv":
        flights = pl.scan_csv(files, schema=SCHEMA, null_values="NA")
    else:
        flights = pl.scan_ndjson(files, schema=SCHEMA)
    late = (
        flights.select(COLUMNS)
        .with_columns(pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC"))
        .filter(pl.col("dep_delay") > 60)
    )
    hourly = late.group_by(pl.col("time_hour").dt.truncate("1h").alias("hour"), "carrier").agg(
        pl.len().alias("late"),
        pl.col("dep_delay").mean().alias("mean_delay"),
        pl.col("dep_delay").max().alias("worst_delay"),
    )
    pl.collect_all(
        [
            late.sink_ndjson(target / "late" / "late.json", lazy=True),
            hourly.sink_parquet(target / "hourly" / "hourly.parquet", lazy=True),
        ]
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
