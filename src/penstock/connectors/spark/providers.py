"""Well-known formats of Spark: their Maven packages, and the connectors of Penstock beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Provider(NamedTuple):
    """A format: its Maven package, if it is not part of Spark, and what Penstock has for it."""

    package: str | None = None
    native: str | None = None


_SPARK = "org.apache.spark:{artifact}_2.13:{version}"
PROVIDERS: Mapping[str, Provider] = {
    "parquet": Provider(native="type: files with format: parquet"),
    "json": Provider(native="type: files with format: json"),
    "csv": Provider(native="type: files with format: csv"),
    "text": Provider(native="type: files with format: text"),
    "orc": Provider(),
    "xml": Provider(),
    "binaryFile": Provider(native="type: files with format: raw"),
    "jdbc": Provider(native="type: jdbc"),
    "avro": Provider(_SPARK.replace("{artifact}", "spark-avro"), "type: files with format: avro"),
    "kafka": Provider(_SPARK.replace("{artifact}", "spark-sql-kafka-0-10"), "type: kafka"),
    "delta": Provider("io.delta:delta-spark_2.13:VERSION", "type: delta"),
    "iceberg": Provider(
        "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:VERSION", "type: iceberg"
    ),
    "mongodb": Provider("org.mongodb.spark:mongo-spark-connector_2.13:VERSION", "type: mongodb"),
    "clickhouse": Provider(
        "com.clickhouse.spark:clickhouse-spark-runtime-4.0_2.13:VERSION", "type: clickhouse"
    ),
    "bigquery": Provider("com.google.cloud.spark:spark-bigquery-with-dependencies_2.13:VERSION"),
    "snowflake": Provider("net.snowflake:spark-snowflake_2.13:VERSION"),
    "redshift": Provider("io.github.spark-redshift-community:spark-redshift_2.13:VERSION"),
    "hudi": Provider("org.apache.hudi:hudi-spark4.0-bundle_2.13:VERSION"),
    "excel": Provider("dev.mauch:spark-excel_2.13:VERSION"),
    "org.apache.spark.sql.cassandra": Provider(
        "com.datastax.spark:spark-cassandra-connector_2.13:VERSION"
    ),
}


def package_of(provider: str, version: str) -> str | None:
    """Returns the Maven package of a format for a version of Spark; None for other formats."""
    package = PROVIDERS[provider].package if provider in PROVIDERS else None
    return None if package is None else package.replace("{version}", version)


def native_of(provider: str) -> str | None:
    """Returns what Penstock has for a format."""
    return PROVIDERS[provider].native if provider in PROVIDERS else None
