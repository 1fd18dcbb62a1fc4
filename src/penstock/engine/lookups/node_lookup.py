"""The lookup of a node by key, as tasks compute it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.engine.build_context import BuildContext
from penstock.engine.driver_files.server import server_of
from penstock.engine.lookups.key_lookup import KeyLookup
from penstock.engine.lookups.lookup_table import LOOKUPS
from penstock.engine.lookups.served_lookup import ServedLookup, serve_lookup
from penstock.engine.sources.source_tasks import source_rows, typed_source
from penstock.plan.local_data import local_data
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
    typed = typed_source(source, rows)
    return KeyLookup(
        typed,
        pa.schema([field.with_nullable(True) for field in rows]),
        source.metadata_columns,
        replace(context.make_spool(node, query, "decode"), by_content=True),
        _time_to_live(node, fill),
        CACHE_BYTES if limit is None else limit,
        context.run_id,
        keeps_missing=fill is None,
        served=_served(context, node, typed),
    )


def _served(context: BuildContext, node: Node, source: LookupSource[Any]) -> ServedLookup | None:
    """Returns the lookup by the driver of a table in local files; None for another one."""
    directory = context.checkpoint or context.plan.state
    server = server_of(directory)
    if server is None or node.in_state:
        return None
    if all(data.node is not node for data in local_data(context.plan)):
        return None
    return serve_lookup(server, directory / LOOKUPS / node.name, source)


def _time_to_live(node: Node, fill: Node | None) -> float:
    """Returns the time for which a row is used. A pipeline that removes rows reads each again."""
    assert node.lookup is not None
    if fill is not None and fill.operation is not None:
        return 0.0
    return math.inf if node.in_state else node.lookup.cache.ttl
