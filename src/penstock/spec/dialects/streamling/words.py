"""Words of a text that only files of Streamling have, before the text is parsed."""

from __future__ import annotations

import re

_SECTIONS = re.compile(r"""^\s*["']?(?:sources|sinks)["']?[ \t]*:""", re.MULTILINE)
OPTIONS = (
    "starting_offsets", "include_metadata", "data_format", "validate_writer_schema_ordering",
    "schema_id_overrides", "skip_schema_resolution", "table_name", "bounded_sources",
    "unbounded_source", "source_type", "offset_table", "secret_name", "one_row_per_request",
    "backend_type", "backend_entity_name", "landing_table", "agg_table", "topic_partitions",
    "message_max_bytes", "version_column_name", "append_only_mode", "exclude_gs_op",
    "sample_every", "num_records_before_stop", "batch_flush_interval", "skip_on_error",
    "cache_refresh_debounce_ms", "telemetry", "parallelism", "start_at",
)  # fmt: skip
"""Options that no node of Penstock has."""
TYPES = ("handler", "webhook", "file", "print_sink", "s3_sink", "mysql_sink", "s2_sink",
         "postgres_cdc_source", "s2_source", "cloudtrail_source")  # fmt: skip
CONNECTED = {"kafka": "brokers", "clickhouse": "url", "postgres": "url",
              "postgres_aggregate": "url"}  # fmt: skip
"""Types that both have, and the option that each node of Penstock has."""
_WORDS = re.compile(
    rf"\b(?:{'|'.join(OPTIONS)}|script)[\"']?[ \t]*:"
    rf"|\btype[\"']?[ \t]*:[ \t]*[\"']?(?:(?:{'|'.join(TYPES)})\b|\w+\.\w)"
)
_TYPE_WITH_CONNECTION = re.compile(rf"\btype[\"']?[ \t]*:[ \t]*[\"']?({'|'.join(CONNECTED)})\b")
_OF_PENSTOCK = re.compile(r"^(?:connections|include|runtime)[ \t]*:", re.MULTILINE)


def may_be_streamling(text: str) -> bool:
    """Returns whether a text is worth to be parsed."""
    if not _SECTIONS.search(text) or _OF_PENSTOCK.search(text):
        return False
    connected = {CONNECTED[type_] for type_ in _TYPE_WITH_CONNECTION.findall(text)}
    return bool(_WORDS.search(text)) or any(f"{option}:" not in text for option in connected)
