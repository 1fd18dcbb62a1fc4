"""Whole pipelines over event time. Polars computes the expected rows."""

from __future__ import annotations

import random

import polars as pl
import pytest
from pipelines import START, Row, Workspace, assert_same_rows, at

pytestmark = pytest.mark.spark

LOGS = r"""
sources:
  lines: {type: files, path: logs/*.log, format: text, order: name, max_files: 1}
transforms:
  parsed:
    type: sql
    sql: |
      SELECT try_to_timestamp(
               regexp_extract(value, '\\[([^]]+)\\]', 1), 'dd/MMM/yyyy:HH:mm:ss Z') AS at,
             regexp_extract(value, '"([A-Z]+) ', 1) AS method,
             try_cast(regexp_extract(value, '" ([0-9]+) ', 1) AS INT) AS status,
             try_cast(regexp_extract(value, ' ([0-9]+)$', 1) AS BIGINT) AS bytes
      FROM lines
    watermark: {column: at, delay: 1 minute}
  traffic:
    type: sql
    sql: |
      SELECT window.start AS start, method, count(*) AS requests, sum(bytes) AS bytes,
             count_if(status >= 500) AS failures
      FROM parsed GROUP BY window(at, '5 minutes'), method
sinks:
  out: {type: memory, from: traffic}
"""


def test_logs_parsed_in_sql_and_windowed_by_the_parsed_time(workspace: Workspace) -> None:
    chance = random.Random(15)
    lines = []
    for number in range(600):
        time = at(4 * number - chance.randrange(60)).strftime("%d/%b/%Y:%H:%M:%S +0000")
        method, status = chance.choice(["GET", "POST"]), chance.choice([200, 404, 503])
        lines.append(f'10.0.0.1 - - [{time}] "{method} /a" {status} {chance.randrange(5000)}')
    broken = ['10.0.0.1 - - [yesterday] "GET /a" 200 17', "Segmentation fault (core dumped)"]
    for number in range(2):
        part = [*lines[300 * number : 300 * number + 300]]
        part[100:100] = broken[number : number + 1]
        workspace.put(f"logs/{number}.log", part)
    assert workspace.run(LOGS).ending == "complete"

    pattern = r'\[(?<at>[^]]+)\] "(?<method>[A-Z]+) /a" (?<status>\d+) (?<bytes>\d+)$'
    parsed = pl.DataFrame({"line": lines}).select(
        pl.col("line").str.extract_groups(pattern).struct.unnest()
    )
    expected = (
        parsed.with_columns(
            pl.col("at").str.to_datetime("%d/%b/%Y:%H:%M:%S %z").alias("at"),
            pl.col("status", "bytes").cast(pl.Int64),
        )
        .group_by(pl.col("at").dt.truncate("5m").alias("start"), "method")
        .agg(
            pl.len().alias("requests"),
            pl.col("bytes").sum(),
            (pl.col("status") >= 500).sum().alias("failures"),
        )
    )
    assert_same_rows(workspace.result(), expected)
    assert workspace.counts["parsed"]["without_event_time"] == len(broken)


SESSIONS = """
sources:
  clicks:
    type: files
    path: clicks/*.jsonl
    order: name
    max_files: 1
    schema: user STRING, at TIMESTAMP, amount BIGINT
    watermark: {column: at, delay: 2 minutes}
transforms:
  visits:
    type: sql
    sql: |
      SELECT user, session_window.start AS start, session_window.end AS end,
             count(*) AS clicks, sum(amount) AS amount
      FROM clicks GROUP BY user, session_window(at, '5 minutes')
sinks:
  out: {type: memory, from: visits}
"""


def test_session_windows(workspace: Workspace) -> None:
    chance = random.Random(16)
    rows = [
        {
            "user": f"u{chance.randrange(12)}",
            "at": at(20 * number + chance.randrange(120_000) / 1000),
            "amount": chance.randrange(100),
        }
        for number in range(600)
    ]
    workspace.put_rows("clicks", rows, files=2)
    assert workspace.run(SESSIONS).ending == "complete"
    gap = pl.duration(minutes=5)
    sessions = (
        pl.DataFrame(rows)
        .sort("user", "at")
        .with_columns(
            (pl.col("at").diff() > gap).fill_null(True).cum_sum().over("user").alias("session")
        )
        .group_by("user", "session")
        .agg(
            pl.col("at").min().alias("start"),
            (pl.col("at").max() + gap).alias("end"),
            pl.len().alias("clicks"),
            pl.col("amount").sum(),
        )
        .drop("session")
    )
    assert 12 < len(sessions) < 500
    assert_same_rows(workspace.result(), sessions)


PAYMENTS = """
sources:
  orders:
    type: files
    path: orders/*.jsonl
    order: name
    max_files: 1
    schema: id BIGINT NOT NULL, ordered TIMESTAMP, total BIGINT
    watermark: {column: ordered, delay: 1 minute}
  payments:
    type: files
    path: payments/*.jsonl
    order: name
    max_files: 1
    schema: order_id BIGINT NOT NULL, paid TIMESTAMP, amount BIGINT
    watermark: {column: paid, delay: 1 minute}
transforms:
  settled:
    type: sql
    sql: |
      SELECT id, ordered, total, order_id, paid, amount
      FROM orders FULL OUTER JOIN payments
      ON id = order_id AND paid BETWEEN ordered AND ordered + INTERVAL 15 MINUTES
sinks:
  out: {type: memory, from: settled}
"""


def test_outer_join_of_two_streams_within_15_minutes(workspace: Workspace) -> None:
    """Some orders have two payments, some a payment that is too late or none."""
    chance = random.Random(17)
    orders: list[Row] = [
        {"id": number, "ordered": at(20 * number), "total": chance.randrange(1000)}
        for number in range(300)
    ]
    payments: list[Row] = [
        {"order_id": order["id"], "paid": at(20 * order["id"] + delay), "amount": delay}
        for order in orders
        for delay in chance.sample([0, 1, 60, 899, 900, 901, 1500], chance.randrange(3))
    ]
    payments += [{"order_id": 1000 + n, "paid": at(60 * n), "amount": n} for n in range(20)]
    payments.sort(key=lambda payment: payment["paid"])
    workspace.put_rows("orders", orders, files=2)
    workspace.put_rows("payments", payments, files=2)
    assert workspace.run(PAYMENTS).ending == "complete"

    left, right = pl.DataFrame(orders), pl.DataFrame(payments)
    delay = pl.col("paid") - pl.col("ordered")
    pairs = (
        left.join(right, left_on="id", right_on="order_id", coalesce=False)
        .filter(delay.is_between(pl.duration(), pl.duration(minutes=15)))
    )  # fmt: skip
    unpaid = left.join(pairs, on="id", how="anti")
    unknown = right.join(pairs, on=["order_id", "paid"], how="anti")
    assert min(len(pairs), len(unpaid), len(unknown)) > 20
    expected = pl.concat([pairs, unpaid, unknown], how="diagonal")
    assert_same_rows(workspace.result(), expected)


SALES = """
sources:
  sales:
    type: files
    path: sales/*.jsonl
    order: name
    max_files: 1
    schema: customer STRING, product STRING, amount BIGINT, at TIMESTAMP
    watermark: {column: at, delay: 10 seconds}
transforms:
  totals:
    type: sql
    sql: SELECT customer, count(*) AS sales, sum(amount) AS total FROM sales GROUP BY customer
  minutes:
    type: sql
    sql: |
      SELECT window.start AS minute, product, sum(amount) AS amount
      FROM sales GROUP BY window(at, '1 minute'), product
  top:
    type: sql
    scope: batch
    sql: |
      SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY minute ORDER BY amount DESC, product) AS rank
        FROM minutes
      ) WHERE rank <= 3
sinks:
  totals_out: {type: memory, from: totals, mode: upsert, primary_key: customer}
  top_out: {type: memory, from: top}
"""


def test_running_totals_and_the_top_three_of_each_minute(workspace: Workspace) -> None:
    chance = random.Random(18)
    rows = [
        {
            "customer": f"c{chance.randrange(25)}",
            "product": f"p{chance.randrange(8)}",
            "amount": chance.randrange(1, 50),
            "at": at(number + chance.randrange(10_000) / 1000),
        }
        for number in range(600)
    ]
    workspace.put_rows("sales", rows, files=2)
    workspace.run(SALES)
    sales = pl.DataFrame(rows)
    totals = sales.group_by("customer").agg(
        pl.len().alias("sales"), pl.col("amount").sum().alias("total")
    )
    assert_same_rows(workspace.result("totals_out"), totals)
    minutes = sales.group_by(pl.col("at").dt.truncate("1m").alias("minute"), "product").agg(
        pl.col("amount").sum()
    )
    best = minutes.sort(["minute", "amount", "product"], descending=[False, True, False])
    top = best.with_columns(pl.int_range(1, pl.len() + 1).over("minute").alias("rank"))
    assert top["minute"].min() == START
    assert_same_rows(workspace.result("top_out"), top.filter(pl.col("rank") <= 3))
