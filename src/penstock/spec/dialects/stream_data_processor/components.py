"""The components of a graph that Penstock does not have."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.spec.dialects.options.components import component_reader

UNSUPPORTED: Mapping[str, str] = {
    "kapacitor": "the protocol of Kapacitor's user-defined functions is not supported",
    "record_batches": "the format arrow is for files; send JSON, CSV or Graphite in messages",
}
"""Components that Penstock does not have, each with the reason."""

read_component = component_reader(UNSUPPORTED)
