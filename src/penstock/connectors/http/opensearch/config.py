"""Options of the sources and sinks of Elasticsearch and OpenSearch."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from penstock.connectors.http.config import HttpAuth, HttpUrl, SendingConfig
from penstock.connectors.http.opensearch.names import check_key, index_error
from penstock.sdk import ByteSize, Duration, PositiveDuration, Secret
from penstock.sdk.columns.template import KeyTemplate, Template

_SUCCESS = (200, 201)


class ServerAuth(HttpAuth):
    """A user name and a password, an API key, or a token."""

    alternatives = (("username", "password"), ("api_key",), ("token",))

    api_key: Secret | None = None
    """The API key, in the encoded form that the server returns."""

    @property
    def header(self) -> str:
        if self.api_key is not None:
            return f"ApiKey {self.api_key.reveal()}"
        return super().header


class ServerConfig(SendingConfig):
    """Options of a connection."""

    url: HttpUrl
    """The URL of the server, as `http://localhost:9200`."""
    auth: ServerAuth | None = None
    """The credentials: `username` and `password`, `api_key` or `token`."""

    def is_final(self, status: int) -> bool:
        return status in _SUCCESS


class DocumentSourceConfig(ServerConfig):
    index: str = Field(min_length=1)
    """The index, alias or data stream. A pattern, such as `logs-*`, or a list with commas stands
    for several."""
    query: dict[str, Any] = {"match_all": {}}
    """The query, in the query DSL of the server. By default all documents."""
    cursor_columns: list[str] = []
    """The fields in whose order documents are read: a number or keyword that grows, or the time of
    the last change. Each document must have one value of each. Documents with the same values are
    in one batch. Without fields all documents are one batch."""
    watch: bool = False
    """Also reads documents whose values of `cursor_columns` grow beyond those that were read; the
    run does not end."""
    interval: PositiveDuration = 1.0
    """The time between two searches for new documents, with `watch`."""
    min_age: Duration | None = None
    """The age of a time in the first field of `cursor_columns` at which its documents are read,
    with `watch`, in whole seconds. Documents that become visible later than this after their time
    may be missed. By default 5 seconds if the field holds times."""
    max_records: int | None = Field(default=None, ge=1)
    """The number of documents at which a batch ends. Documents with the same values of
    `cursor_columns` as the last one are added."""

    @model_validator(mode="after")
    def _check_cursor(self) -> Self:
        if not self.cursor_columns:
            for option in ("watch", "min_age", "max_records"):
                if getattr(self, option):
                    raise ValueError(f"{option} requires cursor_columns")
        return self


class DocumentSinkConfig(ServerConfig):
    index: Template
    """The index, alias or data stream. `{column}` is replaced by the value of the row."""
    key: KeyTemplate | None = None
    """The ID of a document (`_id`), a template such as `"{country}-{number}"`. In the values of
    several columns the percent sign and the characters between the columns are percent-encoded:
    different values have different IDs. With `mode: upsert` the default is the primary key, its
    columns with a colon between them. Otherwise the server creates IDs by default."""
    action: Literal["index", "create", "update"] = "index"
    """The action for a document whose ID exists: `index` replaces it, `update` sets the fields of
    the row, also those within objects, and keeps all others, and `create` makes the row a dead
    letter, unless the document has the same content. Data streams require `create`."""
    create: bool = True
    """Creates a missing index, with fields of the types of the columns, unless an index template of
    the server defines fields. Without this option a missing index is an error."""
    max_request_size: ByteSize = Field(default=8_000_000, ge=1)
    """The size of a request body, before compression. A larger document is sent alone."""
    compression: Literal["gzip", "none"] = "gzip"
    """The compression of request bodies."""

    @field_validator("index")
    @classmethod
    def _check_index(cls, index: Template) -> Template:
        if index.constant is not None and (error := index_error(index.constant)):
            raise ValueError(error)
        return index

    @field_validator("key")
    @classmethod
    def _check_key(cls, key: KeyTemplate | None) -> KeyTemplate | None:
        if key is not None and (error := check_key(key)):
            raise ValueError(error)
        return key
