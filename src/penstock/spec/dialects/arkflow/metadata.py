"""Metadata columns of batches, by the type of the input."""

from __future__ import annotations

from penstock.spec.dialects.options.trees import Tree

_BATCH_COLUMNS: dict[str, dict[str, Tree]] = {
    "kafka": {
        "__meta_source": {"value": "kafka"},
        "__meta_partition": {"column": "partition", "type": "uint32"},
        "__meta_offset": {"column": "offset", "type": "uint64"},
        "__meta_key": {"column": "key", "type": "binary"},
        "__meta_timestamp": {"column": "timestamp", "type": "timestamp"},
        "__meta_ingest_time": {"now": True},
        "__meta_ext": {"map": {"topic": "topic"}},
    },
    "mqtt": {"__meta_ext": {"map": {"topic": "topic"}}},
    "nats": {
        "__meta_timestamp": {"column": "timestamp", "type": "timestamp"},
        "__meta_ext": {"map": {"subject": "subject"}},
    },
    "pulsar": {
        "__meta_timestamp": {"column": "publish_time", "type": "timestamp"},
        "__meta_ext": {"map": {"topic": "topic"}},
    },
}
"""The metadata columns of a batch, by the type of the input."""
_SOURCE_COLUMNS: dict[str, tuple[str, ...]] = {
    "kafka": ("topic", "partition", "offset", "key", "timestamp"),
    "mqtt": ("topic",),
    "nats": ("subject", "timestamp"),
    "pulsar": ("topic", "publish_time"),
}
"""The metadata columns of the source that they need."""


def metadata_of(type_: str, mentions: bool) -> tuple[dict[str, Tree], tuple[str, ...]]:
    """Returns the metadata columns of a batch, and those of the source that they need.

    Only batches of Kafka always have metadata; others if the stream `mentions` metadata columns.
    """
    if type_ != "kafka" and not mentions:
        return {}, ()
    common: dict[str, Tree] = {
        "__meta_source": {"value": type_},
        "__meta_ingest_time": {"now": True},
    }
    found = _BATCH_COLUMNS.get(type_, {})
    order = _BATCH_COLUMNS["kafka"]
    merged = {**common, **found}
    return {name: merged[name] for name in order if name in merged}, _SOURCE_COLUMNS.get(type_, ())
