"""The lookup of a node by key, as tasks compute it."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa

from penstock.engine.build_context import BuildContext
from penstock.engine.lookups.key_lookup import KeyLookup
from penstock.engine.sources.source_tasks import source_rows, typed_source
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.sdk import LookupSource

CACHE_BYTES = 8 << 20
"""The default size of the cache of a lookup table in a process."""


def key_lookup(context: BuildContext, node: Node, query: Query) -> KeyLookup:
    """Returns the parameters of the lookups of a node in tasks."""
    source, options = node.source, node.lookup
    assert isinstance(source, LookupSource) and options is not None
    rows, limit = source_rows(node), options.cache.max_bytes
    fill = context.plan.fill_of(node.name)
    return KeyLookup(
        typed_source(source, rows),
        pa.schema([field.with_nullable(True) for field in rows]),
        source.metadata_columns,
        replace(context.make_spool(node, query, "decode"), by_content=True),
        _time_to_live(node, fill),
        CACHE_BYTES if limit is None else limit,
        context.run_id,
        keeps_missing=fill is None,
    )


def _time_to_live(node: Node, fill: Node | None) -> float:
    """Returns the time for which a row is used. A pipeline that removes rows reads each again."""
    assert node.lookup is not None
    if fill is not None and fill.operation is not None:
        return 0.0
    return math.inf if node.in_state else node.lookup.cache.ttl
