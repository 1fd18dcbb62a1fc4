"""Options of the InfluxDB sink."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlencode

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from penstock.connectors.http.config import HttpAuth, HttpUrl, SendingConfig
from penstock.sdk import Config
from penstock.sdk.columns.template import Template

FieldType = Literal["float", "integer", "unsigned", "string", "boolean"]
PRECISIONS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""The nanoseconds of each precision."""
_ACCEPTED = (200, 204)
_REJECTED = (400, 413, 422)


class InfluxdbAuth(HttpAuth):
    """The API token of InfluxDB 2, or a user name and a password of InfluxDB 1."""

    @property
    def header(self) -> str:
        if self.token is not None:
            return f"Token {self.token.reveal()}"
        return super().header


class PointField(Config):
    """A field of a point."""

    column: str
    """The column with the values."""
    type: FieldType | None = None
    """The type of the field: `float` (64 bits), `integer` (64 bits), `unsigned`, `string` or
    `boolean`. By default that of the column."""


def _as_field(value: object) -> object:
    return {"column": value} if isinstance(value, str) else value


def _as_map(value: object) -> object:
    return {name: name for name in value} if isinstance(value, list) else value


def _schema(value: dict[str, Any]) -> WithJsonSchema:
    """Returns the schema of a list of columns, or of a map of name to `value`."""
    names = {"type": "array", "items": {"type": "string"}}
    return WithJsonSchema({"anyOf": [names, {"type": "object", "additionalProperties": value}]})


_TEXT = {"type": "string"}
Columns = Annotated[dict[str, str], BeforeValidator(_as_map), _schema(_TEXT)]
"""A list of columns, or a map of name to column."""
Fields = Annotated[
    dict[str, Annotated[PointField, BeforeValidator(_as_field)]],
    BeforeValidator(_as_map),
    _schema({"anyOf": [_TEXT, PointField.model_json_schema()]}),
]
"""A list of columns, or a map of name to column or to a field."""


class InfluxdbSinkConfig(SendingConfig):
    url: HttpUrl
    """The URL of the server, as `http://localhost:8086`."""
    auth: InfluxdbAuth | None = None
    """The credentials: `token`, or `username` and `password`."""
    bucket: str | None = None
    """The bucket of InfluxDB 2."""
    org: str | None = None
    """The organization of `bucket`."""
    database: str | None = None
    """The database of InfluxDB 1, in place of `bucket`."""
    retention_policy: str | None = None
    """The retention policy of `database`. By default the one of the database."""
    measurement: Template
    """The measurement. `{column}` is replaced by the value of the row."""
    tags: Columns = {}
    """The tags: a list of columns, or a map of tag to column. An empty text or a null is no tag."""
    fields: Fields = {}
    """The fields: a list of columns, or a map of field to column, or to `{column: ..., type: ...}`.
    By default all columns that no other option names. A null is no field."""
    timestamp: str | None = None
    """The column with the time of a point: a TIMESTAMP or DATE, or an integer in units of
    `precision` since 1970. Without it the time is that of the write, different for each row."""
    precision: Literal["ns", "us", "ms", "s"] = "ns"
    """The unit of the times that are sent. A TIMESTAMP is truncated to it."""
    compression: Literal["gzip", "none"] = "gzip"
    """The compression of request bodies."""

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if (self.bucket is None) == (self.database is None):
            raise ValueError("expected bucket (InfluxDB 2) or database (InfluxDB 1)")
        if self.org is not None and self.bucket is None:
            raise ValueError("org requires bucket")
        if self.retention_policy is not None and self.database is None:
            raise ValueError("retention_policy requires database")
        if self.timestamp is None and "precision" in self.model_fields_set:
            raise ValueError("precision requires timestamp")
        return self

    @property
    def write_url(self) -> str:
        """The URL of writes."""
        if self.database is not None:
            named = {"db": self.database, "rp": self.retention_policy}
            path = "/write"
            # InfluxDB 1 calls nanoseconds `n` and microseconds `u`.
            precision = {"ns": "n", "us": "u"}.get(self.precision, self.precision)
        else:
            named, path = {"bucket": self.bucket, "org": self.org}, "/api/v2/write"
            precision = self.precision
        given = {name: value for name, value in named.items() if value is not None}
        return f"{self.url.rstrip('/')}{path}?{urlencode({**given, 'precision': precision})}"

    def is_success(self, status: int) -> bool:
        """Returns whether a status code acknowledges the points of a request."""
        return status in _ACCEPTED

    def is_final(self, status: int) -> bool:
        return status in _ACCEPTED or status in _REJECTED
