"""The models of a pipeline: the source of validation, of the JSON Schema and of the docs."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from penstock.core.paths import UserPath
from penstock.core.retry import Backoff
from penstock.core.units import ByteSize, Duration, PositiveDuration, byte_count

OnError = Literal["dead_letter", "fail", "drop"]


class StrictModel(BaseModel):
    """Base of all parts of a pipeline: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class NodeModel(StrictModel):
    """Base of nodes: further keys are options of the `type`."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the node's type, as written."""
        return dict(self.__pydantic_extra__ or {})


def _as_list(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise PydanticCustomError("names_type", "expected a name or a list of names")
    return value


NameList = Annotated[
    list[str],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A name, or a list of names."""

PathList = Annotated[
    list[UserPath],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A path, or a list of paths."""


_MASTER = r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn"


def _check_master(value: str) -> str:
    if not re.fullmatch(_MASTER, value):
        raise ValueError("expected local[N], spark://HOST:PORT, yarn or k8s://URL")
    return value


Master = Annotated[str, AfterValidator(_check_master)]
"""The URL of Spark's master."""

MIN_HEAP = 512 * 10**6


def _check_heap(value: str) -> str:
    if value == "auto":
        return value
    try:
        size = byte_count(value)
    except ValueError:
        raise ValueError("expected auto, or a size such as 2g or 1500 MB") from None
    if size < MIN_HEAP:
        raise ValueError("expected auto, or at least 512 MB, the minimum of Spark")
    return value


Heap = Annotated[
    str,
    AfterValidator(_check_heap),
    WithJsonSchema({"type": "string", "examples": ["auto", "2g", "1500 MB"]}),
]
"""The size of a heap, or `auto`."""


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
    """The time without new rows after which a source, or a partition of a topic, is idle and does
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

    @property
    def lookup_table(self) -> Lookup | None:
        """The options of the lookup table; None for another source."""
        return self.lookup if isinstance(self.lookup, Lookup) else Lookup() if self.lookup else None


class TransformSpec(NodeModel):
    """A transform between sources and sinks."""

    type: str
    """The transform."""
    inputs: NameList = Field(default=[], alias="from")
    """The input nodes. SQL names its inputs in its text."""
    on_error: OnError = "dead_letter"
    """The action for a record that cannot be processed."""
    primary_key: NameList = []
    """The primary key of the output."""
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


class BatchOptions(StrictModel):
    """Limits of the batches that a sink writes."""

    max_records: int | None = Field(default=None, ge=1)
    """The maximum number of rows in one write."""
    max_size: ByteSize | None = Field(default=None, ge=1)
    """The maximum size of the payloads in one write. A larger row is written on its own."""
    interval: PositiveDuration | None = None
    """The minimum time between the starts of two batches. Defaults to `runtime.trigger`."""


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
    batch: BatchOptions = BatchOptions()
    """Limits of the batches that the sink writes."""
    rate_limit: float | None = Field(default=None, gt=0)
    """The maximum number of rows per second. Rows are then written sequentially."""


def _as_types(value: object) -> object:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return dict.fromkeys(value)
    if not isinstance(value, dict):
        raise PydanticCustomError("types_type", "expected a map of name to type")
    return value


ParameterTypes = Annotated[
    dict[str, str | None],
    BeforeValidator(_as_types),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "object",
                    "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                {"type": "array", "items": {"type": "string"}},
            ]
        }
    ),
]
"""Parameters: a map of name to type, or a list of names."""


class FunctionSpec(StrictModel):
    """A function that SQL can call: in Python (`code`) or in SQL (`sql`)."""

    kind: Literal["scalar", "aggregate", "table"] = "scalar"
    """A value for each row, a value for each group (the arguments are lists), or rows for each
    row."""
    args: ParameterTypes = {}
    """The parameters: a map of name to type. A function in SQL may omit the types."""
    returns: str | None = None
    """The type of the result; of a table function its columns. A function in SQL may omit it."""
    code: str | None = None
    """Python: the body of the function, or source that defines a function of this name."""
    sql: str | None = None
    """A SQL expression over the parameters."""
    vectorized: bool = False
    """Whether the function takes and returns Arrow arrays instead of values."""
    skip_nulls: bool = False
    """Whether the result is null, without a call, if an argument is null."""
    deterministic: bool = True
    """Whether the same arguments always give the same result."""
    concurrency: int = Field(default=10, ge=1)
    """The maximum number of concurrent calls of an `async` function in a task."""
    timeout: PositiveDuration = 30.0
    """The maximum time of one call of an `async` function."""
    ordered: bool = True
    """Whether the rows of an `async` function keep their order. Rows also keep it with `false`,
    which permits another order."""
    dependencies: list[str] = []
    """Required Python packages, such as `numpy>=2`. They are not installed."""


class DeadLetterSpec(NodeModel):
    """The sink of dead letters, in place of the state directory."""

    type: str
    """The connector."""
    connection: str | None = None
    """The connection whose options are the defaults of this node: a name under `connections`."""
    format: str | dict[str, Any] | None = None
    """The format of payloads."""


class Restart(Backoff):
    """Restart of queries and receivers after a failure."""

    attempts: int | None = Field(default=None, ge=0)
    """The maximum number of restarts after transient failures within `window`.

    By default a run of unbounded sources has no maximum. A run that ends by itself has 8."""
    window: PositiveDuration = 3600.0
    """The time in which restarts are counted."""
    backoff: PositiveDuration = 1.0
    """The pause before the first restart. It doubles with each further failure.

    The first failure after a written batch starts again with this pause."""
    max_backoff: PositiveDuration = 60.0
    """The longest pause."""
    on_permanent: Literal["stop_pipeline", "stop_query"] = "stop_pipeline"
    """Whether a permanent failure of a query stops the pipeline or only the query."""


class DeadLetterLimits(StrictModel):
    """Limits of the dead letters in the state directory."""

    max_size: ByteSize = 2**30
    """The maximum size in total. The pipeline fails when it is exceeded."""
    retention: PositiveDuration = 30 * 86400.0
    """The age at which dead letters are removed."""


class Runtime(StrictModel):
    """Settings of the runtime. No setting but `updating_ttl` changes the result of the pipeline."""

    master: Master = "local[*]"
    """Spark's master: local[N], spark://..., yarn, k8s://..."""
    trigger: Duration | Literal["asap"] = 0.02
    """The minimum time between the starts of two batches.

    Batches start at multiples of this time, and only if there are new rows. A longer time takes
    less CPU time: fewer and larger batches.
    """
    state: UserPath = ".penstock"
    """The state directory: a local directory, or a path that all machines share."""
    state_store: Literal["auto", "memory", "rocksdb"] = "auto"
    """The state store of windows and joins: memory is faster, RocksDB is larger.

    `auto` is memory if the heap has at least 1 GiB, otherwise RocksDB. With `auto` and a local
    master, state in memory that exceeds 30 % of the heap moves to RocksDB between two batches: the
    query restarts, and no row is lost or repeated. `rocksdb` moves existing state at the start.
    State in RocksDB stays there.
    """
    partitions: int | None = Field(default=None, ge=1)
    """The number of partitions of windows and joins. Defaults to the number of cores.

    The first run pins the value.
    """
    updating_ttl: Duration | None = None
    """The time after which an updating query removes a key that gets no new rows.

    The key is deleted from the result as well. By default rows stay for ever. Rows are removed
    while other rows arrive, up to a twentieth of the time later.
    """
    packages: list[str] = []
    """Maven coordinates of jars for Spark."""
    java: Literal["bundled", "system"] = "bundled"
    """The Java runtime: the bundled one or that of the system."""
    memory: Heap = "auto"
    """The heap size of Spark's driver, which is all of Spark's memory in local mode.

    `auto` is a quarter of the memory of the machine or of its container, at most half of the
    available memory, and at most 1 GiB per core (3 GiB with less than three cores, 16 GiB in
    total). Heaps of other running pipelines count as not available. `penstock explain` shows the
    size.
    """
    spark: dict[str, str | int | float | bool] = {}
    """Spark settings, passed to Spark unchanged."""
    restart: Restart = Restart()
    """Restart of failed queries."""
    dead_letters: DeadLetterLimits = DeadLetterLimits()
    """Limits of the dead letters in the state directory."""


Rows = list[dict[str, Any]]


class Given(StrictModel):
    """Input of a source in a test: one batch, or several."""

    rows: Rows | None = None
    """One batch of rows."""
    payloads: list[str | dict[Literal["hex", "base64"], str]] | None = None
    """One batch of payloads, to test decoding. `{hex: ...}` and `{base64: ...}` are bytes."""
    batches: list[Rows] | None = None
    """Several batches of rows, in order."""


class ExpectedDeadLetter(StrictModel):
    """An expected dead letter. Absent keys match anything."""

    node: str | None = None
    """The failing node."""
    code: str | None = None
    """The error code."""
    message: str | None = None
    """A part of the error message."""
    payload: str | None = None
    """A part of the payload."""


class ExpectedError(StrictModel):
    """The expected error of a pipeline."""

    code: str | None = None
    """The error code."""
    message: str | None = None
    """A part of the error message."""


class TestCase(StrictModel):
    """Input rows of sources and expected rows of nodes and sinks."""

    __test__ = False

    name: str
    """The name of the case."""
    given: dict[str, Given | Rows]
    """The input of each source: rows, or a map with `rows`, `payloads` or `batches`."""
    expect: dict[str, Rows] = {}
    """The exact rows of each node or sink. Absent columns match anything."""
    ordered: bool = False
    """Whether the order of rows is compared."""
    dead_letters: list[ExpectedDeadLetter] | None = None
    """The exact dead letters, in any order. Defaults to none."""
    error: ExpectedError | None = None
    """The error that the pipeline must fail with."""


class PipelineSpec(StrictModel):
    """A pipeline file."""

    name: str | None = None
    """The name of the pipeline. Defaults to the name of the file."""
    description: str | None = None
    """A description of the pipeline."""
    include: NameList = []
    """Files to merge into this file: paths or patterns, relative to this file."""
    connections: dict[str, dict[str, Any]] = {}
    """Options shared by several nodes, by name."""
    sources: dict[str, SourceSpec] = {}
    """Sources, by name."""
    transforms: dict[str, TransformSpec] = {}
    """Transforms, by name."""
    sinks: dict[str, SinkSpec] = {}
    """Sinks, by name."""
    functions: dict[str, FunctionSpec] = {}
    """Functions that SQL can call, by name."""
    function_files: PathList = []
    """Python files with functions that SQL can call: those with a decorator of `penstock`."""
    dead_letter: DeadLetterSpec | None = None
    """The sink of dead letters, in place of the state directory."""
    runtime: Runtime = Runtime()
    """Settings of the runtime."""
    tests: list[TestCase] = []
    """Test cases for `penstock test`."""
