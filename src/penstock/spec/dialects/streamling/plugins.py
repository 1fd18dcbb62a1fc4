"""Plugins of Streamling that Penstock has: those of its examples and of its community."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.core.location import Location
from penstock.core.names import derived_name, quote_name
from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.streamling import connections as to
from penstock.spec.dialects.streamling.nodes import Fact, Pipeline, columns_of
from penstock.spec.dialects.streamling.queries import OPERATION
from penstock.spec.dialects.streamling.settings import Settings
from penstock.spec.dialects.streamling.sink_nodes import SinkNodes
from penstock.spec.dialects.streamling.telemetry import read_labels
from penstock.spec.tree.nodes import Entry, MappingNode, ScalarNode
from penstock.sql.text.quoting import quote

_ROWS = "rows are passed on as they arrive"
_MEMORY = "received changes are in the journal of the run"
_LOGIN = (
    "host! = `url`", "port = `url`", "database! = `url`", "password = `auth.password`",
)  # fmt: skip
_KEYS = (
    "access_key_id = `auth.access_key`", "secret_access_key = `auth.secret_key`",
    "session_token = `auth.session_token`",
)  # fmt: skip
PLUGINS: Mapping[str, Options] = {
    "basic_plugin.random_source": options(
        "max_rows = `rows`; by default 100",
        "record_batch_size = `rate`", "batch_sleep_ms = `rate`",
        unneeded("stop_when_exhausted", "the source ends after its last row"),
    ),
    "basic_plugin.filter_transform": options("* = a column and its text, in `where`"),
    "print_sink": options(unneeded("mode", "all rows are printed")),
    "s3_sink": options(
        "bucket! = `path`", "prefix = `path`", "region! = `storage.region`", *_KEYS,
        "endpoint = `storage.endpoint_url`",
        unneeded("allow_http", "the scheme of endpoint decides"),
        "partition_columns = `partition_by`",
        unneeded("max_concurrent_partition_uploads", "each task uploads its files"),
    ),
    "mysql_sink": options(
        *_LOGIN, "user! = `auth.username`", "table! = `table`",
        "primary_key = `primary_key`",
        Option("on_conflict", choices=("update", "nothing"), reading="`on_conflict`"),
        "sslmode = `tls`", "batch_size = `batch.max_records`",
    ),
    "sqs": options(
        "queue_url! = `queue`", "region = `region`", "endpoint_url = `endpoint_url`", *_KEYS,
        unneeded("one_row_per_request", "a message has one row"),
    ),
    "postgres_cdc_source": options(
        *_LOGIN, "username! = `auth.username`", "table! = `table`", "slot_name! = `slot`",
        "publication_name! = `publication`",
        unneeded("auto_create_publication", "a missing publication is created"),
        Option("emit_update_before_row", "any", choices=("true", "false"),
               reading="`before_updates`, as deletes"),
        unneeded("memory_backpressure_enabled", _MEMORY),
        unneeded("memory_backpressure_activate_threshold", _MEMORY),
        unneeded("memory_backpressure_resume_threshold", _MEMORY),
        "sslmode = `tls`",
    ),
}  # fmt: skip
"""The plugins and their options. `*` stands for options of any name."""
MISSING: Mapping[str, str] = {
    "s2_source": "Penstock has no client of s2.dev",
    "s2_sink": "Penstock has no client of s2.dev",
    "cloudtrail_source": "Penstock does not poll AWS CloudTrail; read its S3 bucket with file",
}
"""Plugins that Penstock does not have, each with the reason."""
ENVELOPE: Options = options(
    "type!", "from", "options:map = options beside those of the node", "primary_key",
    "telemetry:map = `labels`",
    unneeded("batch_size", _ROWS), unneeded("batch_flush_interval", _ROWS),
    unneeded("parallelism", "Spark divides the work among its tasks"),
)  # fmt: skip
"""The options that every node of a plugin has."""
_NUMBER = "__number"
_KIND_OF = {"source": "sources", "transform": "transforms", "sink": "sinks"}


def plugin(fact: Fact, node: MappingNode, pipeline: Pipeline) -> None:
    """Adds the node of a plugin: one that Penstock has, or a component of Python of this name."""
    type_, findings = fact.type, pipeline.findings
    if type_ in MISSING:
        findings.error(
            f'the plugin "{type_}" is not supported: {MISSING[type_]}', _type_place(fact),
            code="unsupported-option",
        )  # fmt: skip
        return
    envelope, own = _divided(node)
    outer = Reading(envelope, fact.subject, ENVELOPE, findings)
    if type_ not in PLUGINS:
        _component(fact, outer, own, pipeline)
        return
    known = PLUGINS[type_]
    if known.find("*") is not None:
        known = options(*own.names())
    inner = Reading(_with_environment(own, type_, pipeline.settings), fact.subject, known, findings)
    READERS[type_](fact, outer, inner, pipeline)


def unknown_type(fact: Fact, known: list[str], pipeline: Pipeline) -> bool:
    """Reports a type that is a misspelling of a known one. Returns whether it is."""
    if fact.type in PLUGINS or fact.type in MISSING or "." in fact.type:
        return False
    hint = did_you_mean(fact.type, known)
    if hint is not None:
        pipeline.findings.error(
            f'there is no {fact.kind} "{fact.type}"', _type_place(fact), code="unknown-type",
            hint=hint,
        )  # fmt: skip
    return hint is not None


def _divided(node: MappingNode) -> tuple[MappingNode, MappingNode]:
    """Returns the options of every plugin, and those of this one: beside them before nested."""
    outer = [entry for entry in node.entries if ENVELOPE.find(entry.name) is not None]
    inner = {e.name: e for e in node.entries if ENVELOPE.find(e.name) is None}
    nested = node.get("options")
    for entry in nested.entries if isinstance(nested, MappingNode) else ():
        if entry.name not in ("type", "primary_key", "telemetry"):
            inner.setdefault(entry.name, entry)
    place = node.location, node.base
    return MappingNode(tuple(outer), *place), MappingNode(tuple(inner.values()), *place)


def _with_environment(node: MappingNode, type_: str, settings: Settings) -> MappingNode:
    """Returns options with those of the settings `plugin.NAME`, which come first."""
    name = "sqs_sink" if type_ == "sqs" else type_.rpartition(".")[2]
    entries = {entry.name: entry for entry in node.entries}
    for option in settings.below(f"plugin.{name}"):
        text = settings.written(f"plugin.{name}.{option}")
        key, value = (ScalarNode(t, t, t, node.location, node.base) for t in (option, text))
        entries[option] = Entry(key, value)
    return MappingNode(tuple(entries.values()), node.location, node.base)


def _component(fact: Fact, outer: Reading, own: MappingNode, pipeline: Pipeline) -> None:
    tree: dict[str, Tree] = {
        "type": outer.node.get("type"),
        "from": pipeline.input_of(outer) if fact.kind != "source" else None,
        "primary_key": columns_of(outer.get("primary_key")) or None,
        "labels": read_labels(outer, fact.type),
        **{entry.name: entry.value for entry in own.entries},
    }  # fmt: skip
    name = fact.name.lower()
    key = f"sinks.{name}" if fact.kind == "sink" else name
    pipeline.add(_KIND_OF[fact.kind], pipeline.names[key], tree, outer, fact.key)


def random_source(fact: Fact, outer: Reading, inner: Reading, pipeline: Pipeline) -> None:
    """Adds random rows, of which the last two of a batch are an update and a delete."""
    sleep, size = inner.text("batch_sleep_ms", "1000"), inner.text("record_batch_size", "10")
    rows = inner.text("max_rows", "100")
    is_paced = sleep.isdigit() and int(sleep) > 0
    if not (size.isdigit() and int(size) > 0):
        inner.findings.error(
            f'"record_batch_size" of {fact.subject} expects a positive integer, found {size}',
            inner.where("record_batch_size"),
        )
        return
    name = pipeline.names[fact.name.lower()]
    records = derived_name(name, "_records")
    tree: dict[str, Tree] = {
        "type": "generate", "rows": int(rows) if rows.isdigit() else rows,
        "rate": int(size) * 1000 / int(sleep) if is_paced else None,
        "fields": {
            "num_field": {"type": "integer", "max": 1000}, "alphanumeric_field": "uuid",
            _NUMBER: {"type": "sequence", "start": 0},
        },
        "labels": read_labels(outer, fact.type),
    }  # fmt: skip
    pipeline.add("sources", records, tree, outer, fact.key)
    last, length = f"least({rows}, ({_NUMBER} DIV {size} + 1) * {size})", f"{_NUMBER} + "
    kind = f"CASE {last} WHEN {length}1 THEN 'd' WHEN {length}2 THEN 'u' ELSE 'i' END"
    sql = f"SELECT * EXCEPT ({_NUMBER}), {kind} AS {OPERATION} FROM {records}"
    pipeline.add("transforms", name, {"type": "sql", "sql": sql}, outer, fact.key)


def filter_transform(fact: Fact, outer: Reading, inner: Reading, pipeline: Pipeline) -> None:
    """Adds a filter of columns by their texts."""
    equal = (f"{quote_name(name)} = {quote(inner.text(name))}" for name in inner.node.names())
    where = " AND ".join(equal) or "true"
    tree: dict[str, Tree] = {
        "type": "filter", "from": pipeline.input_of(outer), "where": where,
        "labels": read_labels(outer, fact.type),
    }  # fmt: skip
    pipeline.add("transforms", pipeline.names[fact.name.lower()], tree, outer, fact.key)


def print_sink(fact: Fact, outer: Reading, inner: Reading, pipeline: Pipeline) -> None:
    """Adds a sink that prints rows."""
    SinkNodes(fact, outer, pipeline, fact.type).write({"type": "print", "format": to.WRITTEN})


def s3_sink(fact: Fact, outer: Reading, inner: Reading, pipeline: Pipeline) -> None:
    """Adds a sink of Parquet files in an object store."""
    parts = [inner.text("bucket"), inner.text("prefix").strip("/")]
    endpoint = inner.text("endpoint")
    SinkNodes(fact, outer, pipeline, fact.type).write({
        "type": "files", "path": f"s3://{'/'.join(filter(None, parts))}", "format": "parquet",
        "partition_by": columns_of(inner.get("partition_columns")) or None,
        "storage": {
            "region": inner.get("region"), "endpoint_url": endpoint or None, "auth": _keys(inner)
        },
    })  # fmt: skip


def mysql_sink(fact: Fact, outer: Reading, inner: Reading, pipeline: Pipeline) -> None:
    """Adds a sink of a table of MySQL."""
    nodes = SinkNodes(fact, outer, pipeline, fact.type)
    nodes.key = columns_of(inner.get("primary_key")) or nodes.key
    tree: dict[str, Tree] = {
        "type": "mysql",
        **_login(inner, "mysql", "user", 3306),
        "tls": _tls(inner, ("", "disabled", "preferred")),
        "table": inner.text("table"),
    }
    if nodes.key:
        nodes.changes()
        nothing = "nothing" if inner.text("on_conflict").lower() == "nothing" else None
        tree |= {"mode": "upsert", "primary_key": nodes.key, "on_conflict": nothing}
    else:
        nodes.inserts()
    nodes.write(tree, rows=inner.text("batch_size"))


def sqs(fact: Fact, outer: Reading, inner: Reading, pipeline: Pipeline) -> None:
    """Adds a sink of a queue."""
    keys = _keys(inner)
    SinkNodes(fact, outer, pipeline, fact.type).write({
        "type": "sqs", "queue": inner.get("queue_url"), "region": inner.get("region"),
        "endpoint_url": inner.get("endpoint_url"), "auth": keys, "format": to.WRITTEN,
    })  # fmt: skip


def postgres_cdc_source(fact: Fact, outer: Reading, inner: Reading, pipeline: Pipeline) -> None:
    """Adds the changes of a table. The row before an update is a delete, and `_op` is renamed."""
    name = pipeline.names[fact.name.lower()]
    records, kinds = derived_name(name, "_records"), derived_name(name, "_kinds")
    key = columns_of(outer.get("primary_key"))
    table = inner.text("table")
    before = inner.text("emit_update_before_row").lower() == "true"
    pipeline.add("sources", records, {
        "type": "postgres", **_login(inner, "postgresql", "username", 5432), "changes": True,
        "tls": _tls(inner, ("", "disable", "prefer")),
        "table": table if "." in table else f"public.{table}",
        "slot": inner.get("slot_name"), "publication": inner.get("publication_name"),
        "before_updates": True if before else None,
        "primary_key": key or None, "labels": read_labels(outer, fact.type),
    }, outer, fact.key)  # fmt: skip
    value = "CASE WHEN _op = 'ub' THEN 'd' ELSE _op END" if before else "_op"
    kind: dict[str, Tree] = {"type": "map", "from": records, "set": {OPERATION: value}}
    pipeline.add("transforms", kinds, kind, outer, fact.key)
    drop: dict[str, Tree] = {"type": "drop", "from": kinds, "columns": ["_op"]}
    pipeline.add("transforms", name, {**drop, "primary_key": key or None}, outer, fact.key)


READERS: dict[str, Callable[[Fact, Reading, Reading, Pipeline], None]] = {
    "basic_plugin.random_source": random_source,
    "basic_plugin.filter_transform": filter_transform, "print_sink": print_sink,
    "s3_sink": s3_sink, "mysql_sink": mysql_sink, "sqs": sqs,
    "postgres_cdc_source": postgres_cdc_source,
}  # fmt: skip


def _keys(reading: Reading) -> dict[str, Tree] | None:
    keys: dict[str, Tree] = {
        "access_key": reading.get("access_key_id"), "secret_key": reading.get("secret_access_key"),
        "session_token": reading.get("session_token"),
    }  # fmt: skip
    return keys if any(value is not None for value in keys.values()) else None


def _login(reading: Reading, scheme: str, user: str, port: int) -> dict[str, Tree]:
    host, database = reading.text("host"), reading.text("database")
    number = reading.text("port") or port
    return {
        "url": f"{scheme}://{host}:{number}/{to.database(database)}",
        "auth": {"username": reading.get(user), "password": reading.get("password")},
    }


def _tls(reading: Reading, none: tuple[str, ...]) -> Tree:
    mode = reading.text("sslmode").lower().replace("-", "_")
    if mode in none:
        return None
    if mode in ("require", "required"):
        return {"verify": False, "verify_hostname": False}
    return {"verify_hostname": False} if mode == "verify_ca" else True


def _type_place(fact: Fact) -> Location:
    node = fact.node.get("type")
    return node.location if node is not None else fact.key.location
