"""Start of the queries of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.batch import BatchRunner
from penstock.engine.batch_observer import BatchObserver
from penstock.engine.build import Builder
from penstock.engine.catalyst.spark_plan import analyzed_plan, class_name, scala_items
from penstock.engine.checkpoints.state_storage import LOCAL_QUERY, QueryStorage
from penstock.engine.checkpoints.stream_state import (
    check_stream_state,
    has_exact_sums,
    has_same_joins,
    record_stream_state,
    record_timed_windows,
)
from penstock.engine.deduplication.plan import by_event_time_of_stream
from penstock.engine.deduplication.state import KeptRows
from penstock.engine.derivation import Checks
from penstock.engine.failures.checked_queries import has_checks
from penstock.engine.failures.places import FailingRowPlaces
from penstock.engine.late.late_search import find_late_rows
from penstock.engine.row_checks.read_columns import has_stream_join, read_columns
from penstock.engine.sources.datasource import TASK
from penstock.engine.sources.gap import prepare_gap
from penstock.engine.sources.pushdown import NODE
from penstock.engine.sources.shared_sources import SHARED_SETTINGS, read_once
from penstock.engine.spark_session.callbacks import Callback, keep_until_end
from penstock.engine.watermarks.idle import IdleSources, IdleTime
from penstock.engine.watermarks.source_watermarks import source_watermarks
from penstock.engine.watermarks.watermark import keep_filters_above
from penstock.engine.windows.distinct import by_distinct_values
from penstock.engine.windows.exact_sums import by_exact_sums
from penstock.engine.windows.panes import by_panes
from penstock.engine.windows.window_bounds import by_whole_windows
from penstock.plan.graph import stream_sources
from penstock.plan.model import Query

Until = Literal["stopped", "caught_up", "complete", "closed"]

_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
"""Whether batches without rows close windows. Spark reads the setting at a start."""
_ONE_JOB = {"spark.sql.adaptive.enabled": "false"}
"""Settings of updating queries. Adaptive execution has a job for each shuffle of a batch."""


@dataclass
class StartedQuery:
    """A started query and its batch function.

    `sources` are in the order of Spark's progress events. `changed_tables` are static tables with
    other rows than those the query continues with.
    """

    query: Query
    spark: StreamingQuery
    runner: BatchRunner
    sources: tuple[str, ...]
    idle: IdleSources
    changed_tables: tuple[str, ...] = ()


def start(
    builder: Builder,
    query: Query,
    checkpoint: Path,
    observer: BatchObserver,
    *,
    until: Until,
    trigger: float,
    storage: QueryStorage = LOCAL_QUERY,
) -> StartedQuery:
    """Starts a query. With `until` other than `stopped` the query ends by itself.

    `complete` is `caught_up` without the batch for windows closed by the last rows, because
    `closed` follows: the batch of the sentinel row (see `engine.sources.sentinel`). A query that
    repeats the batches of another one has no other batches. A query that ends with
    `ChecksRequired` must be started again.
    """
    checks_rows = builder.checks_rows or has_checks(checkpoint)
    builder = replace(builder, checkpoint=checkpoint, checks_rows=checks_rows)
    repeats = query.past_watermarks is not None
    stays_open = until == "complete" and not builder.closes_windows
    without_empty_batches = stays_open or (repeats and until != "closed")
    wait = builder.plan.wait(query)
    if until == "stopped" and wait[0] is not None:
        prepare_gap(checkpoint)
        builder = replace(builder, wait=wait)
    changed_tables = builder.keep_tables(query, checkpoint)
    settings = {_EMPTY_BATCHES: "false"} if without_empty_batches else {}
    with _settings(builder.session, settings):
        builder, unchecked, frames = _build_streams(builder, query)
        late = find_late_rows(builder, query, unchecked[query.root], builder.computed_watermarks)
        watermarks = source_watermarks(builder, query, builder.watermark_ids)
        separate, kept = executed_stream(frames[query.root], checkpoint)
        stream = read_once(separate)
        places = FailingRowPlaces(builder, query, checkpoint, _source_tasks(stream))
        runner = BatchRunner(
            builder, query, checkpoint, observer, late, watermarks, kept, places, storage=storage
        )
        is_stateful = any(builder.plan.nodes[name].stateful for name in query.stream_nodes)
        if is_stateful and checkpoint not in builder.analysis.compared_states:
            # Checks rename the columns of aggregations, which remain the same in the state.
            known = separate
            if frames is not unchecked:
                known, _ = executed_stream(unchecked[query.root], checkpoint)
            check_stream_state(query, known, checkpoint)
            record_stream_state(known, checkpoint)
            builder.analysis.compared_states.add(checkpoint)
        record_timed_windows(checkpoint)
        callback = Callback(runner)
        writer = (
            stream.writeStream.queryName(query.name)
            .outputMode(query.output_mode)
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(callback)
        )
        if until == "stopped":
            writer = writer.trigger(processingTime=f"{round(trigger * 1000)} milliseconds")
        else:
            writer = writer.trigger(availableNow=True)
        sources = _source_order(stream)
        settings = dict(SHARED_SETTINGS) if stream is not separate else {}
        settings |= _ONE_JOB if query.updating else {}
        with _settings(builder.session, settings):
            started = writer.start()
        keep_until_end(started, callback)
        idle = IdleSources(builder.session, started, sources, _idle_times(builder, query))
        return StartedQuery(query, started, runner, sources, idle, tuple(changed_tables))


def _build_streams(
    builder: Builder, query: Query
) -> tuple[Builder, Mapping[str, DataFrame], Mapping[str, DataFrame]]:
    """Returns the builder of the streams of a query, the streams without checks, and the streams.

    The streams without checks may be those of an earlier start, which must not be executed again.
    The sentinel row, which follows other rows, is not late, and needs no streams without checks.
    """
    unchecked = builder.unchecked
    if not builder.checks_rows:
        frames = unchecked[query.name] = builder.build_streams(query)
        return builder, frames, frames
    known = builder.analysis.checks.get(query.name)
    needs_unchecked = known is None or not builder.sentinel_only
    if needs_unchecked and query.name not in unchecked:
        frames = unchecked[query.name] = replace(builder, checks_rows=False).build_streams(query)
        builder = replace(builder, shared=frames if builder.with_sentinel else {})
    if known is None:
        builder, frames = _checked_streams(builder, query, unchecked[query.name])
    else:
        builder = replace(builder, read_columns=known.read_columns, checks_joins=known.of_joins)
        frames = builder.build_streams(query)
    builder = replace(builder, shared={})
    return builder, unchecked[query.name] if needs_unchecked else frames, frames


def _checked_streams(
    builder: Builder, query: Query, unchecked: Mapping[str, DataFrame]
) -> tuple[Builder, dict[str, DataFrame]]:
    """Returns the streams of a query with checks, and their builder.

    Rows of joins and rows downstream have no checks where the state of a join would have other
    columns.
    """
    # The root of several merged streams is no node.
    names = [name for name, node in builder.plan.nodes.items() if node.watermark is None]
    computed = {name: frame for name, frame in unchecked.items() if name in names}
    read = read_columns(computed, unchecked[query.root])
    builder = replace(builder, read_columns=read)
    frames, root = builder.build_streams(query), unchecked[query.root]
    if has_stream_join(root) and not has_same_joins(frames[query.root], root):
        builder = replace(builder, checks_joins=False)
        frames = builder.build_streams(query)
    builder.analysis.checks[query.name] = Checks(read, of_joins=builder.checks_joins)
    return builder, frames


def executed_stream(root: DataFrame, checkpoint: Path) -> tuple[DataFrame, KeptRows | None]:
    """Returns the stream that Spark executes for the root of a query. Reads no data.

    Returns also the state of its deduplications, if there is any.
    """
    compared, kept = by_event_time_of_stream(root, checkpoint)
    stream = by_distinct_values(by_whole_windows(compared))
    if has_exact_sums(checkpoint):
        stream = by_exact_sums(stream)
    return keep_filters_above(by_panes(stream)), kept


def _source_order(frame: DataFrame) -> tuple[str, ...]:
    """Returns the sources of a streaming DataFrame in the order of Spark's progress reports."""
    return tuple(_source_tasks(frame))


def _source_tasks(frame: DataFrame) -> dict[str, str]:
    """Returns the packed tasks of the sources of a streaming DataFrame, in the same order."""
    nodes = scala_items(analyzed_plan(frame).collectLeaves())
    options = [node.extraOptions() for node in nodes if "Streaming" in class_name(node)]
    return {each.get(NODE): each.get(TASK) for each in options}


def _idle_times(builder: Builder, query: Query) -> tuple[IdleTime, ...]:
    """Returns the idle times of the sources of a query; none if they share one watermark."""
    nodes = [builder.plan.nodes[name] for name in query.stream_nodes]
    marked = [node for node in nodes if node.watermark is not None]
    if len(marked) < 2 or query.updating or builder.sentinel_only:
        return ()
    return tuple(
        IdleTime(
            builder.watermark_ids[node.name],
            frozenset(stream_sources(node.name, builder.plan.nodes, builder.plan.streams)),
            node.watermark.idle,
        )
        for node in marked
        if node.watermark is not None and node.watermark.idle is not None
    )


@contextmanager
def _settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Changes settings of the session, which a query copies at its start."""
    previous = {name: session.conf.get(name, None) for name in values}
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, before in previous.items():
            if before is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, before)
