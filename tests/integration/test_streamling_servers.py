"""A file of Streamling with all its sinks: changes of a topic, through each kind of transform."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from kafka_records import put
from registry_formats import written

from servers.apicurio import Apicurio
from servers.aws import REGION
from servers.clickhouse import DATABASE, ClickHouse
from servers.clickhouse import PASSWORD as CLICKHOUSE_PASSWORD
from servers.clickhouse import USER as CLICKHOUSE_USER
from servers.kafka import Kafka
from servers.mariadb import PASSWORD as MYSQL_PASSWORD
from servers.mariadb import USER as MYSQL_USER
from servers.mariadb import MariaDb
from servers.postgres import PASSWORD, Postgres
from servers.s3 import Bucket

if TYPE_CHECKING:
    from command_line import CommandLine

pytestmark = pytest.mark.spark

ORDER = {
    "type": "record", "name": "Order",
    "fields": [
        {"name": "id", "type": "long"}, {"name": "customer", "type": "string"},
        {"name": "amount", "type": "long"},
    ],
}  # fmt: skip
FILE = """\
sources:
  shop.orders:
    type: kafka
    topic: {topic}
    primary_key: id
    include_metadata: true
    filter: amount < 1000
    telemetry: {{labels: {{team: shop}}}}
transforms:
  vips:
    type: dynamic_table
    backend_type: postgres
    backend_entity_name: vips
    schema: {schema}
    sql: SELECT customer FROM shop.orders WHERE amount >= 200
  large:
    type: sql
    primary_key: id
    sql: |
      SELECT id, customer, amount / 3 AS part, shop.orders.__kafka_offset AS "at"
      FROM shop.orders
      WHERE dynamic_table_check('vips', customer) AND amount > 10;
  enriched:
    type: handler
    from: large
    url: {url}/enrich
    primary_key: id
    secret_name: api-key
    schema_override: {{note: string, at: null}}
  scored:
    type: script
    from: enriched
    language: typescript
    primary_key: id
    schema: {{id: int64, customer: string, part: int64, note: utf8, size: string}}
    script: |
      function process(input: any) {{
        const size = (n: number) => `${{n > 99 ? 'large' : 'small'}}`;
        input._gs_op = 'x';
        return input.part > 1 ? [null, {{...input, size: size(input.part)}}] : null;
      }}
sinks:
  log: {{type: print, from: scored}}
  nothing: {{type: blackhole, from: scored}}
  pg.rows: {{type: postgres, from: scored, schema: {schema}, table: rows}}
  newest:
    {{type: postgres, from: scored, schema: {schema}, table: newest, update_where: {{part: '>'}}}}
  totals:
    type: postgres_aggregate
    from: scored
    schema: {schema}
    landing_table: landing
    agg_table: totals
    group_by: {{customer: {{type: text}}}}
    aggregate: {{parts: {{from: part, fn: sum, type: "numeric(30,2)"}}, n: {{fn: count}}}}
  avro: {{type: kafka, from: scored, topic: {topic}-avro, data_format: avro, topic_partitions: 1}}
  json: {{type: kafka, from: scored, topic: {topic}-json, data_format: json, compression: gzip,
         topic_partitions: 1}}
  stored: {{type: clickhouse, from: scored, primary_key: id, table: {table}}}
  removed: {{type: clickhouse, from: scored, primary_key: id, table: {table}_removed,
            append_only_mode: "false"}}
  objects: {{type: s3_sink, from: scored, bucket: {bucket}, prefix: scored/, region: {region},
            endpoint: "{endpoint}", partition_columns: "size, customer",
            access_key_id: {access_key}, secret_access_key: {secret_key}}}
  queue:
    type: sqs
    from: scored
    options: {{queue_url: "{queue}", region: {region}, endpoint_url: "{endpoint}",
              access_key_id: {access_key}, secret_access_key: {secret_key}}}
  mysql: {{type: mysql_sink, from: scored, host: 127.0.0.1, port: "{mysql_port}", table: scored,
          user: {mysql_user}, database: {mysql_database}, primary_key: id}}
  hook: {{type: webhook, from: scored, url: "{url}/hook"}}
  hook.enveloped: {{type: webhook, from: scored, url: "{url}/enveloped", payload_version: 1,
                   one_row_per_request: true}}
"""
ROWS = [
    {"customer": "a", "id": 1, "note": "n1", "part": 66, "size": "small", "_gs_op": "i"},
    {"customer": "a", "id": 3, "note": "n3", "part": 100, "size": "large", "_gs_op": "i"},
    {"customer": "a", "id": 1, "note": "n1", "part": 166, "size": "large", "_gs_op": "u"},
    {"customer": "a", "id": 3, "note": "n3", "part": 100, "size": "large", "_gs_op": "d"},
]


class Service:
    """A service that enriches rows, and keeps the bodies of other requests by their path."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = {}
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.kept.setdefault(self.path, []).append(body)
                if self.path == "/enrich" and self.headers["X-Key"] != "made-up-key":
                    self.send_response(401)
                    self.end_headers()
                    return
                rows = [{**row, "note": f"n{row['id']}"} for row in body if "id" in row]
                is_answered = self.path.endswith("/enrich")
                answer = json.dumps(rows).encode() if is_answered else b""
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def settings(
    kafka: Kafka, apicurio: Apicurio, postgres: Postgres, clickhouse: ClickHouse
) -> dict[str, str]:
    """The environment of Streamling for the servers of the tests."""
    user = postgres.login["auth"]["username"]
    database = str(postgres.login["url"]).rpartition("/")[2]
    found = {}
    for side in ("SOURCE", "SINK"):
        found |= {
            f"KAFKA_{side}__BROKERS": kafka.address,
            f"KAFKA_{side}__SCHEMA_REGISTRY_URL": apicurio.url,
            f"CLICKHOUSE_{side}__URL": f"http://127.0.0.1:{clickhouse.port}",
            f"CLICKHOUSE_{side}__USER": CLICKHOUSE_USER,
            f"CLICKHOUSE_{side}__PASSWORD": CLICKHOUSE_PASSWORD,
            f"CLICKHOUSE_{side}__DATABASE": DATABASE,
        }
    for section, secret in (("POSTGRES_SINK", "PASS"),
                            ("DYNAMIC_TABLE_BACKEND__POSTGRES", "PASSWORD")):  # fmt: skip
        found |= {
            f"{section}__HOST": "127.0.0.1", f"{section}__PORT": str(postgres.port),
            f"{section}__USER": user, f"{section}__{secret}": PASSWORD,
            f"{section}__DB": database, f"{section}__SSLMODE": "disable",
        }  # fmt: skip
    found |= {"HTTP_SECRET_HEADER__API_KEY": "X-Key", "HTTP_SECRET_VALUE__API_KEY": "made-up-key"}
    return {f"STREAMLING__{name}": value for name, value in found.items()}


def parquet_rows(bucket: Bucket, name: str) -> list[tuple[Any, ...]]:
    table = pq.read_table(io.BytesIO(bucket.get(name)), columns=["id", "part", "_gs_op"])
    return [tuple(row.values()) for row in table.to_pylist()]


def test_changes_reach_every_sink(
    cli: CommandLine, kafka: Kafka, apicurio: Apicurio, postgres: Postgres,
    clickhouse: ClickHouse, mariadb: MariaDb, bucket: Bucket, service: Service, tmp_path: Path,
) -> None:  # fmt: skip
    topic, schema, table = kafka.create_topic(), postgres.new_schema(), clickhouse.new_table()
    queues = bucket.server.connect("sqs")
    queue = str(queues.create_queue(QueueName=bucket.name)["QueueUrl"])
    amazon = bucket.server.storage
    others = {
        "bucket": bucket.name, "region": REGION, "endpoint": amazon["endpoint_url"],
        "queue": queue, **amazon["auth"], "mysql_port": mariadb.port, "mysql_user": MYSQL_USER,
        "mysql_database": mariadb.new_database(),
    }  # fmt: skip
    orders = [(1, "a", 200, "c"), (2, "b", 50, "r"), (3, "a", 300, None), (4, "a", 5000, "c"),
              (1, "a", 500, "u"), (3, "a", 300, "d")]  # fmt: skip
    for id_, customer, amount, kind in orders:
        record = {"id": id_, "customer": customer, "amount": amount}
        headers = [("dbz.op", kind.encode())] if kind is not None else []
        put(kafka, topic, *written(apicurio, f"{topic}-value", ORDER, record), headers=headers)
    (tmp_path / "x.yaml").write_text(
        FILE.format(topic=topic, schema=schema, table=table, url=service.url, **others)
    )
    environment = settings(kafka, apicurio, postgres, clickhouse)
    environment["STREAMLING__PLUGIN__MYSQL_SINK__PASSWORD"] = MYSQL_PASSWORD
    done = cli(tmp_path, "run", "x.yaml", "--quiet", "--until-caught-up", environment=environment)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == ROWS
    with postgres.client() as connection:

        def query(text: str) -> list[Any]:
            return list(connection.execute(text.format(schema=schema)).fetchall())

        assert query("SELECT * FROM {schema}.rows") == [("a", 1, "n1", 166, "large")]
        assert query("SELECT id, part FROM {schema}.newest") == [(1, 166)]
        assert query("SELECT customer, parts, n FROM {schema}.totals") == [("a", 166, 1)]
        assert query("SELECT value FROM {schema}.vips") == [("a",)]
    headers = [dict(each.headers() or ())["dbz.op"] for each in kafka.messages(f"{topic}-avro")]
    assert headers == [b"c", b"c", b"u", b"d"]
    values = kafka.messages(f"{topic}-json")
    assert [(each.key(), json.loads(each.value() or b"")) for each in values] == [
        (str(row["id"]).encode(), row) for row in ROWS
    ]
    stored = clickhouse(f"SELECT id, part, is_deleted FROM {DATABASE}.{table}")
    assert stored == [(1, 166, 0)]
    removed = clickhouse(f"SELECT id, part FROM {DATABASE}.{table}_removed FINAL")
    assert removed == [(1, 166)]
    found = [row for name in bucket.names("scored/size=") for row in parquet_rows(bucket, name)]
    assert sorted(found) == sorted((row["id"], row["part"], row["_gs_op"]) for row in ROWS)
    messages = queues.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    bodies = [json.loads(each["Body"]) for each in messages]
    assert sorted(bodies, key=str) == sorted(ROWS, key=str)
    with (
        mariadb.client(database=str(others["mysql_database"])) as client,
        client.cursor() as cursor,
    ):
        cursor.execute("SELECT id, customer, part, size FROM scored")
        assert list(cursor.fetchall()) == [(1, "a", 166, "large")]
    assert [row for body in service.kept["/hook"] for row in body] == ROWS
    enveloped = [
        (each["metadata"]["op"], each["data"]["id"]) for each in service.kept["/enveloped"]
    ]
    assert sorted(enveloped) == sorted((row["_gs_op"], row["id"]) for row in ROWS)
    assert all("at" in row for body in service.kept["/enrich"] for row in body)
