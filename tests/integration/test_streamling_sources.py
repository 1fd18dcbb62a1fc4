"""Files of Streamling that read tables, files and topics: phases, jobs, and converted files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kafka_records import put
from registry_formats import written
from test_streamling_servers import settings

from servers.apicurio import Apicurio
from servers.clickhouse import DATABASE, ClickHouse
from servers.kafka import Kafka
from servers.postgres import PASSWORD, Postgres

if TYPE_CHECKING:
    from command_line import CommandLine

pytestmark = pytest.mark.spark

EVENT = {
    "type": "record", "name": "Event",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}  # fmt: skip
TABLE = """CREATE TABLE {database}.{table} (
  extra String, name String, id Int32, big UInt256, version UInt64, is_deleted UInt8
) ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY id"""
VALUES = """INSERT INTO {database}.{table} VALUES
  ('x', 'one', 1, 1, 1, 0), ('x', 'two', 2, 2, 1, 0), ('x', 'three', 3, 3, 1, 0),
  ('x', 'gone', 3, 3, 2, 1),
  ('x', 'four', 4, 115792089237316195423570985008687907853269984665640564039457584007913129639935,
   1, 0)"""
FILE = """\
sources:
  events:
    type: hybrid
    bounded_sources:
      - {{source_type: clickhouse, table_name: {table}, filter: "id <> 2"}}
    unbounded_source: {{source_type: kafka, topic: {topic}, start_at: earliest}}
    offset_table: {{topic_name: {topic}, table_name: {offsets}, offset_column: next}}
    primary_key: id
transforms: {{}}
sinks:
  events: {{type: print, from: events}}
"""
OFFSETS = """CREATE TABLE {database}.{table} (topic String, partition UInt32, next UInt32)
ENGINE = MergeTree ORDER BY topic"""
CHANGES = """\
sources:
  rows:
    type: postgres_cdc_source
    primary_key: id
    options: {{host: 127.0.0.1, port: "{port}", database: {database}, username: {user},
              table: {table}, slot_name: {slot}, publication_name: {slot}}}
transforms: {{}}
sinks:
  rows: {{type: print, from: rows}}
"""
OTHERS = """\
definition:
  sources:
    rows: {{type: clickhouse, table_name: {table}, primary_key: id, start_at: "2",
           columns: "id, big", filter: "id < 9"}}
    csv: {{type: file, path: in, format: csv, mode: {{type: bounded}}}}
    json.topic: {{type: kafka, topic: {topic}, data_format: json, starting_offsets: "1000",
                 schema: {{id: int64, price: "decimal(10,2)", at: timestamp}}}}
    random: {{type: basic_plugin.random_source, options: {{max_rows: "6", batch_sleep_ms: "0"}}}}
  transforms:
    seen: {{type: dynamic_table, backend_type: InMemory, backend_entity_name: seen,
           sql: "SELECT kind FROM csv WHERE amount > 1"}}
    all:
      type: sql
      primary_key: id
      sql: |
        SELECT id, kind FROM csv WHERE dynamic_table_check('seen', kind)
        UNION ALL SELECT id, 'none' FROM csv WHERE id = 1
    less:
      type: sql
      primary_key: id
      sql: SELECT id, u256_sub(big, to_u256(1)) AS big FROM rows
    updates: {{type: basic_plugin.filter_transform, from: random, options: {{_gs_op: none}}}}
  sinks:
    big: {{type: print, from: less}}
    all: {{type: memory, from: all, exclude_gs_op: true}}
    json: {{type: print, from: json.topic, sample_every: 1}}
    none: {{type: print_sink, from: updates, mode: batch}}
"""


def rows(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


def filled_table(clickhouse: ClickHouse) -> str:
    """Returns the name of a new table with rows."""
    table = clickhouse.new_table()
    names = {"database": DATABASE, "table": table}
    clickhouse(TABLE.format(**names), VALUES.format(**names))
    return table


def test_a_table_and_then_a_topic(
    cli: CommandLine, kafka: Kafka, apicurio: Apicurio, postgres: Postgres,
    clickhouse: ClickHouse, tmp_path: Path,
) -> None:  # fmt: skip
    topic, table, offsets = kafka.create_topic(), filled_table(clickhouse), clickhouse.new_table()
    clickhouse(
        OFFSETS.format(database=DATABASE, table=offsets),
        f"INSERT INTO {DATABASE}.{offsets} VALUES ('{topic}', 0, 1), ('other', 0, 9)",
    )
    for record in ({"id": 4, "name": "in the table"}, {"id": 5, "name": "five"}):
        payload = written(apicurio, f"{topic}-value", EVENT, record)
        put(kafka, topic, *payload, headers=[("dbz.op", b"U")])
    (tmp_path / "x.yaml").write_text(FILE.format(topic=topic, table=table, offsets=offsets))
    environment = settings(kafka, apicurio, postgres, clickhouse)
    past = [{"id": 1, "name": "one", "_gs_op": "i"}, {"id": 4, "name": "four", "_gs_op": "i"}]
    live = {"id": 5, "name": "five", "_gs_op": "u"}

    run = ("run", "x.yaml", "--quiet", "--until-caught-up")
    done = cli(tmp_path, *run, environment=environment)
    assert done.returncode == 0, done.stderr
    assert rows(done.stdout) == rows("\n".join(map(json.dumps, [*past, live])))

    converted = cli(tmp_path, "convert", "x.yaml", "--to", "yaml", environment=environment)
    assert CLICKHOUSE_VARIABLE in converted.stdout
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "y.yaml").write_text(converted.stdout)
    again = cli(
        tmp_path / "again", "run", "y.yaml", "--quiet", "--until-caught-up",
        environment=environment,
    )  # fmt: skip
    assert rows(again.stdout) == rows(done.stdout), again.stderr

    job = environment | {"STREAMLING__JOB_MODE": "true", "STREAMLING__APPLICATION_ID": "a-job"}
    first = cli(tmp_path, "streamling", "x.yaml", environment=job)
    assert rows(first.stdout) == rows("\n".join(map(json.dumps, past))), first.stderr
    second = cli(tmp_path, "streamling", "x.yaml", environment=job)
    assert (second.returncode, rows(second.stdout)) == (0, []), second.stderr


def test_changes_of_a_table(cli: CommandLine, postgres: Postgres, tmp_path: Path) -> None:
    schema, slot = postgres.new_schema(), f"slot_{tmp_path.parent.name.replace('-', '_')}"
    table = f"{schema}.orders"
    (tmp_path / "x.yaml").write_text(CHANGES.format(
        port=postgres.port, database=postgres.database, table=table, slot=slot, user=postgres.user,
    ))  # fmt: skip
    run = ("run", "x.yaml", "--quiet", "--until-caught-up")
    environment = {"STREAMLING__PLUGIN__POSTGRES_CDC_SOURCE__PASSWORD": PASSWORD}
    with postgres.client() as client:
        client.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, name TEXT)")
        client.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        client.execute(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
        first = cli(tmp_path, *run, environment=environment)
        assert first.returncode == 0, first.stderr
        client.execute(f"UPDATE {table} SET name = 'c' WHERE id = 1")
        client.execute(f"DELETE FROM {table} WHERE id = 2")
        second = cli(tmp_path, *run, environment=environment)
        client.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
    found = [json.loads(line) for done in (first, second) for line in done.stdout.splitlines()]
    assert [(row["_gs_op"], row["id"], row["name"]) for row in found] == [
        ("i", 1, "a"), ("i", 2, "b"), ("u", 1, "c"), ("d", 2, "b"),
    ], first.stderr + second.stderr  # fmt: skip


def test_other_sources(
    cli: CommandLine, kafka: Kafka, apicurio: Apicurio, postgres: Postgres,
    clickhouse: ClickHouse, tmp_path: Path,
) -> None:  # fmt: skip
    from penstock.connectors.memory import tables

    topic, table = kafka.create_topic(), filled_table(clickhouse)
    value = b'{"id": 7, "price": 1.25, "at": "2026-01-02T03:04:05", "unknown": 1}'
    put(kafka, topic, value, headers=[("dbz.op", b"d")])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,kind,amount\n1,x,1\n2,x,5\n3,y,1\n")
    (tmp_path / "x.yaml").write_text(OTHERS.format(topic=topic, table=table))
    environment = settings(kafka, apicurio, postgres, clickhouse)
    done = cli(tmp_path, "run", "x.yaml", "--quiet", "--until-caught-up", environment=environment)
    assert done.returncode == 0, done.stderr
    largest = str(2**256 - 2)
    assert rows(done.stdout) == rows("\n".join(map(json.dumps, [
        {"id": 2, "big": "1", "_gs_op": "i"}, {"id": 4, "big": largest, "_gs_op": "i"},
        {"id": 7, "price": 1.25, "at": "2026-01-02T03:04:05", "_gs_op": "d"},
    ])))  # fmt: skip
    found = sorted((row["id"], row["kind"]) for row in tables["all"].to_pylist())
    assert found == [(1, "none"), (1, "x"), (2, "x")]


CLICKHOUSE_VARIABLE = "${STREAMLING__CLICKHOUSE_SOURCE__PASSWORD}"
