"""The bench `kafka` by hand in PySpark: Spark's own Kafka connector, `from_json` and `to_json`."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SCHEMA = """
    id BIGINT, user STRING, session STRING, page STRING, referrer STRING, action STRING,
    country STRING, price DOUBLE, quantity INT, at TIMESTAMP
"""


def main(brokers: str, source: str, target: str, jars: Path, checkpoint: Path, tuned: bool) -> None:
    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars", ",".join(map(str, jars.glob("*.jar"))))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
    )
    if tuned:
        builder = builder.config("spark.sql.shuffle.partitions", 2)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    clicks = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("click"))
        .select("click.*")
    )
    orders = clicks.filter(
        F.col("action").isin("cart", "purchase") & (F.col("price") >= 20)
    ).select(
        "id",
        "user",
        "country",
        "action",
        "at",
        (F.col("price") * F.col("quantity")).alias("total"),
        F.split_part("page", F.lit("/"), F.lit(2)).alias("section"),
        F.date_trunc("hour", "at").alias("hour"),
    )
    writer = (
        orders.select(F.col("user").alias("key"), F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("topic", target)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
    )
    if tuned:
        writer = writer.option("kafka.linger.ms", 20).option("kafka.batch.size", 524288)
    writer.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("brokers")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("jars", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--tuned", action="store_true")
    main(**vars(parser.parse_args()))
