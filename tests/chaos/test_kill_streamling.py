"""A file of Streamling whose run is killed between its sinks: the next run writes the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from deaths import run_until_killed
from moments import Change
from pyspark.sql import SparkSession

from penstock import app
from servers.postgres import PASSWORD, Postgres

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

FILE = """\
sources:
  rows: {{type: file, path: in, format: csv, mode: {{type: bounded}}}}
transforms: {{}}
sinks:
  first: {{type: postgres, from: rows, schema: {schema}, table: first}}
  second: {{type: postgres, from: rows, schema: {schema}, table: second}}
"""


@pytest.mark.parametrize("nth", [1, 2])
def test_no_row_is_lost_or_written_twice(
    penstock_spark: SparkSession, postgres: Postgres, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, nth: int,
) -> None:  # fmt: skip
    schema = postgres.new_schema()
    login = postgres.login
    for name, value in {
        "HOST": "127.0.0.1", "PORT": postgres.port, "PASS": PASSWORD,
        "USER": login["auth"]["username"], "DB": str(login["url"]).rpartition("/")[2],
    }.items():  # fmt: skip
        monkeypatch.setenv(f"STREAMLING__POSTGRES_SINK__{name}", str(value))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "x.yaml"
    file.write_text(FILE.format(schema=schema))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n1\n2\n3\n")
    moment = Change("*/penstock-batch.json", "after", nth)
    assert run_until_killed(file, moment, penstock_spark)
    app.run(file, spark=penstock_spark)
    with postgres.client() as connection:
        for table in ("first", "second"):
            query = f"SELECT id FROM {schema}.{table} ORDER BY id"
            assert [int(id_) for (id_,) in connection.execute(query).fetchall()] == [1, 2, 3]
