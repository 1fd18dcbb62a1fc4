"""The settings of Streamling's application config, with their readings."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded

_STATE = "offsets are in the state directory of the run (`runtime.state`)"
_BATCHES = "Spark makes batches of the rows that have arrived"
_POOL = "a sink has one connection"
_RETRIES = "failed requests are repeated until they succeed"
_PUSH = "metrics are served to Prometheus: `penstock run --listen`"
_TEST = "a setting of Streamling's own tests"
_RUST = "plugins are Python components; see Come from Streamling"
_INSPECT = "`penstock inspect` shows the rows of a node"
_KAFKA = (
    "brokers = `brokers`; by default localhost:9092",
    "security_protocol = `tls` and `auth`",
    "sasl_mechanism = `auth.mechanism`",
    "sasl_username = `auth.username`",
    "sasl_password = `auth.password`",
    "schema_registry_url = `registry.url`; by default http://localhost:18081",
    "schema_registry_username = `registry.auth.username`",
    "schema_registry_password = `registry.auth.password`",
    "client_id = the property `client.id`",
)
_CLICKHOUSE = ("url = `url` and `tls`; by default http://localhost:8123",
               "user = `auth.username`; by default default", "password = `auth.password`",
               "database = `url`; by default default")  # fmt: skip
_SERVER = ("host = `url`", "port = `url`", "user = `auth.username`", "db = `url`",
           "sslmode = `tls`")  # fmt: skip

SETTINGS: Mapping[str, Options] = {
    "": options(
        "application_id = the name of the pipeline, if it is set",
        "log_format = text or json, in the log of `penstock streamling`",
        "pipeline_definition_location = the file of `penstock streamling` without a file",
        unneeded("record_batch_interval_ms", _BATCHES),
        unneeded("record_batch_size", _BATCHES),
        "num_records_before_stop = `penstock streamling` stops at the latest offsets of the start",
        unneeded("internal_buffer_size", _BATCHES),
        unneeded("checkpoint_interval_sec", "each batch is a checkpoint"),
        "enforce_primary_keys:boolean = a sink of a database without a primary key is an error",
        unneeded("live_data_inspect_enabled", _INSPECT),
        unneeded("admin_api_port", _INSPECT),
        "job_mode:boolean = a hybrid source ends after its bounded phases",
        unneeded("drain_policy", "a stop ends after the current batch, and loses nothing"),
        unneeded("plugin_drain_budget_secs", _RUST),
        unneeded("shutdown_budget_secs", "a stop ends after the current batch"),
        unneeded("backpressure_event_threshold_ms", _PUSH),
    ),
    "state_backend": options(
        unneeded("backend_type", _STATE), unneeded("sqlite", _STATE), unneeded("postgres", _STATE)
    ),
    "dynamic_table_backend": options(unneeded("max_batch_size", _BATCHES)),
    "dynamic_table_backend.postgres": options(
        *_SERVER, "password = `auth.password`", "dt_schema_name = the schema of the table",
        "cache_enabled:boolean = `cache.ttl` of a second",
        "cache_refresh_debounce_ms:integer = `cache.ttl`", unneeded("max_connections", _POOL),
    ),
    "external_http_handler": options(
        "trigger_max_count:integer = `max_records`", "operator_timeout_sec:integer = `timeout`",
        "buffer_size:integer = `concurrency`",
    ),
    "wasm_script": options(unneeded("runtime_wasm_file_path", "scripts run in V8")),
    "plugin": options(
        "path = `plugins`, if it is a Python file or a directory of them",
        unneeded("channel_capacity", _BATCHES),
        "preprocessor_ids:list = functions in Python that change the text of the file",
        "preprocessor_options:map = their options",
        "side_output_ids:list = `side_outputs` in Python, one for each source",
        "side_output_options:map = their options",
    ),
    "plugin.*": options("* = an option of the plugin of this name"),
    "kafka_source": options(
        *_KAFKA, "consumer_group_id = `group`, followed by the name of the source",
        unneeded("lag_report_interval_ms", _PUSH),
        unneeded("consumer_fetch_timeout_sec", _RETRIES),
        unneeded("stall_watchdog_timeout_sec", "`penstock status` shows the lag"),
    ),
    "kafka_sink": options(*_KAFKA),
    "clickhouse_source": options(
        *_CLICKHOUSE, "page_size:integer = `max_records`",
        unneeded("sort_key_range", "rows are read in pages of the sorting key"),
        unneeded("block_range", "rows are read in pages of the sorting key"),
        "query_timeout_sec:integer = `timeout`",
    ),
    "clickhouse_sink": options(
        *_CLICKHOUSE, "batch_size:integer = `batch.max_records`",
        "batch_flush_interval = `batch.interval`", "compression = `compression`",
        unneeded("compression_level", "zstd and lz4 have a level of their own"),
    ),
    "print_sink": options("sample_every:integer = `every`"),
    "postgres_sink": options(
        *_SERVER, "pass = `auth.password`", "batch_flush_interval = `batch.interval`",
        "batch_size:integer = `batch.max_records`", "statement_timeout_secs:integer = `timeout`",
        unneeded("pool_acquire_timeout_secs", _POOL), unneeded("pool_idle_timeout_secs", _POOL),
        unneeded("pool_max_lifetime_secs", _POOL),
    ),
    "postgres_sink_connections.*": options(*_SERVER, "pass = `auth.password`"),
    "open_telemetry_metrics": options(
        *(unneeded(name, _PUSH) for name in (
            "ingestion_endpoint", "endpoint_protocol", "batch_interval_secs", "metric_deny_list",
            "global_tags",
        )),
    ),
    "live_data_inspect": options(
        unneeded("records_per_topology_node", _INSPECT), unneeded("refresh_in_secs", _INSPECT)
    ),
    "http_secret_header": options("* = the name of a header of `headers`"),
    "http_secret_value": options("* = the value of a header of `headers`"),
    "test_settings": options(
        *(unneeded(name, _TEST) for name in (
            "telemetry_assertions_enabled", "prometheus_max_attempts", "prometheus_sleep_ms",
        )),
    ),
}  # fmt: skip
"""The settings by section. `*` stands for a name of the user."""


def find_setting(path: str) -> Option | None:
    """Returns the setting of a path such as `kafka_source.brokers`, or None.

    A path below a setting, as `state_backend.sqlite.database_path`, is this setting.
    """
    parts = path.split(".")
    for section, declared in SETTINGS.items():
        names = section.split(".") if section else []
        if len(names) >= len(parts) or not all(map(_matches, names, parts)):
            continue
        found = declared.find(parts[len(names)]) or declared.find("*")
        inner = len(parts) > len(names) + 1
        if found is not None and (not inner or found.kind in ("any", "map")):
            return found
    return None


def setting_names() -> list[str]:
    """Returns the paths of all settings."""
    return [
        f"{section}.{name}" if section else name
        for section, declared in SETTINGS.items()
        for name in declared.names
    ]


def _matches(name: str, part: str) -> bool:
    return name in ("*", part)
