"""Recognition of files of Streamling by words that only they have."""

from __future__ import annotations

import re

from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode

_SECTIONS = re.compile(r"""^\s*["']?(?:sources|sinks)["']?[ \t]*:""", re.MULTILINE)
_OPTIONS = (
    "starting_offsets", "include_metadata", "data_format", "validate_writer_schema_ordering",
    "schema_id_overrides", "skip_schema_resolution", "table_name", "bounded_sources",
    "unbounded_source", "source_type", "offset_table", "secret_name", "one_row_per_request",
    "backend_type", "backend_entity_name", "landing_table", "agg_table", "topic_partitions",
    "message_max_bytes", "version_column_name", "append_only_mode", "exclude_gs_op",
    "sample_every", "num_records_before_stop", "batch_flush_interval", "skip_on_error",
    "cache_refresh_debounce_ms", "telemetry", "parallelism", "start_at",
)  # fmt: skip
"""Options that no node of Penstock has."""
_TYPES = ("handler", "webhook", "file", "print_sink", "s3_sink", "mysql_sink")
_CONNECTED = {"kafka": "brokers", "clickhouse": "url", "postgres": "url",
              "postgres_aggregate": "url"}  # fmt: skip
"""Types that both have, and the option that each node of Penstock has."""
_WORDS = re.compile(r"\b(?:type|" + "|".join(_OPTIONS) + r")[\"']?[ \t]*:", re.MULTILINE)


def may_be_streamling(text: str) -> bool:
    """Returns whether a text is worth to be parsed."""
    return bool(_SECTIONS.search(text) and _WORDS.search(text) and not _has_connections(text))


def is_streamling(root: MappingNode) -> bool:
    """Returns whether a node of the file has a type or an option that only Streamling has."""
    inner = root.get("definition")
    if isinstance(inner, MappingNode):
        root = inner
    return any(_is_own(node) for node in _nodes(root))


def is_ambiguous(root: MappingNode) -> bool:
    """Returns whether each node could be one of Penstock too, of plugins with dots in names."""
    nodes = list(_nodes(root))
    return all(not _is_certain(node) for node in nodes)


def _nodes(root: MappingNode) -> list[MappingNode]:
    sections = [root.get(name) for name in ("sources", "transforms", "sinks")]
    return [
        entry.value
        for section in sections if isinstance(section, MappingNode)
        for entry in section.entries if isinstance(entry.value, MappingNode)
    ]  # fmt: skip


def _is_own(node: MappingNode) -> bool:
    return _is_certain(node) or (
        "." in _type(node) and isinstance(node.get("options"), MappingNode)
    )


def _is_certain(node: MappingNode) -> bool:
    type_ = _type(node)
    if type_ in _TYPES or any(node.get(option) is not None for option in _OPTIONS):
        return True
    if type_ == "script" and node.get("script") is not None:
        return True
    required = _CONNECTED.get(type_)
    return required is not None and node.get(required) is None and node.get("connection") is None


def _type(node: MappingNode) -> str:
    value: Node | None = node.get("type")
    return value.written.strip() if isinstance(value, ScalarNode) else ""


def _has_connections(text: str) -> bool:
    return re.search(r"^(?:connections|include|runtime)[ \t]*:", text, re.MULTILINE) is not None
