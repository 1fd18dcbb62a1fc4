"""The bench `nexmark` in Flink SQL: BROKERS JARS DIRECTORY SIDE_INPUT PARALLELISM.

Runs each query that a line of the input names, as "q5 TARGET", in one Java. An answer is a line of
JSON: `seconds`, or `error`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from nexmark_queries import QUERIES
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf

COLUMNS = {
    "person": """
        id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING,
        state STRING, `datetime` TIMESTAMP_LTZ(3), extra STRING""",
    "auction": """
        id BIGINT, description STRING, item_name STRING, initial_bid BIGINT, reserve BIGINT,
        `datetime` TIMESTAMP_LTZ(3), expires TIMESTAMP_LTZ(3), seller BIGINT, category BIGINT,
        extra STRING""",
    "bid": """
        auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
        `datetime` TIMESTAMP_LTZ(3), extra STRING""",
    "arrivals": "bidder BIGINT, arrival TIMESTAMP_LTZ(3)",
}
SOURCE = """
    CREATE TABLE {name} ({columns}, WATERMARK FOR {time} AS {time} - INTERVAL '4' SECOND) WITH (
      'connector' = 'kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{topic}',
      'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
      'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'
    )"""
SIDE_INPUT = """
    CREATE TABLE side_input (`key` BIGINT, `value` STRING)
    WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"""
APPENDED = """
    'connector' = 'kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{target}',
    'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'"""
CHANGED = """
    'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '{brokers}',
    'topic' = '{target}', 'key.format' = 'json', 'value.format' = 'json',
    'value.json.timestamp-format.standard' = 'ISO-8601',
    'sink.buffer-flush.max-rows' = '50000', 'sink.buffer-flush.interval' = '1s'"""
FILES = "'connector' = 'filesystem', 'path' = '{target}', 'format' = 'json'"
SETTINGS = {
    "table.local-time-zone": "UTC",
    "pipeline.object-reuse": "true",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "execution.checkpointing.interval": "5s",
    "taskmanager.memory.managed.size": "1gb",
    "taskmanager.memory.network.max": "256mb",
}
"""The settings that the benchmark itself gives Flink: small batches and split distinct counts."""


@udf(result_type=DataTypes.BIGINT(), func_type="general")
def count_char(text: str, character: str) -> int:
    return text.count(character)


def environment(
    brokers: str, jars: str, directory: str, side_input: str, parallelism: str
) -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = made.get_config()
    settings.set("pipeline.jars", ";".join(path.as_uri() for path in Path(jars).glob("*.jar")))
    settings.set("parallelism.default", parallelism)
    settings.set("execution.checkpointing.dir", Path(directory).as_uri())
    settings.set("python.executable", sys.executable)
    for name, value in SETTINGS.items():
        settings.set(name, value)
    made.create_temporary_function("count_char", count_char)
    made.execute_sql(SIDE_INPUT.format(path=side_input))
    for name, columns in COLUMNS.items():
        time_column = "arrival" if name == "arrivals" else "`datetime`"
        topic = "bid" if name == "arrivals" else name
        made.execute_sql(
            SOURCE.format(
                name=name, columns=columns, time=time_column, brokers=brokers, topic=topic
            )
        )
    return made


def create_sink(made: TableEnvironment, name: str, brokers: str, target: str) -> None:
    """Creates the table of the result of a query, with its columns."""
    query = QUERIES[name]
    key = query.key.split(", ") if query.key else []
    columns = []
    for column in made.sql_query(query.sql)._j_table.getResolvedSchema().getColumns():
        kind = column.getDataType().getLogicalType().asSerializableString()
        kind = kind.removesuffix(" NOT NULL")
        columns.append(f"`{column.getName()}` {kind}")
    options, partitions = CHANGED if key else APPENDED, ""
    if key:
        columns.append(f"PRIMARY KEY ({', '.join(f'`{each}`' for each in key)}) NOT ENFORCED")
    if name == "q10":
        options, partitions = FILES, "PARTITIONED BY (dt, hm)"
    made.execute_sql(
        f"CREATE TABLE {name} ({', '.join(columns)}) {partitions} "
        f"WITH ({options.format(brokers=brokers, target=target)})"
    )


def run(made: TableEnvironment, name: str, brokers: str, target: str) -> float:
    """Runs a query to its end. Returns its seconds."""
    began = time.monotonic()
    create_sink(made, name, brokers, target)
    try:
        made.execute_sql(f"INSERT INTO {name} {QUERIES[name].sql}").wait()
    finally:
        made.execute_sql(f"DROP TABLE {name}")
    return time.monotonic() - began


def main(brokers: str, *options: str) -> None:
    made = environment(brokers, *options)
    for line in sys.stdin:
        name, target = line.split()
        answer: dict[str, float | str]
        try:
            answer = {"seconds": run(made, name, brokers, target)}
        except Exception as error:  # whatever Flink raises is the answer
            answer = {"error": reason(error)}
        print(json.dumps(answer), flush=True)


def reason(error: Exception) -> str:
    """Returns the message of the innermost cause."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    text = causes[-1] if causes else str(error).strip().splitlines()[0]
    return text.removeprefix("Caused by: ").rpartition("Exception: ")[2]


if __name__ == "__main__":
    main(*sys.argv[1:])
