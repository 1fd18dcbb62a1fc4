"""The bench `windows` in Flink SQL: BROKERS SOURCE TARGET JARS."""

from __future__ import annotations

import sys
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

CLICKS = """
    CREATE TABLE clicks (
      `user` STRING, price DOUBLE, `at` TIMESTAMP_LTZ(3),
      WATERMARK FOR `at` AS `at` - INTERVAL '10' SECOND
    ) WITH (
      'connector' = 'kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{source}',
      'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
      'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'
    )"""
COUNTS = """
    CREATE TABLE counts (`start` BIGINT, `key` STRING, clicks BIGINT, price DOUBLE) WITH (
      'connector' = 'kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{target}',
      'key.format' = 'raw', 'key.fields' = 'key', 'value.format' = 'json'
    )"""
QUERY = """
    INSERT INTO counts
    SELECT TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_start), `user`,
           COUNT(*), SUM(price)
    FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(`at`), INTERVAL '10' SECOND))
    GROUP BY window_start, window_end, `user`"""


def main(brokers: str, source: str, target: str, jars: str) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = environment.get_config()
    settings.set("pipeline.jars", ";".join(path.as_uri() for path in Path(jars).glob("*.jar")))
    settings.set("parallelism.default", "2")
    settings.set("table.local-time-zone", "UTC")
    settings.set("pipeline.object-reuse", "true")
    environment.execute_sql(CLICKS.format(brokers=brokers, source=source))
    environment.execute_sql(COUNTS.format(brokers=brokers, target=target))
    environment.execute_sql(QUERY).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
