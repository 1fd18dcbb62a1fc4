"""Recognition of files of Streamling by words that only they have."""

from __future__ import annotations

import re

from penstock.spec.dialects.streamling.sinks import SINKS
from penstock.spec.dialects.streamling.sources import SOURCES
from penstock.spec.dialects.streamling.transforms import TRANSFORMS
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
_KNOWN = (SOURCES, TRANSFORMS, SINKS)
_WORDS = re.compile(
    rf"\b(?:{'|'.join(_OPTIONS)}|script)[\"']?[ \t]*:"
    rf"|\btype[\"']?[ \t]*:[ \t]*[\"']?(?:(?:{'|'.join(_TYPES)})\b|\w+\.\w)"
)
_TYPE_WITH_CONNECTION = re.compile(rf"\btype[\"']?[ \t]*:[ \t]*[\"']?({'|'.join(_CONNECTED)})\b")
_OF_PENSTOCK = re.compile(r"^(?:connections|include|runtime)[ \t]*:", re.MULTILINE)


def may_be_streamling(text: str) -> bool:
    """Returns whether a text is worth to be parsed."""
    if not _SECTIONS.search(text) or _OF_PENSTOCK.search(text):
        return False
    connected = {_CONNECTED[type_] for type_ in _TYPE_WITH_CONNECTION.findall(text)}
    return bool(_WORDS.search(text)) or any(f"{option}:" not in text for option in connected)


def is_streamling(root: MappingNode) -> bool:
    """Returns whether a node of the file has a type or an option that only Streamling has."""
    inner = root.get("definition")
    if isinstance(inner, MappingNode):
        root = inner
    if any(_is_own(node) for node in _nodes(root)):
        return True
    return root.get("transforms") is not None and _lacks_connections(root)


def is_ambiguous(root: MappingNode) -> bool:
    """Returns whether each node could be one of Penstock too, of plugins with dots in names."""
    return not any(_is_certain(node) for node in _nodes(root)) and not _lacks_connections(root)


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
    return type_ == "script" and node.get("script") is not None


def _lacks_connections(root: MappingNode) -> bool:
    """Returns whether a node has no connection, which the settings of Streamling have.

    All nodes have options of Streamling only, and all queries a primary key: the connection is not
    in another file of Penstock.
    """
    nodes = _nodes(root)
    for node in nodes:
        options = [known[_type(node)] for known in _KNOWN if _type(node) in known]
        names = {name for each in options for name in each.names}
        if options and not {*node.names()} <= names:
            return False
        if _type(node) == "sql" and node.get("primary_key") is None:
            return False
    return any(
        _type(node) in _CONNECTED and node.get(_CONNECTED[_type(node)]) is None for node in nodes
    )


def _type(node: MappingNode) -> str:
    value: Node | None = node.get("type")
    return value.written.strip() if isinstance(value, ScalarNode) else ""
