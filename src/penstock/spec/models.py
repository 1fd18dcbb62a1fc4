"""The shape of a pipeline: what the parser, the JSON Schema and the docs all come from."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from penstock.core.paths import UserPath
from penstock.core.units import ByteSize, Duration

OnError = Literal["dead_letter", "fail", "drop"]


class Shape(BaseModel):
    """Base of all parts of a pipeline file: closed and frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Open(Shape):
    """A node: the keys that are not its own are options of its `type`."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the node's type, as written."""
        return dict(self.__pydantic_extra__ or {})


def _words(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise PydanticCustomError("names_type", "expected a name or a list of names")
    return value


Names = Annotated[
    list[str],
    BeforeValidator(_words),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""One name, or a list of them."""


_MASTER = r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn"


def _master(value: str) -> str:
    if not re.fullmatch(_MASTER, value):
        raise ValueError("expected local[N], spark://HOST:PORT, yarn or k8s://URL")
    return value


Master = Annotated[str, AfterValidator(_master)]
"""Where Spark runs."""


class Watermark(Shape):
    """How late rows may be."""

    column: str
    """The event-time column, of type TIMESTAMP."""
    delay: Duration = 0.0
    """How long to wait for rows that are late."""


class SourceSpec(Open):
    """A system that is read."""

    type: str
    """The connector."""
    connection: str | None = None
    """A name under `connections`, whose options are this node's defaults."""
    format: str | dict[str, Any] | None = None
    """How payloads become rows: a format's name, or a map of `type` and its options."""
    columns: str | dict[str, str] | None = Field(default=None, alias="schema")
    """The columns: a DDL string (`id LONG, at TIMESTAMP`) or a map of name to type.

    Inferred from a sample when absent, then pinned in the state directory.
    """
    watermark: Watermark | None = None
    """The event-time column and how late rows may be."""
    primary_key: Names = []
    """The columns that identify a row."""
    on_error: OnError = "dead_letter"
    """What happens to a record that cannot be decoded."""
    metadata: list[str] | dict[str, str] = []
    """Columns about the record itself: a list of names, or a map of new column to name."""
    static: bool = False
    """Read whole when the pipeline starts, as a table to join with, not as a stream."""


class TransformSpec(Open):
    """A step between sources and sinks."""

    type: str
    """The transform."""
    inputs: Names = Field(default=[], alias="from")
    """The nodes that it reads. SQL names them in its text."""
    on_error: OnError = "dead_letter"
    """What happens to a record that it fails on."""
    primary_key: Names = []
    """The columns that identify a row of the output."""


class Batching(Shape):
    """How rows are gathered before they are written."""

    rows: int | None = Field(default=None, ge=1)
    """The most rows that are written in one go."""
    bytes: ByteSize | None = Field(default=None, ge=1)
    """The most bytes of payload that are written in one go; a larger row goes alone."""
    time: Duration | None = None
    """How long rows are gathered; without it no longer than the batch before takes."""


class SinkSpec(Open):
    """A system that is written to."""

    type: str
    """The connector."""
    inputs: Names = Field(alias="from")
    """The node whose rows are written."""
    connection: str | None = None
    """A name under `connections`, whose options are this node's defaults."""
    format: str | dict[str, Any] | None = None
    """How rows become payloads: a format's name, or a map of `type` and its options."""
    mode: Literal["append", "upsert", "replace"] | None = None
    """Add rows, replace those with the same primary key, or replace everything each time."""
    primary_key: Names = []
    """The columns that identify a row."""
    on_error: OnError = "dead_letter"
    """What happens to a record that cannot be encoded or that the system refuses."""
    batch: Batching = Batching()
    """How rows are gathered before they are written."""
    rate_limit: float | None = Field(default=None, gt=0)
    """The most rows a second; they are written one after the other then."""


class DeadLetterSpec(Open):
    """Where failed records go instead of the state directory: any sink."""

    type: str
    """The connector."""
    connection: str | None = None
    """A name under `connections`, whose options are this node's defaults."""
    format: str | dict[str, Any] | None = None
    """How dead letters become payloads."""


class Restart(Shape):
    """What happens when a query fails."""

    attempts: int = Field(default=5, ge=0)
    """How often a query is started again after transient failures in a row."""
    backoff: str = "1s..60s"
    """The first and the longest pause between attempts."""
    on_permanent: Literal["stop_pipeline", "stop_query"] = "stop_pipeline"
    """Whether the other queries go on when one cannot."""


class DeadLetterBounds(Shape):
    """How many dead letters the state directory keeps."""

    max_size: ByteSize = 2**30
    """When they take more than this, the pipeline stops and says so."""
    retention: Duration = 30 * 86400.0
    """Older ones are removed."""


class Runtime(Shape):
    """Where and how the pipeline runs. No part of it changes what the pipeline computes."""

    master: Master = "local[*]"
    """Spark's master: local[N], spark://..., yarn, k8s://..."""
    trigger: Duration | Literal["asap"] = 0.2
    """The least time between the starts of two batches."""
    state: UserPath = ".penstock"
    """The directory that holds the pipeline's state, or a path that all machines share."""
    state_store: Literal["auto", "memory", "rocksdb"] = "auto"
    """Where windows and joins keep their state: memory is faster, RocksDB holds more."""
    partitions: int | None = Field(default=None, ge=1)
    """The number of partitions of windows and joins; as many as cores when absent.

    Pinned by the first run.
    """
    packages: list[str] = []
    """Maven coordinates of jars for Spark."""
    java: Literal["bundled", "system"] = "bundled"
    """The Java that comes with Penstock, or the machine's own."""
    memory: str = "1g"
    """The heap of Spark's driver; in local mode that is all of Spark's memory."""
    spark: dict[str, str | int | float | bool] = {}
    """Spark settings, passed on as they are."""
    restart: Restart = Restart()
    """What happens when a query fails."""
    dead_letters: DeadLetterBounds = DeadLetterBounds()
    """How many dead letters the state directory keeps."""


Rows = list[dict[str, Any]]


class Given(Shape):
    """What a source delivers in a test: one batch, or several."""

    rows: Rows | None = None
    """One batch of rows."""
    payloads: list[str | dict[Literal["hex", "base64"], str]] | None = None
    """One batch of payloads, so that decoding is tested.

    `{hex: ...}` and `{base64: ...}` give bytes.
    """
    batches: list[Rows] | None = None
    """Several batches of rows, one after the other."""


class ExpectedDeadLetter(Shape):
    """A dead letter that a test expects; keys that are left out match anything."""

    node: str | None = None
    """The node that failed."""
    code: str | None = None
    """The error's code."""
    message: str | None = None
    """A part of the error's text."""
    payload: str | None = None
    """A part of the record's payload."""


class ExpectedError(Shape):
    """The error that a pipeline is expected to stop with."""

    code: str | None = None
    """The error's code."""
    message: str | None = None
    """A part of its text."""


class TestCase(Shape):
    """Rows given at sources, and rows expected at nodes and sinks."""

    __test__ = False

    name: str
    """What the case shows."""
    given: dict[str, Given | Rows]
    """For each source: rows, or a map with `rows`, `payloads` or `batches`."""
    expect: dict[str, Rows] = {}
    """For each node or sink: exactly these rows; columns that are left out match anything."""
    ordered: bool = False
    """Whether the order of rows counts."""
    dead_letters: list[ExpectedDeadLetter] | None = None
    """Exactly these dead letters, in any order; absent: none."""
    error: ExpectedError | None = None
    """The pipeline must stop with this error."""


class PipelineSpec(Shape):
    """A pipeline file."""

    name: str | None = None
    """The pipeline's name; the file's name when absent."""
    description: str | None = None
    """What it is for."""
    include: Names = []
    """Files whose maps are merged into this one."""
    connections: dict[str, dict[str, Any]] = {}
    """Options that several nodes share, by name."""
    sources: dict[str, SourceSpec] = {}
    """Systems that are read, by name."""
    transforms: dict[str, TransformSpec] = {}
    """Steps between, by name."""
    sinks: dict[str, SinkSpec] = {}
    """Systems that are written to, by name."""
    dead_letter: DeadLetterSpec | None = None
    """Where failed records go instead of the state directory."""
    runtime: Runtime = Runtime()
    """Where and how it runs."""
    tests: list[TestCase] = []
    """Cases for `penstock test`."""
