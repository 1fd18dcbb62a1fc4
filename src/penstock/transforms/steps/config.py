"""The options of the transform `steps`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from penstock.core.paths import LocatedPath
from penstock.sdk import Config, UserPath
from penstock.sdk.network.auth import PasswordAuth
from penstock.sdk.network.identity import IdentityAuth
from penstock.sdk.network.tls import TlsOption
from penstock.transforms.steps.codec_config import Codec
from penstock.transforms.steps.input_config import (
    VALUE,
    StepsInput,
)


class Join(Config):
    """A query over the messages of several inputs in a window, each a table of its name."""

    query: str
    """The query of Apache DataFusion."""
    decode: Codec
    """The format of the payloads."""
    column: str = VALUE
    """The column of the payload."""


class Window(Config):
    """Merging of the batches that arrive together."""

    rows: int | None = Field(default=None, ge=1)
    """The number of rows after which a merged batch is complete. By default it has all rows of a
    batch of the pipeline."""
    size: int | None = Field(default=None, ge=1)
    """The number of batches of a sliding window."""
    slide: int | None = Field(default=None, ge=1)
    """The number of batches between the starts of two sliding windows."""
    rest: Literal["write", "keep"] = "write"
    """Batches after the last complete sliding window: they are written as a shorter window, or kept
    in the state of the run for the next windows."""
    join: Join | None = None
    """A query over the inputs of a window."""

    @model_validator(mode="after")
    def _check_slide(self) -> Window:
        if (self.size is None) != (self.slide is None):
            raise ValueError("expected both size and slide, or neither")
        if self.size is not None and self.slide is not None and self.slide > self.size:
            raise ValueError("expected a slide that is not larger than the size")
        if self.rest == "keep" and self.size is None:
            raise ValueError("expected rest: keep with size and slide")
        return self


class KeyExpression(Config):
    """A text, or an expression of Apache DataFusion over the columns of a batch."""

    value: str | None = None
    """The text."""
    expr: str | None = None
    """The expression."""

    @model_validator(mode="after")
    def _check_one(self) -> KeyExpression:
        if (self.value is None) == (self.expr is None):
            raise ValueError("expected either value or expr")
        return self


class RedisLookup(Config):
    """Rows of Redis, by key, as a table of a query."""

    table: str
    """The name of the table in the query."""
    key: KeyExpression
    """The keys of the rows."""
    url: str | list[str]
    """The server, or nodes of a cluster."""
    auth: PasswordAuth | None = None
    """The credentials."""
    cluster: bool = False
    """Connect to a Redis Cluster."""
    kind: Literal["string", "list"] = "string"
    """Whether a key has one value or a list of values."""
    decode: Codec
    """The format of the values."""


class Step(Config):
    """A step of a batch. Each type has its own options."""

    type: Literal["decode", "encode", "sql", "python", "vrl", "wasm", "merge"]
    """`decode` a column into columns, `encode` rows into a column, `sql`, `python`, `vrl`, `wasm`,
    or `merge` batches."""
    codec: Codec | None = None
    """The format of `decode` and `encode`."""
    column: str = VALUE
    """The column of the payload of `decode` and `encode`."""
    fields: list[str] | None = None
    """The columns that are decoded or encoded. By default all."""
    query: str | None = None
    """The query of `sql`, in the dialect of Apache DataFusion."""
    table: str = "flow"
    """The name of the batch in the query."""
    lookups: list[RedisLookup] = []
    """Tables of the query with the rows of the keys of a batch."""
    code: str | None = None
    """The code of `python`, or the program of `vrl`."""
    module: LocatedPath | None = None
    """The module of the function, in place of the code; of `wasm` a file in text or binary form."""
    function: str | None = None
    """The function: from a RecordBatch to a list of RecordBatches; of `wasm` from a row to a row,
    as JSON."""
    fuel: int = Field(default=10_000_000, ge=1)
    """The maximum number of instructions of `wasm` for a row."""
    python_path: list[LocatedPath] = []
    """Directories of modules."""
    count: int | None = Field(default=None, ge=1)
    """The number of batches that `merge` makes one batch of."""

    @model_validator(mode="after")
    def _check_required(self) -> Step:
        required = {
            "decode": "codec", "encode": "codec", "sql": "query", "python": "function",
            "vrl": "code", "wasm": "module", "merge": "count",
        }[self.type]  # fmt: skip
        if getattr(self, required) is None:
            raise ValueError(f'the step "{self.type}" requires "{required}"')
        return self


class TargetTable(Config):
    """A table whose columns are written."""

    type: Literal["postgres", "mysql", "sqlite"]
    """The database."""
    url: str | None = None
    """The URL of the database."""
    path: UserPath | None = None
    """The file of the database."""
    table: str
    """The table."""
    auth: IdentityAuth | None = None
    """The credentials."""
    tls: TlsOption = None
    """TLS of the connection, as the source of the database has it."""
    columns: list[str] | None = None
    """The columns, if not all."""


class StepsOutput(Config):
    """The rows that are written."""

    encode: Codec | None = None
    """The format of payloads. By default the payload is the column `value`; rows without the column
    are JSON."""
    value: str | None = None
    """The column of the payload: by default `__value__`."""
    columns: dict[str, KeyExpression] = {}
    """Columns beside the payload, such as a topic."""
    rows: str | dict[str, str] | None = None
    """The columns that are written in place of a payload, as a DDL string or a map of name to
    type."""
    infer: bool = False
    """The columns of the first batch are written in place of a payload. The inputs have an end, or
    a `payload` or a `sample`."""
    target: TargetTable | None = None
    """A table with the columns that are written in place of a payload, with their types."""


class StepsConfig(Config):
    inputs: dict[str, StepsInput] = {}
    """The inputs by name. The column `__input__` has the name of the input, if there are several.
    By default there is one input, of messages."""
    window: Window | None = None
    """Merging of the batches that arrive together."""
    steps: list[Step] = []
    """The steps, in order."""
    output: StepsOutput = StepsOutput()
    """The rows that are written."""
    failures: StepsOutput | None = None
    """The rows that are written for a batch on which a step fails: its input, with the column
    `failed`. By default the input becomes a dead letter."""

    @model_validator(mode="after")
    def _check_rest(self) -> StepsConfig:
        keeps = self.window is not None and self.window.rest == "keep"
        if keeps and any(each.files or each.tables for each in self.inputs.values()):
            raise ValueError("expected rest: write for inputs of files and tables, which end")
        return self
