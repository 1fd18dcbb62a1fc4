"""Comparison of the state of a query with the columns that its operators compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from penstock.core.errors import PenstockError, raise_all
from penstock.engine.build import Builder
from penstock.engine.checkpoints.stream_state import check_stream_state
from penstock.engine.sources.merged import merge
from penstock.engine.start import executed_stream
from penstock.engine.updating.batch import UpdatingBatch
from penstock.plan.model import Query


def check_state(builder: Builder, query: Query, checkpoint: Path) -> None:
    """Raises StateError if the state in a checkpoint does not fit the query. Reads no rows."""
    builder = replace(builder, checkpoint=checkpoint)
    errors: dict[str, PenstockError] = {}
    frames = builder.typed_frames(replace(query, batch_nodes=(), sinks=()), errors)
    raise_all(errors.values())
    roots = {name: frames[name] for name in query.merged or (query.root,)}
    if any(builder.plan.nodes[name].stateful for name in query.stream_nodes):
        stream = merge(roots) if query.merged else roots[query.root]
        executed, _ = executed_stream(stream, checkpoint)
        check_stream_state(query, executed, checkpoint)
    updating = UpdatingBatch.next(builder.plan, builder.session, checkpoint)
    if not query.updating or updating is None:
        return
    session = builder.session
    empty = {n: session.createDataFrame([], frame.schema) for n, frame in roots.items()}
    root = merge(empty) if query.merged else empty[query.root]
    try:
        replace(builder, updating=updating).build_batch(query, root)
    finally:
        updating.release()
