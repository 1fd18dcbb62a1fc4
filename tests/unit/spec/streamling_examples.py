"""Nodes of Streamling's files, and the options of Penstock that they become, by node."""

from __future__ import annotations

from typing import Any

Example = tuple[str, dict[str, dict[str, Any]]]
REGISTRY = {"url": "http://localhost:18081"}
JSON = {"type": "json", "nulls": "keep", "timestamp_zone": "none", "not_finite": "null"}
WRITTEN = {**JSON, "binary": "hex"}
POSTGRES = {
    "url": "postgresql://127.0.0.1:5432/postgres",
    "auth": {"username": "graph-node", "password": ""},
}
CLICKHOUSE = {
    "url": "clickhouse://localhost:8123/default", "auth": {"username": "default", "password": ""},
}  # fmt: skip

SOURCES: list[Example] = [
    (
        "{type: kafka, topic: t, primary_key: 'a, b', data_format: json, filter: 'x > 7 / 2', "
        "schema: {x: int64, at: timestamp, d: 'decimal(9, 2)', u: uint64}, "
        "include_metadata: true, starting_offsets: latest, telemetry: {labels: {team: x}}}",
        {
            "sources.n_records": {
                "type": "kafka", "brokers": "localhost:9092", "topic": "t", "start": "latest",
                "format": {"type": "json"}, "primary_key": ["a", "b"], "labels": {"team": "x"},
                "schema": {"x": "BIGINT", "at": "TIMESTAMP_NTZ", "d": "DECIMAL(9,2)",
                           "u": "DECIMAL(20,0)"},
                "metadata": {"__headers": "headers", "__kafka_partition": "partition",
                             "__kafka_offset": "offset", "__kafka_timestamp": "timestamp"},
            },
            "transforms.n": {"primary_key": ["a", "b"]},
        },
    ),
    (
        "{type: kafka, topic: t, starting_offsets: '1000', "
        "schema_id_overrides: [{from: 1, to: 2}]}",
        {
            "sources.n_records": {
                "start": {"timestamp": "1970-01-01T00:00:01.000+00:00"},
                "format": {"type": "avro", "registry": {**REGISTRY, "replace_ids": {"1": 2}}},
            },
            "transforms.n_changes": {"columns": {"_gs_op": ""}},
        },
    ),
    (
        "{type: clickhouse, table_name: t, primary_key: id}",
        {
            "sources.n_records": {"type": "clickhouse", "table": "t", **CLICKHOUSE,
                                  "primary_key": ["id"]},
            "transforms.n": {"type": "default", "columns": {"_gs_op": "i"}},
        },
    ),
    (
        "{type: clickhouse, table_name: t, primary_key: id, filter: a = 1, start_at: '5,x', "
        "columns: 'id, a', telemetry: {labels: {team: x}}}",
        {
            "sources.n_records": {
                "query": "SELECT id, a FROM t WHERE (a = 1) AND id >= 5", "table": None,
                "cursor_columns": ["id"], "labels": {"team": "x"},
            },
        },
    ),
    (
        "{type: hybrid, primary_key: id, telemetry: {labels: {team: x}}, bounded_sources: "
        "[{source_type: clickhouse, table_name: t, filter: 'id > 1', start_at: '3'}], "
        "unbounded_source: {source_type: kafka, topic: u, start_at: latest, filter: 'id < 9', "
        "schema_id_overrides: [{from: 3, to: 4}]}, offset_table: {topic_name: \"u's\", "
        "table_name: offsets, topic_column: name, partition_column: p, offset_column: o}}",
        {
            "sources.n_records": {
                "type": "hybrid", "columns_of": "last", "labels": {"team": "x"},
                "primary_key": ["id"],
                "start_offsets": {
                    "type": "clickhouse", **CLICKHOUSE, "cursor_columns": ["partition"],
                    "query": "SELECT p AS partition, max(o) AS offset FROM offsets "
                    "WHERE name = 'u\\'s' GROUP BY p",
                },
                "phases": [
                    {"type": "clickhouse", **CLICKHOUSE, "cursor_columns": ["id"],
                     "query": "SELECT * FROM t WHERE (id > 1) AND id >= 3"},
                    {"type": "kafka", "brokers": "localhost:9092", "topic": "u", "start": "latest",
                     "format": {"type": "avro",
                                "registry": {**REGISTRY, "replace_ids": {"3": 4}}}},
                ],
            },
        },
    ),
    (
        "{type: file, path: 's3://b/x', format: ndjson, primary_key: id, "
        "telemetry: {labels: {team: x}}}",
        {"sources.n_records": {"type": "files", "path": "s3://b/x", "format": {"type": "json"},
                               "watch": True, "primary_key": ["id"], "labels": {"team": "x"}}},
    ),
    (
        "{type: file, path: x, format: parquet, mode: {type: bounded}}",
        {"sources.n_records": {"watch": None, "format": {"type": "parquet"}}},
    ),
    (
        "{type: basic_plugin.random_source, max_rows: 5, options: {max_rows: 6, "
        "record_batch_size: '20', batch_sleep_ms: 500}}",
        {"sources.n_records": {"type": "generate", "rows": 5, "rate": 40},
         "transforms.n": {"type": "sql"}},
    ),
    (
        "{type: postgres_cdc_source, primary_key: id, host: h, port: 5433, database: d, "
        "username: u, password: p, table: t, slot_name: s, publication_name: q, sslmode: require}",
        {
            "sources.n_records": {
                "type": "postgres", "url": "postgresql://h:5433/d", "changes": True,
                "auth": {"username": "u", "password": "p"}, "table": "public.t", "slot": "s",
                "publication": "q", "tls": {"verify": False, "verify_hostname": False},
            },
            "transforms.n_kinds": {"set": {"_gs_op": "_op"}},
            "transforms.n": {"type": "drop", "columns": ["_op"]},
        },
    ),
    (
        "{type: postgres_cdc_source, host: h, database: d, username: u, table: t, slot_name: s, "
        "publication_name: q, emit_update_before_row: 'true'}",
        {
            "sources.n_records": {"before_updates": True},
            "transforms.n_kinds": {"set": {"_gs_op": "CASE WHEN _op = 'ub' THEN 'd' ELSE _op END"}},
        },
    ),
    (
        "{type: acme.orders, primary_key: id, options: {interval: 5s}, telemetry: "
        "{labels: {team: x}}}",
        {"sources.n": {"type": "acme.orders", "interval": "5s", "primary_key": ["id"],
                       "labels": {"team": "x"}}},
    ),
]  # fmt: skip
"""Of the source `n`."""

TRANSFORMS: list[Example] = [
    (
        "{type: sql, primary_key: 'id, \"b\"', sql: 'SELECT \"Id\" AS id FROM i WHERE a / 2 > 1;', "
        "telemetry: {labels: {team: x}}}",
        {"transforms.n": {
            "type": "sql", "sql": "SELECT `Id` AS id, _gs_op FROM i WHERE arroyo_divide(a, 2) > 1",
            "labels": {"team": "x"},
        }},
    ),
    (
        "{type: handler, primary_key: id, from: i, url: 'http://h/{x}', headers: {A: b}, "
        "schema_override: {a: int32, b: null}, one_row_per_request: true, "
        "telemetry: {labels: {team: x}}}",
        {"transforms.n": {
            "type": "http", "from": "i", "url": "http://h/{{x}}", "headers": {"A": "b"},
            "framing": "single", "format": JSON, "response": "replace", "timeout": "300s",
            "schema_override": {"a": "INT", "b": None}, "primary_key": ["id"], "concurrency": 25,
            "labels": {"team": "x"},
        }},
    ),
    (
        "{type: handler, primary_key: id, from: i, url: 'http://h', payload_version: 1, "
        "batch_size: 7, secret_name: api-key}",
        {
            "transforms.n_changes": {"operation_column": "_gs_op", "columns": {"_gs_op": "i"}},
            "transforms.n": {
                "from": "n_changes", "payload_version": 1, "max_records": 7, "framing": "array",
                "headers": {"X-Key": "${STREAMLING__HTTP_SECRET_VALUE__API_KEY}"},
            },
        },
    ),
    (
        "{type: script, primary_key: id, from: i, language: typescript, schema: {b: int64, "
        "a: string}, script: 'function f(i: any) { return i; }', telemetry: {labels: {team: x}}}",
        {"transforms.n": {
            "type": "script", "from": "i", "language": "typescript",
            "schema": {"a": "STRING", "b": "BIGINT", "_gs_op": "STRING"}, "primary_key": ["id"],
            "function": "streamlingProcess", "labels": {"team": "x"},
        }},
    ),
    (
        "{type: dynamic_table, backend_type: Postgres, backend_entity_name: t, schema: s, "
        "column: c, time_column: at, cache: true, cache_refresh_debounce_ms: 50, "
        "sql: 'SELECT a FROM i', telemetry: {labels: {team: x}}}",
        {"transforms.n": {
            "type": "dynamic_table", "sql": "SELECT a FROM i", "column": "c", "time_column": "at",
            "cache": {"ttl": "50ms"}, "labels": {"team": "x"},
            "storage": {
                "type": "postgres", "url": "postgresql://localhost:5432/streamling",
                "auth": {"username": "graph-node", "password": ""}, "table": "s.t",
                "tls": {"verify": False, "verify_hostname": False}, "create_schema": True,
            },
        }},
    ),
    (
        "{type: dynamic_table, backend_type: in-memory, backend_entity_name: t, "
        "sql: 'SELECT a FROM i'}",
        {"transforms.n": {"type": "dynamic_table", "sql": "SELECT a FROM i"}},
    ),
    (
        "{type: basic_plugin.filter_transform, from: i, options: {_gs_op: i, a: \"it's\"}}",
        {"transforms.n": {"type": "filter", "from": "i",
                          "where": "`_gs_op` = 'i' AND `a` = 'it\\'s'"}},
    ),
]  # fmt: skip
"""Of the transform `n`, which reads `i`."""

SINKS: list[Example] = [
    (
        "{type: print, from: i, sample_every: 10, batch_size: 5, batch_flush_interval: 2s, "
        "telemetry: {labels: {team: x}}}",
        {
            "sinks.n": {"type": "print", "format": WRITTEN, "from": "i", "every": 10,
                        "labels": {"team": "x"},
                        "batch": {"max_records": 5, "interval": "2000000us"}},
        },
    ),
    ("{type: blackhole, from: i}", {"sinks.n": {"type": "blackhole", "from": "i"}}),
    (
        "{type: memory, from: i, exclude_gs_op: true}",
        {"transforms.n_rows": {"type": "drop", "columns": ["_gs_op"]},
         "sinks.n": {"type": "memory"}},
    ),
    (
        "{type: webhook, from: i, url: 'http://h', headers: {A: b}, one_row_per_request: true, "
        "skip_on_error: true, payload_version: 1, secret_name: api-key}",
        {
            "transforms.n_rows": {"type": "sql"},
            "sinks.n": {
                "type": "http", "url": "http://h", "framing": "single", "reject": ["4xx", "5xx"],
                "headers": {"A": "b", "X-Key": "${STREAMLING__HTTP_SECRET_VALUE__API_KEY}"},
                "retry": {"statuses": []}, "from": "n_rows",
            },
        },
    ),
    (
        "{type: postgres, from: i, primary_key: id, schema: s, table: t, on_conflict: nothing}",
        {
            "transforms.n_changes": {"operation_column": "_gs_op", "primary_key": ["id"]},
            "sinks.n": {"type": "postgres", **POSTGRES, "table": "s.t", "mode": "upsert",
                        "primary_key": ["id"], "on_conflict": "nothing", "create_schema": True},
        },
    ),
    (
        "{type: postgres, from: i, schema: s, table: t, update_where: {v: '>='}}",
        {"sinks.n": {"primary_key": ["k"], "mode": "upsert", "update_where": {"v": ">="}}},
    ),
    (
        "{type: postgres_aggregate, from: i, primary_key: id, schema: s, landing_table: l, "
        "agg_table: a, group_by: {g: {type: 'varchar(9)'}, h: {from: x}}, aggregate: "
        "{n: {fn: count}, total: {from: v, fn: sum, type: 'numeric(30,5)'}, v: {fn: max}, "
        "w: {fn: avg}}}",
        {"sinks.n": {
            "type": "postgres_aggregate", "table": "s.l", "aggregate_table": "s.a",
            "group_by": {"g": {"column": "g", "type": "STRING"}, "h": {"column": "x"}},
            "aggregates": {
                "n": {"function": "count"}, "v": {"function": "max", "column": "v"},
                "w_sum": {"function": "sum", "column": "w"},
                "w_count": {"function": "count", "column": "w"},
                "total": {"function": "sum", "column": "v", "type": "DECIMAL(30,5)"},
            },
            "mode": "upsert", "primary_key": ["id"], **POSTGRES,
        }},
    ),
    (
        "{type: kafka, from: i, primary_key: 'a,b', topic: t, data_format: avro, "
        "topic_partitions: 7, message_max_bytes: 9000, compression: gzip}",
        {"sinks.n": {
            "type": "kafka", "topic": "t", "brokers": "localhost:9092", "key_columns": ["a", "b"],
            "format": {"type": "avro", "registry": REGISTRY}, "compression": "gzip",
            "headers": {"dbz.op": "{__kind}"}, "properties": {"message.max.bytes": "9000"},
            "create": {"partitions": 7,
                       "config": {"retention.ms": "-1", "cleanup.policy": "compact"}},
        }},
    ),
    (
        "{type: kafka, from: i, topic: t, data_format: json}",
        {"sinks.n": {"key_columns": ["k"], "format": WRITTEN, "compression": "lz4"}},
    ),
    (
        "{type: clickhouse, from: i, table: t, primary_key: id, schema_override: "
        "{a: 'DateTime64(3)'}, schema_overrides: {b: UInt8}, compression: gzip, "
        "append_only_mode: true}",
        {"sinks.n": {
            "type": "clickhouse", **CLICKHOUSE, "table": "t", "order_columns": ["id"],
            "engine": "ReplacingMergeTree(insert_time, is_deleted)", "compression": "zstd",
            "column_types": {"is_deleted": "UInt8", "insert_time": "DateTime",
                             "a": "DateTime64(3)", "b": "UInt8"},
        }},
    ),
    (
        "{type: clickhouse, from: i, table: t, primary_key: id, append_only_mode: false}",
        {
            "transforms.n_changes": {"operation_column": "_gs_op"},
            "sinks.n": {"mode": "upsert", "primary_key": ["id"], "deletes": "remove"},
        },
    ),
    (
        "{type: clickhouse, from: i, table: t, primary_key: id, version_column_name: v}",
        {"sinks.n": {"engine": "ReplacingMergeTree(v, is_deleted)"}},
    ),
    (
        "{type: print_sink, from: i, options: {mode: batch}}",
        {"sinks.n": {"type": "print", "format": WRITTEN}},
    ),
    (
        "{type: s3_sink, from: i, bucket: b, prefix: p/, region: r, access_key_id: k, "
        "secret_access_key: s, session_token: t, endpoint: 'http://e', partition_columns: 'a, b'}",
        {"sinks.n": {
            "type": "files", "path": "s3://b/p", "format": "parquet", "partition_by": ["a", "b"],
            "storage": {
                "region": "r", "endpoint_url": "http://e",
                "auth": {"access_key": "k", "secret_key": "s", "session_token": "t"},
            },
        }},
    ),
    (
        "{type: mysql_sink, from: i, primary_key: id, host: h, port: 3307, database: d, user: u, "
        "password: p, table: t, sslmode: required, options: {batch_size: 9, on_conflict: nothing}}",
        {"sinks.n": {
            "type": "mysql", "url": "mysql://h:3307/d", "table": "t", "mode": "upsert",
            "auth": {"username": "u", "password": "p"}, "primary_key": ["id"],
            "tls": {"verify": False, "verify_hostname": False}, "on_conflict": "nothing",
        }},
    ),
    (
        "{type: sqs, from: i, queue_url: 'http://q', region: r, endpoint_url: 'http://e', "
        "access_key_id: k, secret_access_key: s, session_token: t}",
        {"sinks.n": {"type": "sqs", "queue": "http://q", "region": "r", "format": WRITTEN,
                     "endpoint_url": "http://e",
                     "auth": {"access_key": "k", "secret_key": "s", "session_token": "t"}}},
    ),
]  # fmt: skip
"""Of the sink `n`, which reads `i`, whose primary key is `k`."""

SETTINGS: list[tuple[dict[str, str], str, dict[str, dict[str, Any]]]] = [
    (
        {"KAFKA_SOURCE__BROKERS": "b:1", "KAFKA_SOURCE__SECURITY_PROTOCOL": "SASL_SSL",
         "KAFKA_SOURCE__SASL_MECHANISM": "scram-sha-256", "KAFKA_SOURCE__SASL_USERNAME": "u",
         "KAFKA_SOURCE__SASL_PASSWORD": "p", "KAFKA_SOURCE__CONSUMER_GROUP_ID": "g",
         "KAFKA_SOURCE__CLIENT_ID": "c", "KAFKA_SOURCE__SCHEMA_REGISTRY_URL": "http://r",
         "KAFKA_SOURCE__SCHEMA_REGISTRY_USERNAME": "ru",
         "KAFKA_SOURCE__SCHEMA_REGISTRY_PASSWORD": "rp"},
        "sources: {i: {type: kafka, topic: t}}",
        {"sources.i_records": {
            "brokers": "${STREAMLING__KAFKA_SOURCE__BROKERS}", "tls": True,
            "group": "${STREAMLING__KAFKA_SOURCE__CONSUMER_GROUP_ID}-i",
            "properties": {"client.id": "${STREAMLING__KAFKA_SOURCE__CLIENT_ID}"},
            "auth": {"mechanism": "SCRAM-SHA-256",
                     "username": "${STREAMLING__KAFKA_SOURCE__SASL_USERNAME}",
                     "password": "${STREAMLING__KAFKA_SOURCE__SASL_PASSWORD}"},
            "format": {"type": "avro", "registry": {
                "url": "${STREAMLING__KAFKA_SOURCE__SCHEMA_REGISTRY_URL}",
                "auth": {"username": "${STREAMLING__KAFKA_SOURCE__SCHEMA_REGISTRY_USERNAME}",
                         "password": "${STREAMLING__KAFKA_SOURCE__SCHEMA_REGISTRY_PASSWORD}"},
            }},
        }},
    ),
    (
        {"CLICKHOUSE_SOURCE__URL": "https://h:1", "CLICKHOUSE_SOURCE__USER": "u",
         "CLICKHOUSE_SOURCE__PASSWORD": "p", "CLICKHOUSE_SOURCE__DATABASE": "d",
         "CLICKHOUSE_SOURCE__PAGE_SIZE": "9", "CLICKHOUSE_SOURCE__QUERY_TIMEOUT_SEC": "7"},
        "sources: {i: {type: clickhouse, table_name: t}}",
        {"sources.i_records": {
            "url": "clickhouse://h:1/${STREAMLING__CLICKHOUSE_SOURCE__DATABASE}", "tls": True,
            "auth": {"username": "${STREAMLING__CLICKHOUSE_SOURCE__USER}",
                     "password": "${STREAMLING__CLICKHOUSE_SOURCE__PASSWORD}"},
            "max_records": 9, "timeout": "7s",
        }},
    ),
    (
        {"CLICKHOUSE_SINK__BATCH_SIZE": "9", "CLICKHOUSE_SINK__BATCH_FLUSH_INTERVAL": "3s",
         "CLICKHOUSE_SINK__COMPRESSION": "none"},
        "sinks: {n: {type: clickhouse, from: i, table: t, primary_key: id}}",
        {"sinks.n": {"batch": {"max_records": 9, "interval": "3s"}, "compression": "none"}},
    ),
    (
        {"POSTGRES_SINK__HOST": "h", "POSTGRES_SINK__PORT": "1", "POSTGRES_SINK__USER": "u",
         "POSTGRES_SINK__PASS": "p", "POSTGRES_SINK__DB": "d", "POSTGRES_SINK__SSLMODE": "require",
         "POSTGRES_SINK__BATCH_SIZE": "8", "POSTGRES_SINK__STATEMENT_TIMEOUT_SECS": "6",
         "POSTGRES_SINK_CONNECTIONS__THE_SINK__HOST": "other"},
        "sinks: {the.sink: {type: postgres, from: i, schema: s, table: t}}",
        {"sinks.the_sink": {
            "url": "postgresql://${STREAMLING__POSTGRES_SINK_CONNECTIONS__THE_SINK__HOST}:"
            "${STREAMLING__POSTGRES_SINK__PORT}/${STREAMLING__POSTGRES_SINK__DB}",
            "auth": {"username": "${STREAMLING__POSTGRES_SINK__USER}",
                     "password": "${STREAMLING__POSTGRES_SINK__PASS}"},
            "tls": {"verify": False, "verify_hostname": False}, "timeout": "6s",
            "batch": {"max_records": 8},
        }},
    ),
    (
        {"DYNAMIC_TABLE_BACKEND__POSTGRES__HOST": "h", "EXTERNAL_HTTP_HANDLER__BUFFER_SIZE": "3",
         "DYNAMIC_TABLE_BACKEND__POSTGRES__DT_SCHEMA_NAME": "dt",
         "DYNAMIC_TABLE_BACKEND__POSTGRES__CACHE_ENABLED": "true",
         "DYNAMIC_TABLE_BACKEND__POSTGRES__CACHE_REFRESH_DEBOUNCE_MS": "20",
         "DYNAMIC_TABLE_BACKEND__POSTGRES__SSLMODE": "disable",
         "EXTERNAL_HTTP_HANDLER__TRIGGER_MAX_COUNT": "4",
         "EXTERNAL_HTTP_HANDLER__OPERATOR_TIMEOUT_SEC": "5", "PRINT_SINK__SAMPLE_EVERY": "2"},
        "transforms: {d: {type: dynamic_table, backend_type: postgres, backend_entity_name: e}, "
        "h: {type: handler, from: i, primary_key: k, url: 'http://h'}}\n"
        "sinks: {n: {type: print, from: h}}",
        {
            "transforms.d": {
                "cache": {"ttl": "20ms"},
                "storage": {
                    "type": "postgres", "table": "dt.e",
                    "auth": {"username": "graph-node", "password": ""},
                    "url": "postgresql://${STREAMLING__DYNAMIC_TABLE_BACKEND__POSTGRES__HOST}:5432"
                    "/streamling", "create_schema": True,
                },
            },
            "transforms.h": {"max_records": 4, "concurrency": 3, "timeout": "5s"},
            "sinks.n": {"every": 2},
        },
    ),
]  # fmt: skip
"""Variables without their prefix, parts of a file, and nodes."""
