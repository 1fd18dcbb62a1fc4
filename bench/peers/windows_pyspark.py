"""The bench `windows` by hand in PySpark: Spark's own Kafka connector, tuned."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SCHEMA = "user STRING, country STRING, price DOUBLE, at TIMESTAMP"
STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(brokers: str, source: str, target: str, jars: Path, checkpoint: Path) -> None:
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars", ",".join(map(str, jars.glob("*.jar"))))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.streaming.stateStore.providerClass", STATE)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    counts = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("click"))
        .select("click.*")
        .withWatermark("at", "10 seconds")
        .groupBy(F.window("at", "10 seconds"), "user")
        .agg(F.count("*").alias("clicks"), F.sum("price").alias("price"))
        .select(
            F.unix_seconds("window.start").alias("start"),
            F.col("user").alias("key"),
            "clicks",
            "price",
        )
    )
    (
        counts.select("key", F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("kafka.linger.ms", 20)
        .option("kafka.batch.size", 524288)
        .option("topic", target)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    spark.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("brokers")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("jars", type=Path)
    parser.add_argument("checkpoint", type=Path)
    main(**vars(parser.parse_args()))
