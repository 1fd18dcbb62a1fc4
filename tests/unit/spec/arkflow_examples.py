"""Components of ArkFlow with all their options, and the options of Penstock that they become."""

from __future__ import annotations

from typing import Any

Example = tuple[str, dict[str, Any]]

INPUTS: list[Example] = [
    (
        """{type: kafka, name: k, brokers: [a:9092], topics: [s, t], consumer_group: g,
        start_from_latest: true, client_id: c, fetch_min_bytes: 1, fetch_max_bytes: 2,
        fetch_max_partition_bytes: 3, fetch_wait_max_ms: 4, transactional_offsets: true,
        security: {protocol: sasl_ssl, tls: {ca: ca.pem, cert: c.pem, key: k.pem, key_password: p,
        insecure_skip_verify: true},
        sasl: {mechanism: scram-sha-256, username: u, password: p}}, codec: {type: json}}""",
        {
            "type": "kafka", "brokers": ["a:9092"], "topic": ["s", "t"], "group": "g",
            "start": "committed", "reset": "latest", "properties": {"client.id": "c"},
            "auth": {"mechanism": "SCRAM-SHA-256", "username": "u", "password": "p"},
            "metadata": ["topic", "partition", "offset", "key", "timestamp"],
        },
    ),
    (
        """{type: mqtt, host: h, port: 8883, client_id: c, topics: [a/#], username: u,
        password: p, qos: 2, clean_session: true, keep_alive: 30,
        tls: {enabled: true, ca: ca.pem, client_cert: c.pem, client_key: k.pem}}""",
        {
            "type": "mqtt", "url": "mqtts://h:8883", "topic": ["a/#"], "qos": 2, "client_id": "c",
            "auth": {"username": "u", "password": "p"}, "keep_alive": "30s", "clean_start": True,
        },
    ),
    (
        """{type: http, address: " 127.0.0.1:8090 ", path: /in, cors_enabled: true,
        auth: {type: basic, username: u, password: p}}""",
        {
            "type": "http", "listen": "127.0.0.1:8090", "path": "/in", "cors": True,
            "auth": {"username": "u", "password": "p"},
        },
    ),
    ("{type: generate, context: '{}', interval: 500ms, count: 5, batch_size: 2}",
     {"type": "impulse", "rate": 2.0, "rows": 3}),
    ("{type: memory, messages: [a, b]}", {"type": "memory", "payloads": ["a", "b"]}),
    (
        """{type: modbus, addr: 'h:502', slave_id: 1, interval: 100ms,
        points: [{type: coils, name: c, address: 7, quantity: 3}]}""",
        {
            "type": "modbus", "connect": "h:502", "unit_id": 1, "interval": "100000us",
            "points": [{"name": "c", "kind": "coils", "address": 7, "quantity": 3}],
        },
    ),
    (
        """{type: nats, url: 'nats://a:1,nats://b:1', mode: {type: jet_stream, stream: S,
        consumer_name: c, durable_name: d}, auth: {username: u, password: p, token: t}}""",
        {
            "type": "nats", "url": ["nats://a:1", "nats://b:1"], "stream": "S", "consumer": "d",
            "auth": {"token": "t"},
        },
    ),
    ("{type: nats, url: 'nats://a:1', mode: {type: regular, subject: s, queue_group: q}}",
     {"subject": "s", "group": "q"}),
    (
        """{type: pulsar, service_url: 'pulsar://h:6650', topic: t, subscription_name: s,
        subscription_type: key_shared, retry_config: {max_attempts: 3},
        auth: {type: oauth2, issuer_url: 'https://i', credentials_url: 'file:///k',
        audience: a}}""",
        {
            "type": "pulsar", "url": "pulsar://h:6650", "subscription_type": "key_shared",
            "auth": {"oauth2": {"issuer_url": "https://i", "key_file": "/k", "audience": "a"}},
        },
    ),
    (
        """{type: redis, mode: {type: single, url: 'redis://u:p@h'}, redis_type: {type: subscribe,
        subscribe: {type: channels, channels: [c]}}}""",
        {"url": "redis://h", "auth": {"username": "u", "password": "p"}, "channel": ["c"]},
    ),
    (
        """{type: redis, mode: {type: cluster, urls: ['redis://h']},
        redis_type: {type: list, list: [l]}}""",
        {"url": ["redis://h"], "cluster": True, "list": ["l"]},
    ),
    ("{type: websocket, url: 'ws://h', timeout: 5, headers: {a: b}}",
     {"type": "websocket", "url": "ws://h", "timeout": "5s", "headers": {"a": "b"}}),
    ("{type: file, input_type: {type: csv, path: x.csv}, query: {query: SELECT 1, table: t}}",
     {"type": "memory"}),
    ("{type: parquet, path: x.parquet, store: {type: http, url: 'http://h'}, query: SELECT 1}",
     {"type": "memory"}),
    ("{type: file, format: json, path: x, object_store: {type: s3}, store: {type: gs}}",
     {"type": "memory"}),
    (
        """{type: sql, select_sql: SELECT * FROM flow.public.t, input_type: {type: postgres,
        uri: 'postgres://u:p@h/d', name: flow, ssl: {ssl_mode: verify_full, root_cert: c}}}""",
        {"type": "memory"},
    ),
    (
        """{type: multiple_inputs, inputs: [{type: memory, name: a, messages: ['1']},
        {type: generate, name: b, context: x, interval: 1s}]}""",
        {},
    ),
]  # fmt: skip
"""Inputs, and options of their sources."""

_STRING = "{type: value, value: k}"
OUTPUTS: list[Example] = [
    ("{type: drop}", {"type": "blackhole"}),
    ("{type: stdout, append_newline: false}", {"type": "print", "newline": False}),
    (
        f"""{{type: kafka, brokers: [a:1], topic: {{type: expr, expr: "concat('t', a)"}},
        key: {_STRING}, client_id: c, compression: gzip, acks: all, value_field: v,
        exactly_once: true, transactional_id: x, security: {{protocol: ssl}},
        offset_commit_group: g, codec: {{type: json}}}}""",
        {
            "type": "kafka", "topic": "{__topic__}", "key": "k", "compression": "gzip",
            "delivery": "exactly_once", "transactional_id": "x", "tls": True,
        },
    ),
    (
        """{type: http, url: 'http://h/{x}', method: put, timeout_ms: 100, retry_count: 3,
        headers: {a: b}, auth: {Bearer: {token: t}}, body_field: b}""",
        {
            "type": "http", "url": "http://h/{{x}}", "method": "PUT", "timeout": "100ms",
            "headers": {"a": "b", "Content-Type": "application/json"}, "auth": {"token": "t"},
        },
    ),
    (
        """{type: influxdb, url: 'http://h', org: o, bucket: b, token: t, measurement: m,
        tags: [{field: a, tag_name: x}, {name: y, value: b}], timestamp_field: at,
        fields: [{field: c, field_name: z, field_type: float},
        {name: w, value: d, value_type: integer}],
        batch_size: 10, flush_interval: 5, retry_count: 2, timeout_ms: 9}""",
        {
            "type": "influxdb", "tags": {"x": "a", "y": "b"}, "timestamp": "at",
            "fields": {"z": {"column": "c", "type": "float"},
                       "w": {"column": "d", "type": "integer"}},
            "batch": {"max_records": 10}, "retry": {"attempts": 2}, "timeout": "9ms",
        },
    ),
    ("{type: mongodb, uri: 'mongodb://u:p@h:1/?tls=true', database: d, collection: c}",
     {"url": "mongodb://h:1/d?tls=true", "auth": {"username": "u", "password": "p"}}),
    (
        f"""{{type: mqtt, host: h, port: 1883, client_id: c, topic: {_STRING}, username: u,
        password: p, qos: 7, clean_session: true, keep_alive: 1, retain: true, value_field: v,
        tls: {{enabled: false}}}}""",
        {"type": "mqtt", "url": "mqtt://h:1883", "topic": "k", "qos": 1, "retain": True},
    ),
    (
        f"""{{type: nats, url: 'nats://h', mode: {{type: jet_stream, subject: {_STRING},
        stream: S}}, auth: {{token: t}}, value_field: v}}""",
        {"type": "nats", "subject": "k", "stream": "S", "auth": {"token": "t"}},
    ),
    (
        f"""{{type: pulsar, service_url: 'pulsar://h', topic: {_STRING}, value_field: v,
        auth: {{type: token, token: t}}}}""",
        {"type": "pulsar", "topic": "k", "auth": {"token": "t"}},
    ),
    (
        f"""{{type: redis, mode: {{type: single, url: 'redis://h'}}, value_field: v,
        redis_type: {{type: hashes, key: {_STRING}, field: '{{a}}'}}}}""",
        {"type": "redis", "hash": "k", "field": "{__field__}"},
    ),
    (
        f"""{{type: redis, mode: {{type: single, url: 'redis://h'}},
        redis_type: {{type: publish, channel: {_STRING}}}}}""",
        {"type": "redis", "channel": "k"},
    ),
    (
        """{type: sql, output_type: {type: mysql, uri: 'mysql://u:p@h:1/d', ssl:
        {ssl_mode: require}}, table_name: t, upsert: true, upsert_keys: [a], batch_size: 5}""",
        {
            "type": "mysql", "url": "mysql://h:1/d", "table": "t", "mode": "upsert",
            "primary_key": ["a"], "auth": {"username": "u", "password": "p"},
        },
    ),
    ("{type: sql, output_type: {type: sqlite, path: x.db}, table: t}",
     {"type": "sqlite", "path": "x.db", "table": "t"}),
]  # fmt: skip
"""Outputs, and options of their sinks."""

_PROTO = "proto_inputs: [p], proto_includes: [q], message_type: a.M"
_PROTO_CODEC = {"type": "protobuf", "files": ["p"], "includes": ["q"], "message": "a.M"}
PROCESSORS: list[Example] = [
    ("{type: json_to_arrow, value_field: v, fields_to_include: [a]}",
     {"type": "decode", "codec": {"type": "json"}, "column": "v", "fields": ["a"]}),
    ("{type: arrow_to_json, value_field: v, fields_to_include: [a]}",
     {"type": "encode", "codec": {"type": "json"}, "column": "v", "fields": ["a"]}),
    ("{type: sql, query: SELECT 1, table_name: t}",
     {"type": "sql", "query": "SELECT 1", "table": "t"}),
    (
        """{type: sql, query: SELECT 1, temporary_list: [{name: r, table_name: t,
        key: {type: expr, expr: id}}]}""",
        {"lookups": [{"table": "t", "key": {"expr": "id"}, "url": "redis://h", "kind": "string",
                      "decode": {"type": "json"}}]},
    ),
    ("{type: batch, count: 3, timeout_ms: 100}", {"type": "merge", "count": 3}),
    ("{type: batch, size: 3, interval: 1s}", {"type": "merge", "count": 3}),
    (f"{{type: protobuf_to_arrow, {_PROTO}, value_field: v, fields_to_include: [a]}}",
     {"type": "decode", "codec": _PROTO_CODEC, "column": "v"}),
    (f"{{type: arrow_to_protobuf, c: {{{_PROTO}}}, fields_to_include: [a], value_field: v}}",
     {"type": "encode", "codec": _PROTO_CODEC, "fields": ["a"]}),
    (f"{{type: arrow_to_protobuf, {_PROTO}}}", {"type": "encode", "codec": _PROTO_CODEC}),
    (f"{{type: protobuf_to_arrow, c: {{{_PROTO}}}}}", {"type": "decode", "codec": _PROTO_CODEC}),
    ("{type: vrl, statement: '.a = 1', timezone: UTC}", {"type": "vrl", "code": ".a = 1"}),
    ("{type: wasm, path: x.wat, function: f, fuel: 5}",
     {"type": "wasm", "module": "x.wat", "function": "f", "fuel": 5}),
    ("{type: wasm, path: x.wat}", {"type": "wasm", "function": "transform"}),
    ("{type: python, function: f, module: m, python_path: [p]}",
     {"type": "python", "function": "f", "module": "m", "python_path": ["p"]}),
    ("{type: python, function: f, script: 'def f(b): return []'}",
     {"type": "python", "code": "def f(b): return []"}),
]  # fmt: skip
"""Processors, and options of their steps."""

BUFFERS: list[Example] = [
    ("{type: memory, capacity: 10, timeout: 2s}", {"rows": 10}),
    ("{type: tumbling_window, interval: 2s}", {}),
    ("{type: tumbling_window, size: 2s}", {}),
    (
        """{type: tumbling_window, interval: 2s, join: {query: SELECT 1, codec: {type: json},
        value_field: v, thread_num: 1}}""",
        {"join": {"query": "SELECT 1", "decode": {"type": "json"}, "column": "v"}},
    ),
    ("{type: session_window, gap: 2s, join: {query: SELECT 1, codec: {type: json}}}",
     {"join": {"query": "SELECT 1", "decode": {"type": "json"}}}),
    ("{type: sliding_window, window_size: 3, slide_size: 2, interval: 2s}",
     {"size": 3, "slide": 2}),
    ("{type: sliding_window, size: 3, slide: 2, interval: 2s}", {"size": 3, "slide": 2}),
]  # fmt: skip
"""Buffers, and options of their windows."""

CODECS: list[Example] = [
    ("{type: json}", {"type": "json"}),
    ("{type: debezium_json}", {"type": "debezium_json"}),
    (f"{{type: protobuf, {_PROTO}}}", _PROTO_CODEC),
    (
        """{type: schema_registry, registry_url: 'http://r', message_type: a.M,
        auth: {type: bearer, token: t}}""",
        {"type": "registry", "url": "http://r", "message": "a.M", "auth": {"token": "t"}},
    ),
]  # fmt: skip
"""Codecs, and the formats of Penstock."""
