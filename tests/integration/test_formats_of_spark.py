"""Pipelines of the connectors `spark` and `jdbc` in a Spark session."""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow.orc as orc
import pytest

from command_line import CommandLine
from penstock.connectors.jdbc import JdbcSink
from penstock.connectors.jdbc.connection import JdbcConnection
from servers.drivers import H2, driver

pytestmark = pytest.mark.spark

PIPELINE = """\
name: copies
sources:
  people: {{type: spark, provider: xml, path: people.xml, options: {{rowTag: person}}}}
  orders:
    type: jdbc
    url: "jdbc:h2:file:{directory}/shop"
    packages: [{package}]
    table: orders
    partition_column: id
    partitions: 3
sinks:
  people_orc: {{type: spark, from: people, provider: orc, path: people.orc}}
  copy:
    type: jdbc
    from: orders
    url: "jdbc:h2:file:{directory}/copy"
    jars: [{jar}]
    table: copies
    mode: upsert
"""


def test_formats_and_tables_are_copied_once(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "people.xml").write_text(
        "<people><person><id>1</id><name>Ann</name></person>"
        "<person><id>2</id><name>Bob</name></person></people>"
    )
    url, jar = f"jdbc:h2:file:{tmp_path}", driver(H2)
    config = JdbcSink.config_type.model_validate(
        {"url": f"{url}/shop", "jars": [jar], "table": "t"}
    )
    with closing(JdbcConnection(config)) as connection:
        connection.execute(
            "CREATE TABLE orders (id INT PRIMARY KEY, amount DECIMAL(10, 2), seen TIMESTAMP) AS "
            "SELECT x, x / 4.0, TIMESTAMP '2024-01-01 00:00:00.000001' FROM SYSTEM_RANGE(1, 2500)"
        )
        connection.commit()
    (tmp_path / "copies.yaml").write_text(PIPELINE.format(directory=tmp_path, package=H2, jar=jar))
    for _ in range(2):
        result = cli(tmp_path, "run", "copies.yaml")
        assert result.returncode == 0, result.stderr
        (tmp_path / "people.xml").write_text("<people><person><id>3</id></person></people>")
    (tmp_path / "copies.yaml").write_text(
        (tmp_path / "copies.yaml").read_text().replace("rowTag: person", "rowTag: people")
    )
    changed = cli(tmp_path, "run", "copies.yaml")
    assert changed.returncode != 0 and "--fresh" in changed.stderr
    parts = [
        orc.ORCFile(file).read().to_pylist() for file in (tmp_path / "people.orc").glob("*.orc")
    ]
    assert sorted(row["name"] for part in parts for row in part) == ["Ann", "Bob"]
    copy = config.model_copy(update={"url": f"{url}/copy"})
    with closing(JdbcConnection(copy)) as connection:
        found = connection.query('SELECT count(*), max("AMOUNT"), min("SEEN") FROM "copies"')
    assert found == [(2500, Decimal(625), dt.datetime(2024, 1, 1, 0, 0, 0, 1))]


@pytest.mark.parametrize(
    ("node", "message", "hint"),
    [
        ("provider: kafak, path: x", 'no format "kafak"', "Did you mean kafka?"),
        ("provider: avro, path: x", 'no format "avro"', "spark-avro_2.13:4.3"),
        ("provider: parquet, path: missing, options: {my.password: hidden-made-up}",
         "could not read the format parquet", "Check provider"),
    ],
)  # fmt: skip
def test_wrong_formats(
    cli: CommandLine, tmp_path: Path, node: str, message: str, hint: str
) -> None:
    (tmp_path / "p.yaml").write_text(
        f"name: p\nsources:\n  a: {{type: spark, {node}, schema: 'n INT'}}\n"
        "sinks:\n  out: {type: print, from: a}\nruntime: {restart: {attempts: 1, backoff: 1ms}}\n"
    )
    result = cli(tmp_path, "run", "p.yaml")
    assert result.returncode != 0
    assert message in result.stderr and hint in result.stderr, result.stderr
    assert "hidden-made-up" not in result.stderr


def test_the_failure_of_a_transform_while_a_format_is_written(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "1"}\n{"text": "one"}\n')
    (tmp_path / "p.yaml").write_text("""\
name: p
sources:
  rows: {type: files, path: rows.jsonl, schema: text STRING}
transforms:
  numbers:
    type: python
    from: rows
    per: row
    schema: n INT
    on_error: fail
    code: |
      def transform(row):
          return {"n": int(row["text"])}
sinks:
  out: {type: spark, from: numbers, provider: orc, path: out}
runtime: {restart: {attempts: 1, backoff: 1ms}}
""")
    result = cli(tmp_path, "run", "p.yaml")
    assert result.returncode != 0
    assert "invalid literal" in result.stderr and "numbers" in result.stderr, result.stderr
    assert "could not write" not in result.stderr
    assert not [*(tmp_path / "out").glob("*.orc")]
