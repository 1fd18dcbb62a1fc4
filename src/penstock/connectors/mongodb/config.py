"""Options of the MongoDB source and sink."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.sdk import Duration
from penstock.sdk.database.changes import ChangesOptions
from penstock.sdk.database.config import CursorConfig, ServerConfig
from penstock.sdk.network.auth import PasswordAuth
from penstock.sdk.network.tls import Tls, resolve_tls

ID = "_id"
SRV = "mongodb+srv"
Name = Annotated[str, Field(min_length=1)]


class MongodbAuth(PasswordAuth):
    """A user name and a password (SCRAM), or the identity that the machine has in its cloud."""

    alternatives = (("username", "password"), ("identity",))
    requires = {"audience": "identity", "client_id": "identity"}

    identity: Literal["aws", "azure", "google"] | None = None
    """The cloud whose identity logs in, in place of a user: the IAM role of AWS (`MONGODB-AWS`), or
    the managed identity or workload identity of Azure, or the service account of Google Cloud
    (`MONGODB-OIDC`). The server must support the mechanism, as MongoDB Atlas does. AWS requires the
    extra `aws`."""
    audience: Name | None = None
    """The audience of the tokens that the server accepts, with `identity` of Azure (the URI of the
    application) and Google Cloud."""
    client_id: str | None = None
    """The client ID of a user-assigned identity, with `identity: azure`."""
    database: Name = "admin"
    """The database that has the user."""

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        if (self.audience is None) == (self.identity in ("azure", "google")):
            expected = "requires" if self.audience is None else "has no"
            raise ValueError(f"identity: {self.identity} {expected} audience")
        if self.client_id is not None and self.identity != "azure":
            raise ValueError("client_id requires identity: azure")
        if self.identity is not None and "database" in self.model_fields_set:
            raise ValueError("database requires username and password")
        return self


class ConnectionConfig(ServerConfig):
    schemes: ClassVar[tuple[str, ...]] = ("mongodb", SRV)
    default_port: ClassVar[int] = 27017

    url: str
    """The database, as `mongodb://HOST:PORT/DATABASE`. Of a replica set a member; the client finds
    the other members. Of `mongodb+srv://HOST/DATABASE` the members are in the DNS, and the
    connection has TLS."""
    auth: MongodbAuth | None = None
    """The credentials. No authentication by default."""
    collection: Name
    """The collection."""
    id_column: Name = ID
    """The column with the `_id` of a document."""

    @field_validator("url")
    @classmethod
    def _check_port(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme == SRV and parts.port is not None:
            raise ValueError(f"expected {SRV}://HOST without a port, which is in the DNS")
        return url

    @property
    def is_in_dns(self) -> bool:
        """Whether the members are in the DNS."""
        return urlsplit(self.url).scheme == SRV

    @property
    def address(self) -> str:
        return f"{self.host}/{self.database}" if self.is_in_dns else super().address

    @property
    def tls_settings(self) -> Tls | None:
        return resolve_tls(self.tls, self.is_in_dns or None)

    @field_validator("collection")
    @classmethod
    def _check_collection(cls, name: str) -> str:
        if "$" in name or "\0" in name or name.startswith(("system.", ".")) or name.endswith("."):
            raise ValueError("expected the name of a collection, without $")
        return name

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        tls = self.tls_settings
        if tls is not None and tls.certificate != tls.key:
            raise ValueError("expected one file with certificate and key, in both tls options")
        return self

    def field_of(self, column: str) -> str:
        """Returns the field of a document for a column."""
        return ID if column == self.id_column else column


class MongodbSourceConfig(ConnectionConfig, CursorConfig, ChangesOptions):
    of_rows: ClassVar[tuple[str, ...]] = ("filter", "pipeline", *ChangesOptions.of_rows)

    filter: dict[str, Any] = {}
    """The filter of documents that are read, as a map: `{status: paid, total: {$gte: 10}}`. Values
    that YAML does not have are written as Extended JSON: `{customer: {$oid: "65f..."}}`."""
    pipeline: list[dict[str, Any]] = []
    """Stages of an aggregation after the filter. Its documents are read in place of those of the
    collection, and must have the fields of the cursor columns."""
    cursor_columns: list[Name] = []
    """The columns in whose order documents are read: an ID that grows, or the time of the last
    change. `_id` is appended, since several documents may have the same time. An index on these
    fields avoids that the server sorts.

    By default `_id`; with `watch` only if each `_id` is an ObjectId."""
    min_age: Duration | None = None
    """The age of a time in the first cursor column, or of an ObjectId, at which its documents are
    read, with `watch`. Documents that arrive later than this after their time, or with an earlier
    time, may be missed. By default 2 seconds."""

    @field_validator("cursor_columns")
    @classmethod
    def _check_cursor_columns(cls, names: list[str]) -> list[str]:
        for name in names:
            if "." in name or name.startswith("$"):
                raise ValueError(f"expected a field of documents without a dot, found {name}")
        if len(set(names)) < len(names):
            raise ValueError("expected each column once")
        return names


class MongodbSinkConfig(ConnectionConfig):
    create: bool = True
    """Creates a missing collection and, with `mode: upsert`, a missing unique index on the primary
    key."""
    object_id_columns: list[str] = []
    """Columns of text with 24 hexadecimal digits that are written as ObjectId."""
    decimals: Literal["decimal128", "string"] = "decimal128"
    """The type for DECIMAL: Decimal128, which has 34 digits, or text, which has all."""
    microseconds: Literal["reject", "truncate"] = "reject"
    """The action for times with microseconds, since MongoDB stores milliseconds: a dead letter, or
    truncation."""
    nulls: Literal["write", "omit"] = "write"
    """Writes a null as null, or omits the field."""
