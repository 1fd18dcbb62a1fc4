"""The examples of Streamling's README, in `streamling_readme/`, against the servers they name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kafka_records import put
from registry_formats import written
from test_streamling_servers import Service, service, settings  # noqa: F401

from servers.apicurio import Apicurio
from servers.clickhouse import DATABASE, ClickHouse
from servers.kafka import Kafka
from servers.postgres import Postgres

if TYPE_CHECKING:
    from command_line import CommandLine

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parent / "streamling_readme"
EVENT = {
    "type": "record", "name": "Event",
    "fields": [{"name": "id", "type": "long"}, {"name": "event_type", "type": "string"},
               {"name": "amount", "type": "long"}],
}  # fmt: skip
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
EVENTS = [(1, "a", 500, "c"), (2, "b", 2000, "c"), (2, "b", 3000, "u"), (3, "a", -5, "c")]
TOPICS = ("raw.event.transaction", "raw.events", "app.events")
SCHEMAS = ("app", "finance", "trading", "analytics", "streamling")
TABLES = ("orders", "events", "large_transactions")


@pytest.fixture
def database(postgres: Postgres) -> Iterator[Any]:
    """A connection to PostgreSQL without the tables of the examples."""
    with postgres.client() as client:
        client.execute(f"DROP TABLE IF EXISTS {', '.join(f'public.{each}' for each in TABLES)}")
        client.execute(f"DROP SCHEMA IF EXISTS {', '.join(SCHEMAS)} CASCADE")
        yield client


def rows(text: str) -> list[Any]:
    return sorted((json.loads(line) for line in text.splitlines()), key=str)


def test_examples(
    cli: CommandLine, kafka: Kafka, apicurio: Apicurio, postgres: Postgres, database: Any,
    clickhouse: ClickHouse, service: Service, tmp_path: Path,  # noqa: F811
) -> None:  # fmt: skip
    environment = settings(kafka, apicurio, postgres, clickhouse) | {
        "STREAMLING__PLUGIN__PATH": str(EXAMPLES / "acme.py"),
        "STREAMLING__PLUGIN__RANDOM_SOURCE__BATCH_SLEEP_MS": "0",
        "STREAMLING__NUM_RECORDS_BEFORE_STOP": "1000000",
    }
    for topic in (*TOPICS, "orders_live", "user.events", "crm.accounts"):
        kafka.create_topic(topic)
    for topic in TOPICS:
        for id_, type_, amount, kind in EVENTS:
            record = {"id": id_, "event_type": type_, "amount": amount}
            payload = written(apicurio, f"{topic}-value", EVENT, record)
            put(kafka, topic, *payload, headers=[("dbz.op", kind.encode())])
    put(kafka, "orders_live", *written(apicurio, "orders_live-value", ORDER, {"id": 2}))
    put(kafka, "user.events", b'{"event_id": 1, "user_id": "u"}')
    for id_, customer, tier in ((1, "x", "vip"), (2, "y", "free")):
        account = {"id": id_, "customer_id": customer, "tier": tier, "amount": 1}
        put(kafka, "crm.accounts", json.dumps(account).encode())
    for table in ("orders_archive", "orders", "test_output"):
        clickhouse(f"DROP TABLE IF EXISTS {DATABASE}.{table}")
    for table in ("orders_archive", "orders"):
        clickhouse(
            f"CREATE TABLE {DATABASE}.{table} (id Int64) ENGINE = MergeTree ORDER BY id",
            f"INSERT INTO {DATABASE}.{table} VALUES (1)",
        )

    def run(name: str) -> str:
        text = (EXAMPLES / f"{name}.yaml").read_text()
        text = text.replace("http://localhost:8087", f"{service.url}/readme")
        (tmp_path / f"{name}.yaml").write_text(text)
        done = cli(tmp_path, "streamling", f"{name}.yaml", environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def query(text: str) -> list[Any]:
        return list(database.execute(text).fetchall())

    large = [{"id": 2, "event_type": "b", "amount": 2000, "_gs_op": "i"},
             {"id": 2, "event_type": "b", "amount": 3000, "_gs_op": "u"}]  # fmt: skip
    assert rows(run("quick_start")) == large
    run("overview")
    assert query("SELECT id, amount FROM public.large_transactions") == [(2, 3000)]
    run("building_data_flows")
    found = query("SELECT id, risk_score FROM app.orders ORDER BY id")
    assert found == [(1, "low"), (2, "high")]
    run("plugin_examples")
    assert query("SELECT min(num_field) > 100, count(*) > 7000 FROM public.orders") == [
        (True, True)
    ]
    run("custom_transform")
    assert query("SELECT id FROM public.events ORDER BY id") == [(1,), (2,), (3,)]
    kinds = ["i", "i", "u", "i"]
    assert [row["_gs_op"] for row in map(json.loads, run("custom_sink").splitlines())] == kinds
    assert [row["_gs_op"] for row in rows(run("plugin_pipeline"))] == ["i"] * 40

    printed = rows(run("sections"))
    assert [row["id"] for row in printed if [*row] == ["id", "_gs_op"]] == [1, 1, 2]
    assert len(printed) == 6
    found = query("SELECT account, balance FROM finance.account_balances ORDER BY 1")
    assert found == [("a", 495), ("b", 3000)]
    assert query("SELECT market, trade_count, total_volume, avg_price_sum, avg_price_count "
                 "FROM trading.market_stats ORDER BY 1") == [
        ("a", 2, 495, 5.0, 2), ("b", 1, 3000, 2.5, 1),
    ]  # fmt: skip
    assert query("SELECT total_count FROM analytics.global_totals") == [(3,)]
    assert clickhouse(f"SELECT id, amount FROM {DATABASE}.test_output FINAL ORDER BY id") == [
        (1, 500), (2, 3000),
    ]  # fmt: skip
    assert len(kafka.messages("custom_topic")) == 4
    notified = [row for body in service.kept["/readme/notify"] for row in body]
    assert sorted(row["status"] for row in notified) == [f"{t}_processed" for t in "aabb"]
    assert all("tier" not in row for row in notified)

    assert rows(run("dynamic_tables")) == [
        {"id": 1, "customer_id": "x", "amount": 1, "created_at": None, "_gs_op": "i"}
    ]
    assert query("SELECT value FROM streamling.user_dedup") == [("u",)]
    assert query("SELECT value FROM streamling.user_tracking_table") == []
