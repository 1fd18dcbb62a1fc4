"""Pipelines as users of Streamling write them: each has a plan without errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.spec.yaml.writer import convert

KAFKA_SOURCE = "sources:\n  {name}: {{type: kafka, topic: app.{name}, primary_key: id}}\n"
PIPELINES = {
    "quick start": """\
sources:
  raw_transactions: {type: kafka, topic: raw.event.transaction, primary_key: id}
transforms:
  large_transactions:
    type: sql
    primary_key: id
    sql: |
      SELECT *
      FROM raw_transactions
      WHERE amount > 1000
sinks:
  print_large: {type: print, from: large_transactions}
""",
    "several stages": """\
sources:
  orders:
    type: basic_plugin.random_source
    options: {max_rows: "10000", record_batch_size: "1000"}
transforms:
  recent:
    type: sql
    primary_key: num_field
    sql: SELECT * FROM orders WHERE now() > now() - interval '1 hour'
  enriched: {type: handler, from: recent, url: "http://localhost:8087/enrich", primary_key: id,
             one_row_per_request: false}
  scored:
    type: script
    from: enriched
    language: typescript
    script: |
      function process(input) {
        input.risk_score = input.num_field > 1000 ? 'high' : 'low';
        return input;
      }
    primary_key: id
sinks:
  pg_orders: {type: postgres, from: scored, schema: app, table: orders, primary_key: id}
""",
    "plugins only": """\
sources:
  plugin_data: {type: basic_plugin.random_source, options: {max_rows: "50"}}
transforms:
  updated: {from: plugin_data, type: basic_plugin.filter_transform, options: {_gs_op: i}}
sinks:
  print.updated: {from: updated, type: print_sink, options: {mode: batch}}
""",
    "a name with a dot": """\
sources:
  raw.transactions: {type: kafka, topic: raw.event.transaction}
transforms:
  large: {type: sql, primary_key: id, sql: SELECT * FROM raw.transactions WHERE amount > 1000}
sinks:
  pg.large: {from: large, type: postgres, schema: public, table: large, primary_key: id}
""",
    "a hybrid source": """\
sources:
  orders:
    type: hybrid
    bounded_sources: [{source_type: clickhouse, table_name: orders_archive}]
    unbounded_source: {source_type: kafka, topic: orders_live, start_at: earliest}
    primary_key: id
transforms: {}
sinks:
  ch: {type: clickhouse, from: orders, table: out, primary_key: id, compression: gzip}
""",
    "aggregates": KAFKA_SOURCE.format(name="trades") + """\
transforms: {}
sinks:
  market_stats:
    type: postgres_aggregate
    from: trades
    schema: trading
    landing_table: trade_log
    agg_table: market_stats
    primary_key: trade_id
    group_by: {market: {type: varchar(100)}}
    aggregate:
      trade_count: {fn: count}
      total_volume: {from: volume, fn: sum, type: "numeric(30,5)"}
      avg_price: {from: price, fn: avg}
  totals:
    type: postgres_aggregate
    from: trades
    schema: trading
    landing_table: event_log
    agg_table: global_totals
    primary_key: trade_id
    aggregate: {total_count: {fn: count}}
""",
    "functions and operators": KAFKA_SOURCE.format(name="events") + """\
transforms:
  wide: {type: sql, primary_key: id, sql: "SELECT id, to_u256(a) AS a, tags FROM events"}
  made:
    type: sql
    primary_key: id
    sql: |
      SELECT id, a * 2 AS twice, json_value(tags, '$.a') AS tag, _gs_keccak256(id) AS hash
      FROM wide
      WHERE a > to_u256(5) AND split_index(tags, ',', 0) <> 'x'
sinks:
  out: {type: print, from: made, sample_every: "10"}
""",
    "a dynamic table that deduplicates": KAFKA_SOURCE.format(name="events") + """\
transforms:
  seen_users:
    type: dynamic_table
    backend_type: Postgres
    backend_entity_name: user_dedup
    sql: |
      SELECT user_id
      FROM events
  vips: {type: dynamic_table, backend_type: postgres, backend_entity_name: vips}
  filtered:
    type: sql
    sql: |
      SELECT *
      FROM events
      WHERE NOT dynamic_table_check('seen_users', user_id) OR dynamic_table_check('vips', user_id)
    primary_key: event_id
sinks:
  topic: {type: kafka, from: filtered, topic: custom, topic_partitions: 10, data_format: avro}
  hook: {type: webhook, from: filtered, url: "http://localhost:8087/notify"}
  none: {type: blackhole, from: filtered}
""",
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_pipeline(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "pipeline.yaml"
    file.write_text(PIPELINES[name])
    plan = app.plan([file])
    converted = tmp_path / "converted.yaml"
    converted.write_text(convert([str(file)]))
    again = app.plan([converted])
    assert {*again.nodes} == {*plan.nodes}
