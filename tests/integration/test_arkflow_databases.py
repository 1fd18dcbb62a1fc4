"""A file of ArkFlow with databases and object stores, which ends."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from servers import ferretdb as ferret
from servers import mariadb as maria
from servers.ferretdb import FerretDb
from servers.influxdb import VictoriaMetrics
from servers.mariadb import MariaDb
from servers.s3 import S3, Bucket

if TYPE_CHECKING:
    from command_line import CommandLine

pytestmark = pytest.mark.spark

STREAMS = """\
streams:
  - id: mysql
    input:
      type: sql
      select_sql: "SELECT r.id, upper(r.name) AS name FROM flow.$database.r r WHERE r.id < 3"
      input_type: {type: mysql, uri: "$mysql", ssl: {ssl_mode: disable}}
    pipeline: {processors: []}
    output:
      type: sql
      output_type: {type: mysql, uri: "$mysql", ssl: {ssl_mode: disable}}
      table_name: w
      upsert: true
      upsert_keys: [id]
  - id: documents
    input:
      type: sql
      select_sql: "SELECT id, name FROM shop.main.t"
      input_type: {type: duckdb, path: shop.duckdb, name: shop}
    pipeline:
      processors: [{type: sql, query: "SELECT id, name, id * 2 AS twice FROM flow"}]
    output: {type: mongodb, uri: "$mongodb", database: $documents, collection: $collection}
  - id: points
    input: {type: parquet, path: "s3://$bucket/in/x.parquet", store: $store}
    pipeline:
      processors:
        - {type: sql, query: "SELECT host, load, at FROM flow WHERE load > 1"}
    output:
      type: influxdb
      url: "$influxdb"
      org: o
      bucket: b
      token: made-up-token
      measurement: $measurement
      fields: [{name: load, value: load, value_type: float}]
      tags: [{name: host, value: host}]
      timestamp_field: at
      batch_size: 2
      flush_interval: 1
      retry_count: 2
      timeout_ms: 10000
  - id: json
    input:
      type: sql
      select_sql: "SELECT id, tags[1] AS tag FROM objects"
      input_type: {type: json, path: "s3://$bucket/json/", name: objects, store: $store}
    pipeline: {processors: []}
    output: {type: sql, output_type: {type: sqlite, path: out.db}, table_name: t}
  - id: web
    input:
      type: file
      input_type: {type: csv, path: "$web/in.csv", store: {type: http, url: "$web"}}
      query: {query: "SELECT id, tag FROM rows WHERE id > 1", table: rows}
    pipeline: {processors: []}
    output: {type: sql, output_type: {type: sqlite, uri: "sqlite://out.db"}, table: t}
"""
STORE = """{type: s3, bucket_name: $bucket, endpoint: "$endpoint", region: us-west-2,
      access_key_id: $access, secret_access_key: $secret, allow_http: true}"""


def test_databases_and_stores(
    cli: CommandLine, tmp_path: Path, mariadb: MariaDb, ferretdb: FerretDb,
    victoria_metrics: VictoriaMetrics, s3: S3, bucket: Bucket,
) -> None:  # fmt: skip
    database, collection, measurement = mariadb.new_database(), ferretdb.new_collection(), "cpu"
    with mariadb.client(database=database) as client, client.cursor() as cursor:
        cursor.execute("CREATE TABLE r (id INT PRIMARY KEY, name TEXT)")
        cursor.execute("INSERT INTO r VALUES (1, 'a'), (2, NULL), (3, 'c')")
        cursor.execute("CREATE TABLE w (id INT PRIMARY KEY, name TEXT)")
        cursor.execute("INSERT INTO w VALUES (1, 'old')")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS id, 'x' AS name")
    with closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, tag TEXT)")
    rows = {"host": ["h1", "h2"], "load": [0.5, 2.5], "at": [1_790_000_000_000_000_000] * 2}
    parquet.write_table(pa.table(rows), tmp_path / "x.parquet")
    bucket.put("in/x.parquet", (tmp_path / "x.parquet").read_bytes())
    bucket.put("json/a.json", b'{"id": 1, "tags": ["p", "q"]}\n')
    bucket.put("json/b.json", b'{"id": 2, "tags": []}\n')
    (tmp_path / "in.csv").write_text("id,tag\n1,m\n3,n\n")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    storage = s3.storage
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        text = Template(STREAMS.replace("$store", STORE)).substitute(
            database=database, mysql=mariadb.login["url"].rpartition("/")[0].replace(
                "://", f"://{maria.USER}:{quote(maria.PASSWORD)}@") + f"/{database}",
            mongodb=f"mongodb://{ferret.USER}:{quote(ferret.PASSWORD)}@127.0.0.1:{ferretdb.port}",
            documents=ferret.DATABASE, collection=collection, bucket=bucket.name,
            endpoint=storage["endpoint_url"], access=storage["auth"]["access_key"],
            secret=storage["auth"]["secret_key"], influxdb=victoria_metrics.url,
            measurement=measurement, web=f"http://127.0.0.1:{server.server_port}",
        )  # fmt: skip
        (tmp_path / "x.yaml").write_text(text)
        done = cli(tmp_path, "run", "x.yaml", "--quiet")
        server.shutdown()
    assert done.returncode == 0, done.stderr
    with mariadb.client(database=database) as client, client.cursor() as cursor:
        cursor.execute("SELECT * FROM w ORDER BY id")
        assert cursor.fetchall() == ((1, "A"), (2, None))
    with closing(ferretdb.client()) as client:
        (found,) = client[ferret.DATABASE][collection].find({}, {"_id": 0})
    assert found == {"id": 7, "name": "x", "twice": 14}
    (series,) = victoria_metrics.values("cpu_load")
    assert series["metric"]["host"] == "h2" and series["values"] == [2.5]
    with closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        found = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
    assert found == [(1, "p"), (2, None), (3, "n")]
