"""Whole pipelines over messages of Kafka and of HTTP clients."""

from __future__ import annotations

import json
import random
from contextlib import closing
from http.client import HTTPConnection

import polars as pl
import pytest
from kafka_records import put
from pipelines import Row, Workspace, assert_same_rows, at, dump

from servers.kafka import Kafka
from servers.server import free_port

pytestmark = pytest.mark.spark

ORDERS = """
sources:
  orders:
    type: kafka
    brokers: ADDRESS
    topic: INPUT
    max_records: 400
    schema:
      order: >-
        STRUCT<id: BIGINT, placed: TIMESTAMP, customer: STRUCT<id: STRING>,
        lines: ARRAY<STRUCT<sku: STRING, amount: BIGINT>>>
    watermark: {column: at, expression: order.placed, delay: 2 minutes}
  customers:
    type: files
    path: customers.csv
    format: csv
    schema: id STRING, country STRING
    static: true
transforms:
  flat:
    type: select
    from: orders
    columns:
      id: order.id
      at: at
      customer: order.customer.id
      total: aggregate(order.lines, 0L, (sum, line) -> sum + line.amount)
  once: {type: dedupe, from: flat, keys: [id]}
  placed:
    type: sql
    sql: |
      SELECT at, total, coalesce(country, 'unknown') AS country
      FROM once LEFT JOIN customers ON customer = customers.id
  sliding:
    type: sql
    sql: |
      SELECT window.start AS start, country, count(*) AS orders, sum(total) AS total
      FROM placed GROUP BY window(at, '10 minutes', '5 minutes'), country
sinks:
  out:
    type: kafka
    from: sliding
    brokers: ADDRESS
    topic: OUTPUT
    mode: upsert
    primary_key: [start, country]
"""


def test_nested_json_of_kafka_to_upserts_of_sliding_windows(
    workspace: Workspace, kafka: Kafka
) -> None:
    """A third of the orders is delivered twice, within a minute."""
    chance = random.Random(23)
    orders = [_order(number, 6 * number, chance) for number in range(600)]
    delivered = [
        (number + delay, dump(order).encode())
        for number, order in enumerate(orders)
        for delay in ([0] if number % 3 else [0, chance.uniform(0, 10)])
    ]
    customers = pl.DataFrame(
        {"id": f"c{n}", "country": ["DE", "FR", "PT"][n % 3]} for n in range(9)
    )
    customers.write_csv(workspace.root / "customers.csv")
    source, target = kafka.create_topic(), kafka.create_topic(partitions=2)
    put(kafka, source, *(value for _, value in sorted(delivered)), b"{")
    text = ORDERS.replace("ADDRESS", kafka.address)
    workspace.run(text.replace("INPUT", source).replace("OUTPUT", target), until="caught_up")

    flat = pl.DataFrame(
        {"at": order["placed"], "id": order["customer"]["id"],
         "total": sum(line["amount"] for line in order["lines"])}
        for order in (row["order"] for row in orders)
    )  # fmt: skip
    placed = flat.join(customers, on="id", how="left").with_columns(
        pl.col("country").fill_null("unknown")
    )
    start = pl.col("at").dt.truncate("5m")
    windows = pl.concat(
        placed.with_columns((start - pl.duration(minutes=back)).alias("start")) for back in (0, 5)
    )
    expected = windows.group_by("start", "country").agg(
        pl.len().alias("orders"), pl.col("total").sum()
    )
    messages = kafka.messages(target)
    latest = {message.key(): json.loads(message.value()) for message in messages}
    written = pl.DataFrame(list(latest.values())).with_columns(
        pl.col("start").str.to_datetime("%FT%TZ").dt.replace_time_zone("UTC")
    )
    assert_same_rows(written, expected)
    assert [letter["payload"] for letter in workspace.dead_letters()] == [b"{"]


def _order(number: int, seconds: int, chance: random.Random) -> Row:
    lines = [{"sku": f"s{n}", "amount": chance.randrange(100)} for n in range(chance.randrange(3))]
    return {
        "order": {
            "id": number,
            "placed": at(seconds + chance.randrange(60)),
            "customer": {"id": f"c{chance.randrange(10)}"},
            "lines": lines,
        }
    }


EVENTS = """
sources:
  events:
    type: http
    listen: 127.0.0.1:PORT
    path: /events
    framing: array
    auth: {token: "${env:WEBHOOK_TOKEN}"}
    schema: id BIGINT, device STRING, value BIGINT
transforms:
  devices:
    type: sql
    sql: SELECT device, count(*) AS n, max(value) AS highest FROM events GROUP BY device
sinks:
  events_out: {type: memory, from: events}
  devices_out: {type: memory, from: devices, mode: upsert, primary_key: device}
"""


def test_a_webhook_with_a_bearer_token(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests before and after a restart. Those without the token have no effect."""
    monkeypatch.setenv("WEBHOOK_TOKEN", "made-up")
    chance, port = random.Random(24), free_port()
    text = EVENTS.replace("PORT", str(port))
    events = [
        {"id": number, "device": f"d{chance.randrange(7)}", "value": chance.randrange(1000)}
        for number in range(240)
    ]
    for first in (0, 120):
        handle = workspace.start(text)
        try:
            while _post(port, "made-up", [{"id": "not a number"}] if not first else []) != 200:
                assert handle.wait(0.05) is None
            for low in range(first, first + 120, 40):
                assert _post(port, "made-up", events[low : low + 40]) == 200
                assert _post(port, "other", events) == _post(port, None, events) == 401
            workspace.await_rows(handle, "events_out", first + 120)
        finally:
            handle.stop()
        outcome = handle.wait(60)
        assert outcome is not None and (outcome.ending, outcome.errors) == ("stopped", {})
    frame = pl.DataFrame(events)
    assert_same_rows(workspace.result("events_out"), frame)
    workspace.run(text, until="caught_up")
    devices = frame.group_by("device").agg(
        pl.len().alias("n"), pl.col("value").max().alias("highest")
    )
    assert_same_rows(workspace.result("devices_out"), devices)
    assert [letter["code"] for letter in workspace.dead_letters()] == ["wrong-type"]


def _post(port: int, token: str | None, events: list[Row]) -> int | None:
    """Returns the status of a request with events, None if no server listens."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        try:
            connection.request("POST", "/events", json.dumps(events), headers)
        except ConnectionRefusedError:
            return None
        return connection.getresponse().status
