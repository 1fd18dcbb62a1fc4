"""Tables of Delta Lake on S3 and of Iceberg in a REST catalog, written by a script of Arroyo."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.rest import RestCatalog

from lake_tables import access_to
from penstock import app
from servers.aws import REGION
from servers.iceberg_rest import IcebergRest
from servers.s3 import Bucket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCRIPT = """\
CREATE TABLE orders (
    id BIGINT NOT NULL, shop TEXT, price DECIMAL(10, 2), at TIMESTAMP NOT NULL, WATERMARK FOR at
) WITH (connector = 'single_file', path = 'orders.json', format = 'json', type = 'source');

CREATE TABLE lake (id BIGINT NOT NULL, shop TEXT, price DECIMAL(10, 2), at TIMESTAMP(6)) WITH (
    connector = 'iceberg', type = 'sink', 'catalog.type' = 'rest', 'catalog.rest.url' = '{rest}',
    namespace = '{namespace}', table_name = 'orders', format = 'parquet',
    'rolling_policy.interval' = INTERVAL '30 seconds'
) PARTITIONED BY (day(at), bucket(id, 4));
INSERT INTO lake SELECT id, shop, price, at FROM orders;

CREATE TABLE hourly (hour TIMESTAMP, shop TEXT, total DECIMAL(20, 2)) WITH (
    connector = 'delta', type = 'sink', path = 's3::{s3}/{bucket}/hourly', format = 'parquet',
    'partitioning.fields' = [shop], 'storage.aws_access_key_id' = '{key}',
    'storage.aws_secret_access_key' = '{secret}', 'storage.aws_region' = '{region}'
);
INSERT INTO hourly
SELECT window.start, shop, total FROM (
    SELECT tumble(INTERVAL '1 hour') AS window, shop, sum(price) AS total
    FROM orders GROUP BY window, shop
);
"""
ROWS = [
    (1, "a", "1.50", "2026-03-01T10:00:00"), (2, "b", "2.25", "2026-03-01T10:30:00.5"),
    (3, "a", None, "2026-03-01T10:45:00"), (4, "a", "4.00", "2026-03-02T00:00:00"),
]  # fmt: skip


def test_tables_in_both_lakes(
    tmp_path: Path, penstock_spark: SparkSession, iceberg_rest: IcebergRest, bucket: Bucket
) -> None:
    storage = bucket.server.storage
    namespace = f"shop{uuid.uuid4().hex[:8]}"
    (tmp_path / "lakes.sql").write_text(SCRIPT.format(
        rest=iceberg_rest.url, namespace=namespace, s3=storage["endpoint_url"], bucket=bucket.name,
        region=REGION, key=storage["auth"]["access_key"], secret=storage["auth"]["secret_key"],
    ))  # fmt: skip
    lines = (json.dumps(dict(zip(("id", "shop", "price", "at"), row, strict=True))) for row in ROWS)
    (tmp_path / "orders.json").write_text("\n".join(lines))
    outcome = app.run(tmp_path / "lakes.sql", spark=penstock_spark.newSession())
    assert outcome.errors == {}, outcome.errors
    table = RestCatalog("other", uri=iceberg_rest.url).load_table((namespace, "orders"))
    found = sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    assert [(row[0], row[1], row[2]) for row in found] == [
        (id, shop, None if price is None else Decimal(price)) for id, shop, price, _ in ROWS
    ]
    assert [row[3].replace(tzinfo=None).isoformat() for row in found] == [
        datetime.fromisoformat(at).isoformat() for *_, at in ROWS
    ]
    days = {task.file.partition[0] for task in table.scan().plan_files()}
    assert {
        each if isinstance(each, date) else date.fromordinal(719_163 + each) for each in days
    } == {date(2026, 3, 1), date(2026, 3, 2)}
    delta = DeltaTable(f"{bucket.url}/hourly", storage_options=access_to(bucket))
    assert delta.metadata().partition_columns == ["shop"]
    hours = sorted(
        (row["hour"].astimezone(UTC).isoformat(), row["shop"], row["total"])
        for row in delta.to_pyarrow_table().to_pylist()
    )
    assert hours == [
        ("2026-03-01T10:00:00+00:00", "a", Decimal("1.50")),
        ("2026-03-01T10:00:00+00:00", "b", Decimal("2.25")),
        ("2026-03-02T00:00:00+00:00", "a", Decimal("4.00")),
    ]
