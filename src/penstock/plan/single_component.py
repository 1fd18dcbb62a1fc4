"""A source or a sink outside of a pipeline, for discovery and for tests of its connection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import flatten_errors, raise_all
from penstock.plan.make import make_plan
from penstock.sdk import Component
from penstock.spec.documents.reading import complete, parsed
from penstock.spec.validate import validate
from penstock.spec.yaml.parse import parse_document
from penstock.spec.yaml.writer import to_text


def make_component(
    kind: Literal["source", "sink"], type_: str, options: Mapping[str, Any]
) -> Component[Any]:
    """Returns a source or a sink with these options, whose expressions are replaced.

    Raises the errors of the options, without locations.
    """
    node = {"type": type_, **options}
    other = f"other_than_{type_}"
    sources: dict[str, Any] = {type_: node}
    sinks: dict[str, Any] = {other: {"type": "blackhole", "from": type_}}
    if kind == "sink":
        sources = {other: {"type": "generate", "fields": {"id": "sequence"}}}
        sinks = {type_: {"from": other, **node}}
    text = to_text({"name": type_, "sources": sources, "sinks": sinks})
    document = parse_document(text, base=Path.cwd())
    pipeline, errors = validate(parsed(*complete([[document]], (), os.environ)))
    partial = make_plan(pipeline, errors) if pipeline is not None else None
    found = errors if partial is None else list(partial.errors)
    for error in found:
        for inner in flatten_errors(error):
            inner.where = None
    raise_all(found)
    assert partial is not None
    return partial.plan.nodes[type_].component
