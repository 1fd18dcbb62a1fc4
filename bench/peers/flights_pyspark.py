"""The bench `files` by hand in PySpark: Spark's own file source and sinks, on one machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SCHEMA = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
    sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING,
    dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP
"""
COLUMNS = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "distance", "time_hour"]


def main(source: Path, target: Path, files_per_batch: int) -> None:
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.sql.shuffle.partitions", os.cpu_count())
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_per_batch)
    if next(source.iterdir()).suffix == ".csv":
        flights = reader.option("header", True).option("nullValue", "NA").csv(str(source))
    else:
        flights = reader.json(str(source))
    late = (
        flights.select(*COLUMNS)
        .withWatermark("time_hour", "1 hour")
        .filter(F.col("dep_delay") > 60)
    )
    hourly = (
        late.groupBy(F.window("time_hour", "1 hour"), "carrier")
        .agg(
            F.count("*").alias("late"),
            F.avg("dep_delay").alias("mean_delay"),
            F.max("dep_delay").alias("worst_delay"),
        )
        .select(F.col("window.start").alias("hour"), "carrier", "late", "mean_delay", "worst_delay")
    )
    queries = [
        frame.writeStream.format(form)
        .option("path", str(target / name))
        .option("checkpointLocation", str(target / f"checkpoint-{name}"))
        .trigger(availableNow=True)
        .start()
        for name, frame, form in (("late", late, "json"), ("hourly", hourly, "parquet"))
    ]
    for query in queries:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
