"""The options of the transform `steps`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from penstock.core.paths import LocatedPath
from penstock.core.secret import Secret
from penstock.sdk import Config, UserFile, UserPath
from penstock.sdk.network.auth import Auth, PasswordAuth
from penstock.sdk.network.identity import IdentityAuth
from penstock.sdk.network.tls import TlsOption
from penstock.transforms.steps.codec_config import Codec

VALUE = "__value__"
"""The column of a payload that is not decoded."""


class MetadataColumn(Config):
    """A column of a batch beside the decoded ones. A null leaves the column out."""

    column: str | None = None
    """The column of the input."""
    type: Literal["uint32", "uint64", "timestamp", "binary", "string"] = "string"
    """The type of the column."""
    value: str | None = None
    """A text, in place of a column of the input."""
    map: dict[str, str] = {}
    """A map of text, in place of a column: from each key to a column of the input."""
    now: bool = False
    """The time at which the row is processed, in place of a column."""


class StorageAuth(Auth):
    """The credentials of an object store."""

    alternatives = (("access_key", "secret_key"), ("account_key",), ("service_account",))

    access_key: str | None = None
    """The access key ID of S3."""
    secret_key: Secret | None = None
    """The secret access key of S3."""
    account_key: Secret | None = None
    """The key of the account of Azure."""
    service_account: UserFile | None = None
    """The file of a service account of Google."""


class Storage(Config):
    """An object store that Apache DataFusion reads."""

    type: Literal["s3", "gs", "az", "http"]
    """The store: S3, Google Cloud Storage, Azure, or an HTTP server."""
    bucket: str | None = None
    """The bucket, or the container of Azure."""
    region: str | None = None
    """The region of S3."""
    endpoint_url: str | None = None
    """The URL of a server with the protocol of S3."""
    allow_http: bool = False
    """Connect without TLS."""
    account: str | None = None
    """The account of Azure."""
    auth: StorageAuth | None = None
    """The credentials."""


class FileQuery(Config):
    """Files that are read by Apache DataFusion."""

    path: LocatedPath
    """The file, the directory or the URL."""
    format: Literal["json", "csv", "parquet", "avro", "arrow"]
    """The format of the files."""
    query: str | None = None
    """The query over the rows. By default all rows."""
    table: str = "flow"
    """The name of the rows in the query."""
    storage: Storage | None = None
    """The object store of the path."""


class TableQuery(Config):
    """A query by Apache DataFusion over tables of a database."""

    query: str
    """The query. It names tables as CATALOG.SCHEMA.TABLE."""
    catalog: str = "flow"
    """The name of the database in the query."""
    type: Literal["postgres", "mysql", "sqlite", "duckdb"]
    """The database."""
    url: str | None = None
    """The URL of the database."""
    path: UserPath | None = None
    """The file of the database."""
    auth: IdentityAuth | None = None
    """The credentials."""
    tls: TlsOption = None
    """TLS of the connection, as the source of the database has it."""


class StepsInput(Config):
    """How a row of the input becomes a batch."""

    decode: Codec | None = None
    """The format of the payloads."""
    metadata: dict[str, MetadataColumn] = {}
    """Columns beside those of the payload."""
    payload: str | None = None
    """A payload for each row of the input, in place of a column of the input."""
    repeat: int = Field(default=1, ge=1)
    """The number of messages with the payload in a batch."""
    total: int | None = Field(default=None, ge=0)
    """The number of messages of all batches. The last batch has the rest."""
    sample: list[str] = []
    """Payloads for `output.infer`."""
    rows: bool = False
    """The rows of the input are batches: no column is a payload."""
    columns: list[str] = []
    """The columns of `rows`. By default all."""
    lists: list[str] = []
    """Columns of `rows` that become lists of one value."""
    files: FileQuery | None = None
    """Files to read, once for each row of the input."""
    tables: TableQuery | None = None
    """Tables to read, once for each row of the input."""


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
