"""Passwords of connectors to databases: in no message, plan, log, process list or setting."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from command_line import CommandLine
from penstock.core.errors import PenstockError
from penstock.sdk import Context, registry
from servers.drivers import POSTGRES, driver
from servers.postgres import Postgres

SECRET = "hunter2topsecret"
LOGIN = {"auth": {"username": "ann", "password": SECRET}}
KEYS = {"storage": {"endpoint_url": "http://127.0.0.1:1", "auth": {
    "access_key": "ann", "secret_key": SECRET, "session_token": f"{SECRET}-token",
}}}  # fmt: skip
CONNECTORS: dict[str, dict[str, Any]] = {
    "postgres": {"url": "postgresql://127.0.0.1:1/shop", "table": "t", **LOGIN},
    "postgres_aggregate": {
        "url": "postgresql://127.0.0.1:1/shop", "table": "t", "aggregate_table": "a", **LOGIN,
        "aggregates": {"rows": {"function": "count"}},
    },
    "mysql": {"url": "mysql://127.0.0.1:1/shop", "table": "t", **LOGIN},
    "clickhouse": {"url": "clickhouse://127.0.0.1:1/shop", "table": "t", **LOGIN},
    "mongodb": {"url": "mongodb://127.0.0.1:1/shop", "collection": "c", "timeout": "1s", **LOGIN},
    "elasticsearch": {"url": "http://127.0.0.1:1", "index": "i", "auth": {"api_key": SECRET}},
    "opensearch": {"url": "http://127.0.0.1:1", "index": "i", **LOGIN},
    "influxdb": {
        "url": "http://127.0.0.1:1", "bucket": "b", "measurement": "m", "auth": {"token": SECRET},
    },
    "jdbc": {
        "url": "jdbc:postgresql://127.0.0.1:1/shop", "jars": [driver(POSTGRES)], "table": "t",
        "properties": {"sslpassword": SECRET}, **LOGIN,
    },
    "iceberg": {
        "catalog": {"type": "rest", "url": "http://127.0.0.1:1", "auth": {
            "client_id": "ann", "client_secret": SECRET,
        }},
        "table": "n.t", **KEYS,
    },
    "delta": {"path": "s3://bucket/t", **KEYS},
    "files": {"path": "s3://bucket/t", **KEYS},
}  # fmt: skip
OF_HTTP = {"elasticsearch", "opensearch", "influxdb"}


@pytest.mark.parametrize("name", CONNECTORS)
def test_secrets_of_a_failing_connector(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Checks also what client libraries log at DEBUG."""
    caplog.set_level(logging.DEBUG)
    texts: list[Any] = []
    options = CONNECTORS[name] | ({"retry": {"attempts": 1}} if name in OF_HTTP else {})
    for kind in ("sink", "source"):
        if name not in registry.types(kind):
            continue
        component = registry.find(kind, name)
        given = {key: v for key, v in options.items() if key in component.config_type.model_fields}
        config = component.config_type.model_validate(given)
        made: Any = component.create(config, Context(node="t"))
        texts += [repr(config), str(config), config.model_dump(), config.model_dump_json()]
        texts += [repr(made), str(vars(made))]
        with pytest.raises(PenstockError) as failed:
            made.check()
        texts += [*traceback.format_exception(failed.value), failed.value.fields()]
    assert SECRET not in f"{texts} {caplog.text}"


PIPELINE = """\
name: shop
connections:
  db: {{url: "{url}", auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}}}
sources:
  orders: {{type: postgres, connection: db, table: {schema}.orders}}
transforms:
  seen:
    type: python
    from: orders
    schema: id BIGINT, processes BIGINT
    per: row
    code: |
      from pathlib import Path
      def read(path):
          try:
              return path.read_bytes()
          except OSError:
              return b""
      def transform(row):
          texts = [read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
          found = sum(b"{reversed}"[::-1] in text for text in texts)
          return {{"id": row["id"], "processes": found}}
sinks:
  copy: {{type: postgres, connection: db, from: seen, table: {schema}.copy}}
  totals:
    type: postgres_aggregate
    connection: db
    from: seen
    table: {schema}.landed
    aggregate_table: {schema}.totals
    aggregates: {{rows: {{function: count}}}}
  by_jdbc:
    type: jdbc
    from: seen
    url: jdbc:postgresql://127.0.0.1:{port}/made-up%20shop
    jars: ["{jar}"]
    auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}
    table: {schema}.by_jdbc
  lake:
    type: iceberg
    from: seen
    catalog:
      type: sql
      url: "{url}"
      auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}
      warehouse: lake
    table: {schema}.t
"""


@pytest.mark.spark
def test_secrets_of_a_run(
    postgres: Postgres, cli: CommandLine, penstock_spark: SparkSession, tmp_path: Path
) -> None:
    """Checks the output of commands, the state directory, processes and settings of Spark."""
    schema = postgres.new_schema()
    with postgres.client("postgres", "postgres") as root:
        root.execute(f"CREATE ROLE {schema} LOGIN SUPERUSER PASSWORD '{SECRET}'")
    with postgres.client() as db:
        db.execute(f"CREATE TABLE {schema}.orders AS SELECT 1::bigint AS id")
    url = postgres.login["url"]
    text = PIPELINE.format(
        url=url, user=schema, schema=schema, port=postgres.port, jar=driver(POSTGRES),
        reversed=SECRET[::-1],
    )  # fmt: skip
    (tmp_path / "shop.yaml").write_text(text)
    down = text.replace(f":{postgres.port}/", ":1/").replace("name: shop", "name: down")
    (tmp_path / "down.yaml").write_text(down)
    environment = {"SHOP_PASSWORD": SECRET}
    found: dict[tuple[str, ...], str] = {}
    for words in (
        ("run", "shop.yaml", "--log", "json", "--log-level", "debug"), ("explain", "shop.yaml"),
        ("status", "shop.yaml"), ("status", "shop.yaml", "--json"), ("check", "down.yaml"),
        ("run", "down.yaml", "--log", "json", "--set", "runtime.restart.attempts=1"),
        ("status", "down.yaml"),
    ):  # fmt: skip
        result = cli(tmp_path, *words, environment=environment)
        found[words] = result.stdout + result.stderr
        assert words[:2] != ("run", "shop.yaml") or result.returncode == 0, result
    assert SECRET not in json.dumps([*found.items()])
    assert "could not reach" in found["check", "down.yaml"]
    state = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".yaml"]
    assert state and [path for path in state if SECRET.encode() in path.read_bytes()] == []
    settings = [
        *penstock_spark.sparkContext.getConf().getAll(),
        *penstock_spark.conf.getAll.items(),
    ]
    assert SECRET not in str(settings)
    with postgres.client("postgres") as db:
        for table in ("copy", "by_jdbc"):
            assert db.execute(f"SELECT * FROM {schema}.{table}").fetchall() == [(1, 0)]
