"""The models of nodes: sources, transforms, sinks and the sink of dead letters."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from penstock.core.units import ByteSize, Duration, PositiveDuration
from penstock.spec.model_types import Labels, NameList, NodeModel, OnError, StrictModel

Late = Literal["drop", "dead_letter"]
"""The action for a late row. Late rows are counted in both cases."""


class Watermark(StrictModel):
    """Event time and the accepted delay of late rows."""

    column: str
    """The event-time column, of type TIMESTAMP.

    Windows and other stateful transforms accept times after 1970-01-01T00:00:00Z and before
    9000-01-01T00:00:00Z. A record with another time becomes a dead letter.
    """
    delay: Duration = 0.0
    """The time to wait for late rows."""
    idle: PositiveDuration | None = None
    """The time without new rows after which a source, or one of its partitions, is idle and does
    not hold back windows and joins.

    By default a source is never idle, and a partition is idle after 10 seconds. Rows that arrive
    later may be late.
    """
    expression: str | None = None
    """A SQL expression over the columns of a source. It adds `column` to the source.

    For example `to_timestamp(substr(line, 1, 19))`. A transform computes the column itself.
    """
    bound: str | None = None
    """A SQL expression over the columns. Its maximum, without `delay`, is the watermark.

    For example `least(sent, received) - INTERVAL 5 SECONDS`. By default it is `column`. A row for
    which it is null or fails does not move the watermark. It calls functions of Spark only.
    """


class LookupCache(StrictModel):
    """The use of a lookup table that was read."""

    ttl: Duration = 0.0
    """The time for which the rows are used before the source is compared again. By default it is
    compared for each batch. Where rows are looked up by key, it is the time for which a row, or the
    absence of a row, is kept."""
    max_bytes: ByteSize | None = Field(default=None, ge=0)
    """The maximum size of the rows that a process keeps where rows are looked up by key, 8 MiB by
    default. The rows used least recently are removed. With 0 no rows are kept."""


class Lookup(StrictModel):
    """A lookup table."""

    cache: LookupCache = LookupCache()
    """The use of the rows that were read."""


class SourceSpec(NodeModel):
    """A source: a system to read from."""

    type: str
    """The connector."""
    connection: str | None = None
    """The connection whose options are the defaults of this node: a name under `connections`."""
    format: str | dict[str, Any] | None = None
    """The format of payloads: a name, or a map of `type` and options."""
    columns: str | dict[str, str] | None = Field(default=None, alias="schema")
    """The columns: a DDL string (`id LONG, at TIMESTAMP`) or a map of name to type.

    Inferred from a sample by default, then pinned in the state directory.
    """
    watermark: Watermark | None = None
    """The event-time column and the accepted delay of late rows."""
    late: Late = "drop"
    """The action for a row that a window, join or deduplication drops, because its event time is
    before the watermark."""
    primary_key: NameList = []
    """The columns of the primary key."""
    operation_column: str | None = None
    """The column that holds the operation of each row: i (insert), ub and u (before and after an
    update) or d (delete). With a format of changes, such as `debezium_json`, the format adds this
    column, by default `_op`. Without it all rows are inserts."""
    on_error: OnError = "dead_letter"
    """The action for a record that cannot be decoded."""
    metadata: list[str] | dict[str, str] = []
    """Metadata columns: a list of names, or a map of column to name."""
    metadata_types: dict[str, str] = {}
    """The expected types of metadata columns. Another type is an error."""
    static: bool = False
    """Read the source once at the start, as a table for joins, instead of as a stream."""
    lookup: bool | Lookup = False
    """Read the source as a table for joins, and again when it changes: a batch is joined with the
    rows at its start. With `primary_key` the table has the last row of each key."""
    labels: Labels = {}
    """Further labels of the metrics of the node."""

    @property
    def lookup_table(self) -> Lookup | None:
        """The options of the lookup table; None for another source."""
        return self.lookup if isinstance(self.lookup, Lookup) else Lookup() if self.lookup else None


class PhaseSpec(NodeModel):
    """A phase of a hybrid source."""

    type: str
    """The connector."""
    connection: str | None = None
    """The connection whose options are the defaults of this phase: a name under `connections`."""
    format: str | dict[str, Any] | None = None
    """The format of payloads: a name, or a map of `type` and options."""


class TransformSpec(NodeModel):
    """A transform between sources and sinks."""

    type: str
    """The transform."""
    inputs: NameList = Field(default=[], alias="from")
    """The input nodes. SQL names its inputs in its text."""
    on_error: OnError = "dead_letter"
    """The action for a record that cannot be processed."""
    primary_key: NameList = []
    """The primary key of the output. By default that of the input, if the output is proved to keep
    it."""
    operation_column: str | None = None
    """The column of the output that holds the operation of each row, as in a source. By default
    that of the input."""
    watermark: Watermark | None = None
    """The event-time column of the output and the accepted delay of late rows.

    For event times that the transform computes. The nodes upstream have no watermark.
    """
    late: Late = "drop"
    """The action for a row that a window, join or deduplication drops, because its event time is
    before the watermark."""
    labels: Labels = {}
    """Further labels of the metrics of the node."""


class BatchOptions(StrictModel):
    """Limits of the batches that a sink writes."""

    max_records: int | None = Field(default=None, ge=1)
    """The maximum number of rows in one write."""
    max_size: ByteSize | None = Field(default=None, ge=1)
    """The maximum size of the payloads in one write. A larger row is written on its own."""
    interval: PositiveDuration | None = None
    """The minimum time between the starts of two batches. Defaults to `runtime.trigger`."""
    min_records: int | None = Field(default=None, ge=1)
    """The number of new records with which a batch starts before the `interval`, which is then the
    longest time that a record waits for others. Requires `interval`."""
    gap: PositiveDuration | None = None
    """The time without new records after which a batch starts. The batch has all records since the
    last one, up to the limits of its sources: a session of processing time. By default batches do
    not wait."""

    @model_validator(mode="after")
    def _check_interval(self) -> BatchOptions:
        if self.min_records is not None and self.interval is None:
            raise ValueError("expected min_records with an interval")
        return self


class SinkSpec(NodeModel):
    """A sink: a system to write to."""

    type: str
    """The connector."""
    inputs: NameList = Field(alias="from")
    """The input node."""
    connection: str | None = None
    """The connection whose options are the defaults of this node: a name under `connections`."""
    format: str | dict[str, Any] | None = None
    """The format of payloads: a name, or a map of `type` and options."""
    mode: Literal["append", "upsert", "replace"] | None = None
    """Append rows, replace rows with the same primary key, or replace the whole content.

    By default `upsert` with a `primary_key`, and otherwise `append`. Sinks of records with keys
    (Kafka, NATS) append rows with the primary key as their key, unless the rows are changes.
    """
    primary_key: NameList = []
    """The columns of the primary key."""
    on_error: OnError = "dead_letter"
    """The action for a record that cannot be encoded or that the system rejects."""
    invalid_utf8: Literal["reject", "replace"] = "reject"
    """The action for a STRING that is not UTF-8, as `CAST(key AS STRING)` of other bytes: a bad
    record, or U+FFFD in place of the invalid bytes."""
    batch: BatchOptions = BatchOptions()
    """Limits of the batches that the sink writes."""
    rate_limit: float | None = Field(default=None, gt=0)
    """The maximum number of rows per second. Rows are then written sequentially."""
    labels: Labels = {}
    """Further labels of the metrics of the node."""


class SideOutputSpec(NodeModel):
    """A side output: an observer of the rows and the progress of nodes."""

    type: str
    """The type of the side output."""
    inputs: NameList = Field(alias="from")
    """The nodes that are observed: sources and transforms."""
    max_rows: int = Field(default=1000, ge=0)
    """The maximum number of rows of a batch that are copied. The others are only counted."""


class DeadLetterSpec(NodeModel):
    """The sink of dead letters, in place of the state directory."""

    type: str
    """The connector."""
    connection: str | None = None
    """The connection whose options are the defaults of this node: a name under `connections`."""
    format: str | dict[str, Any] | None = None
    """The format of payloads."""
