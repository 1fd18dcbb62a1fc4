"""The options of the input of the transform `steps`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.core.paths import LocatedPath
from penstock.core.secret import Secret
from penstock.sdk import Config, UserFile, UserPath
from penstock.sdk.network.auth import Auth
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
