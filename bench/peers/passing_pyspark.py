"""The bench `latency` by hand in PySpark: Spark's own Kafka connector, its default trigger."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SCHEMA = "id BIGINT, sent BIGINT, user STRING, amount INT, at TIMESTAMP, agent STRING"


def main(brokers: str, source: str, target: str, jars: Path, checkpoint: Path) -> None:
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars", ",".join(map(str, jars.glob("*.jar"))))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("record"))
        .select("record.*")
    )
    large = records.filter(F.col("amount") >= 20).drop("agent")
    (
        large.select(F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("topic", target)
        .option("checkpointLocation", str(checkpoint))
        .start()
        .awaitTermination()
    )


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(Path, sys.argv[4:6]))
