"""Files of ArkFlow with Redis and PostgreSQL: lookups, hashes, tables that are read and written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from servers.postgres import PASSWORD as POSTGRES_PASSWORD
from servers.postgres import Postgres
from servers.redis import PASSWORD, USER, Redis

if TYPE_CHECKING:
    from command_line import CommandLine

pytestmark = pytest.mark.spark

STREAMS = """\
streams:
  - id: lookups
    temporary:
      - name: names
        type: redis
        mode: {{type: single, url: "{redis}"}}
        redis_type: {{type: string}}
        codec: {{type: json}}
    input: {{type: memory, messages: ['{{"id": 1, "v": 5}}', '{{"id": 2, "v": 6}}', '{{"id": 3}}']}}
    pipeline:
      processors:
        - type: json_to_arrow
        - type: sql
          query: "SELECT f.id, n.name, f.v FROM flow f JOIN n ON f.id = n.id"
          temporary_list:
            - {{name: names, table_name: n, key: {{type: expr, expr: "concat('{key}:', id)"}}}}
        - type: arrow_to_json
    output:
      type: redis
      mode: {{type: single, url: "{redis}"}}
      redis_type:
        type: hashes
        key: {{type: value, value: "{key}"}}
        field: {{type: expr, expr: "concat('f', id)"}}
    error_output:
      type: redis
      mode: {{type: single, url: "{redis}"}}
      redis_type: {{type: list, key: {{type: value, value: "{key}:errors"}}}}
  - id: tables
    input:
      type: sql
      select_sql: "SELECT id, name, v * 2 AS v FROM flow.{schema}.read WHERE id < 3"
      input_type: {{type: postgres, uri: "{postgres}", ssl: {{ssl_mode: disable}}}}
    pipeline: {{processors: []}}
    output:
      type: sql
      output_type: {{type: postgres, uri: "{postgres}"}}
      table_name: "{schema}.written"
      upsert: true
      upsert_keys: [id]
"""


def test_lookups_and_tables(
    cli: CommandLine, redis: Redis, postgres: Postgres, tmp_path: Path
) -> None:
    key, schema = redis.new_key(), postgres.new_schema()
    client = redis.client()
    client.set(f"{key}:1", '{"id": 1, "name": "one"}')
    client.set(f"{key}:2", '{"id": 2, "name": "two"}')
    with postgres.client() as connection:
        connection.execute(f"CREATE TABLE {schema}.read (id INT PRIMARY KEY, name TEXT, v FLOAT)")
        connection.execute(f"INSERT INTO {schema}.read VALUES (1,'a',1.5),(2,NULL,2),(3,'c',3)")
        connection.execute(
            f"CREATE TABLE {schema}.written (id INT PRIMARY KEY, name TEXT, v FLOAT)"
        )
        connection.execute(f"INSERT INTO {schema}.written VALUES (1,'old',0)")
        connection.commit()
    login = postgres.login
    url = str(login["url"]).replace("://", f"://{login['auth']['username']}:{POSTGRES_PASSWORD}@")
    (tmp_path / "x.yaml").write_text(
        STREAMS.format(
            redis=redis.url.replace("://", f"://{USER}:{PASSWORD}@"), key=key, schema=schema,
            postgres=url,
        )
    )  # fmt: skip
    done = cli(tmp_path, "run", "x.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    assert client.hgetall(key) == {
        b"f1": b'{"id":1,"name":"one","v":5}', b"f2": b'{"id":2,"name":"two","v":6}',
    }  # fmt: skip
    assert client.lrange(f"{key}:errors", 0, -1) == [b'{"id": 3}']
    with postgres.client() as connection:
        found = connection.execute(f"SELECT * FROM {schema}.written ORDER BY id").fetchall()
    assert found == [(1, "a", 3.0), (2, None, 4.0)]
