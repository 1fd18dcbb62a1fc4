"""Transforms of Streamling as transforms."""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.core.names import derived_name
from penstock.spec.dialects.options.declarations import Option, Options, closed_options, unneeded
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.streamling import connections as to
from penstock.spec.dialects.streamling.calls import unsupported_calls
from penstock.spec.dialects.streamling.nodes import Fact, Pipeline, columns_of, with_operations
from penstock.spec.dialects.streamling.queries import OPERATION, translate
from penstock.spec.dialects.streamling.requests import REQUEST, request
from penstock.spec.dialects.streamling.scripts import FUNCTION, wrapped
from penstock.spec.dialects.streamling.sources import read_schema
from penstock.spec.dialects.streamling.telemetry import PARALLELISM, TELEMETRY_OPTION, read_labels
from penstock.spec.dialects.streamling.types import NAMES, column_type
from penstock.spec.tree.nodes import MappingNode, ScalarNode

_BATCH = "rows are passed on as they arrive"
_KEY = "primary_key! = `primary_key`"
BACKENDS = ("postgres", "inmemory")
TRANSFORMS: dict[str, Options] = {
    "sql": closed_options(
        "type!", _KEY, "sql! = `sql`, in the SQL of DataFusion", PARALLELISM, TELEMETRY_OPTION,
        unneeded("from", "the query names what it reads"),
    ),
    "handler": closed_options(
        "type!", _KEY, "from! = `from`", *REQUEST,
        "schema_override:map = `schema_override`", PARALLELISM, TELEMETRY_OPTION,
        "batch_size:integer = `max_records`", unneeded("batch_flush_interval", _BATCH),
    ),
    "script": closed_options(
        "type!", _KEY, "from! = `from`",
        Option("language", required=True, choices=("javascript", "typescript"),
               reading="`language`"),
        "script! = `code`", "schema:map = `schema`, in the order of the alphabet", PARALLELISM,
        unneeded("batch_size", _BATCH), unneeded("batch_flush_interval", _BATCH), TELEMETRY_OPTION,
    ),
    "dynamic_table": closed_options(
        "type!", "backend_type! = `storage`; of InMemory the state directory",
        "backend_entity_name! = the table of `storage`", "sql = `sql`",
        "schema = the schema of the table of `storage`", "column = `column`",
        "time_column = `time_column`, with `sql`", "cache:boolean = `cache`",
        "cache_refresh_debounce_ms:integer = `cache.ttl`", TELEMETRY_OPTION,
    ),
}  # fmt: skip
"""The transforms and their options."""


def sql(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a query."""
    text = reading.get("sql")
    if not isinstance(text, ScalarNode):
        return
    tree: dict[str, Tree] = {
        "type": "sql", "sql": _query(fact, text, reading, pipeline, operations=True),
        "primary_key": columns_of(reading.get("primary_key")) or None,
        "labels": read_labels(reading, "sql"),
    }  # fmt: skip
    pipeline.add("transforms", pipeline.names[fact.name.lower()], tree, reading, fact.key)


def handler(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds requests whose responses are the rows."""
    name, input_ = pipeline.names[fact.name.lower()], pipeline.input_of(reading)
    settings = pipeline.settings
    if reading.value("payload_version") == 1:
        changes = derived_name(name, "_changes")
        tree = {**with_operations(input_), "operation_column": OPERATION}
        pipeline.add("transforms", changes, tree, reading, fact.key)
        input_ = changes
    rows = reading.value("batch_size")
    largest = settings.number("external_http_handler.trigger_max_count", 2000)
    is_single = reading.value("one_row_per_request") is True
    tree = {
        "type": "http", "from": input_, **request(reading, pipeline), "response": "replace",
        "payload_version": reading.get("payload_version"),
        "max_records": None if is_single else rows if isinstance(rows, int) else largest,
        "concurrency": settings.number("external_http_handler.buffer_size", 25),
        "schema_override": _overrides(reading),
        "primary_key": columns_of(reading.get("primary_key")) or None,
        "labels": read_labels(reading, "handler"),
    }  # fmt: skip
    pipeline.add("transforms", name, tree, reading, fact.key)


def script(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a script."""
    code, schema = reading.get("script"), read_schema(reading)
    if not isinstance(code, ScalarNode):
        return
    columns = None
    if schema is not None:
        columns = {name: schema[name] for name in sorted(schema)}
        columns.setdefault(OPERATION, "STRING")
    tree: dict[str, Tree] = {
        "type": "script", "from": pipeline.input_of(reading),
        "language": reading.text("language").lower(), "code": wrapped(code, closed=schema is None),
        "function": FUNCTION, "schema": columns,
        "primary_key": columns_of(reading.get("primary_key")) or None,
        "labels": read_labels(reading, "script"),
    }  # fmt: skip
    pipeline.add("transforms", pipeline.names[fact.name.lower()], tree, reading, fact.key)


def dynamic_table(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a table of values that queries check."""
    text = reading.get("sql")
    backend = re.sub(r"[^a-z0-9]", "", reading.text("backend_type").lower())
    if backend not in BACKENDS:
        reading.findings.error(
            f'there is no backend "{reading.text("backend_type")}"',
            reading.where("backend_type"), hint="use Postgres or InMemory",
        )  # fmt: skip
    query: Tree = _no_values(fact, pipeline)
    if isinstance(text, ScalarNode):
        query = _query(fact, text, reading, pipeline, operations=False)
    elif query is None and backend == "inmemory":
        reading.findings.warn(
            f"no query fills or checks {reading.subject}", fact.key.location,
            hint="remove it, or add sql",
        )  # fmt: skip
        return
    elif reading.get("time_column") is not None:
        reading.findings.warn(
            f'"time_column" of {reading.subject} has no effect without sql: no query sets it',
            reading.where("time_column"),
        )
    tree: dict[str, Tree] = {
        "type": "dynamic_table", "sql": query,
        "storage": _storage(reading, pipeline) if backend == "postgres" else None,
        "column": reading.get("column"),
        "time_column": reading.get("time_column") if text is not None else None,
        "cache": _cache(reading, pipeline) if backend == "postgres" else None,
        "labels": read_labels(reading, "dynamic_table"),
    }  # fmt: skip
    pipeline.add("transforms", pipeline.names[fact.name.lower()], tree, reading, fact.key)


READERS: dict[str, Callable[[Fact, Reading, Pipeline], None]] = {
    "sql": sql, "handler": handler, "script": script, "dynamic_table": dynamic_table,
}  # fmt: skip


def _no_values(fact: Fact, pipeline: Pipeline) -> str | None:
    """Returns a query without rows, which creates a table that only other programs fill.

    It reads the input of the query that checks the table; None if there is none.
    """
    check = re.compile(rf"dynamic_table_check\s*\(\s*'{re.escape(fact.name)}'", re.IGNORECASE)
    for each in pipeline.facts.values():
        text = each.node.get("sql")
        if isinstance(text, ScalarNode) and check.search(text.written) and each.inputs:
            name = pipeline.names.get(each.inputs[0])
            return f"SELECT CAST(NULL AS STRING) AS value FROM {name} WHERE false"
    return None


def _query(
    fact: Fact, text: ScalarNode, reading: Reading, pipeline: Pipeline, *, operations: bool
) -> ScalarNode:
    """Returns the query of a node. Calls without a counterpart are errors."""
    for call in unsupported_calls(text.written):
        reading.findings.error(
            f"the function {call.name} has no counterpart in Spark",
            text.locate_span(call.start, call.end), code="unknown-function", hint=call.reason,
        )  # fmt: skip
    wide = pipeline.wide_columns(fact)
    return translate(text, pipeline.names, wide, operations=operations)


def _storage(reading: Reading, pipeline: Pipeline) -> dict[str, Tree]:
    settings = pipeline.settings
    default = settings.text("dynamic_table_backend.postgres.dt_schema_name", "streamling")
    schema = reading.text("schema") or default
    table = f"{schema}.{reading.text('backend_entity_name')}"
    connection = to.postgres_tables(settings)
    return {"type": "postgres", **connection, "table": table, "create_schema": True}


def _cache(reading: Reading, pipeline: Pipeline) -> dict[str, Tree] | None:
    settings, own = pipeline.settings, reading.value("cache")
    enabled = settings.is_true("dynamic_table_backend.postgres.cache_enabled")
    if own is False or not (own or enabled):
        return None
    debounce = reading.value("cache_refresh_debounce_ms")
    if debounce is None:
        path = "dynamic_table_backend.postgres.cache_refresh_debounce_ms"
        debounce = settings.number(path, 1000)
    return {"ttl": f"{debounce}ms"}


def _overrides(reading: Reading) -> dict[str, Tree] | MappingNode | None:
    node = reading.get("schema_override")
    if not isinstance(node, MappingNode):
        return None
    found = []
    for entry in node.entries:
        value = entry.value
        written = value.written.strip() if isinstance(value, ScalarNode) else ""
        type_ = None
        if isinstance(value, ScalarNode) and value.value is not None:
            type_ = column_type(written)
            if type_ is None:
                reading.findings.error(
                    f'there is no type "{written}"', value.location,
                    hint=f"use one of {', '.join(NAMES)}, or null to remove the column",
                )  # fmt: skip
        text = type_ or ""
        place = ScalarNode(type_, text, text, value.location, value.base)
        found.append(type(entry)(entry.key, place))
    return MappingNode(tuple(found), node.location, node.base)
