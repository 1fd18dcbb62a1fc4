"""Options of the Iceberg source and sink."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from penstock.core.paths import check_settings
from penstock.core.secret import Secret
from penstock.sdk import Config, UserPath
from penstock.sdk.database import TableName
from penstock.sdk.database.config import TargetConfig
from penstock.sdk.lakes.compaction import CompactingConfig
from penstock.sdk.lakes.config import LakeSourceConfig
from penstock.sdk.network.address import url_validator
from penstock.sdk.network.auth import Auth, AwsAuth, PasswordAuth
from penstock.sdk.network.tls import Tls, TlsOption, check_supported, resolve_tls
from penstock.sdk.object_store import StorageOptions, StoragePath


class _Catalog(Config):
    """Options of all catalogs."""

    name: str = "default"
    """The name of the catalog in the client. A SQL catalog stores its tables under this name."""
    properties: Annotated[dict[str, Secret], AfterValidator(check_settings)] = {}
    """Other properties of the client PyIceberg, such as `header.X-Project`."""

    @field_validator("properties")
    @classmethod
    def _check_properties(cls, properties: dict[str, Secret]) -> dict[str, Secret]:
        for name in properties:
            if name in _RESERVED:
                raise ValueError(f"{name} is set by another option")
        return properties


_RESERVED = frozenset(
    {"type", "uri", "warehouse", "token", "credential", "oauth2-server-uri", "py-io-impl", "auth"}
)


class SqlCatalog(_Catalog):
    """A catalog in a SQL database, as PyIceberg and the JDBC catalog of Iceberg have it."""

    type: Literal["sql"]
    """A catalog in a SQL database."""
    path: UserPath | None = None
    """The file of a SQLite database, which is created if it is missing."""
    url: str | None = None
    """A PostgreSQL database in place of a file: `postgresql://HOST:PORT/DATABASE`."""
    auth: PasswordAuth | None = None
    """The credentials of the PostgreSQL database."""
    warehouse: StoragePath
    """The directory of new tables, or its URL (`s3://`, `gs://`, `abfss://`)."""

    @model_validator(mode="after")
    def _check_database(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise ValueError("expected either path or url")
        if self.url is not None:
            url_validator("postgresql", user="auth.username and auth.password")(self.url)
        elif self.auth is not None:
            raise ValueError("auth requires url")
        return self


class RestAuth(Auth):
    """A bearer token, or the client credentials of OAuth 2."""

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("token",),
        ("client_id", "client_secret"),
    )
    requires = {"token_url": "client_id", "scope": "client_id"}

    token: Secret | None = None
    """The bearer token."""
    client_id: str | None = None
    """The client ID of OAuth 2."""
    client_secret: Secret | None = None
    """The client secret of OAuth 2."""
    token_url: str | None = None
    """The URL of the OAuth 2 server. By default the endpoint of the catalog."""
    scope: str | None = None
    """The scope of OAuth 2. By default `catalog`."""


class RestCatalog(_Catalog):
    """A REST catalog, such as Polaris, Nessie, Lakekeeper, Unity Catalog or Snowflake."""

    type: Literal["rest"]
    """A REST catalog."""
    url: str
    """The URL of the catalog."""
    auth: RestAuth | None = None
    """The credentials."""
    tls: TlsOption = None
    """TLS settings. By default the scheme of `url` decides."""
    warehouse: str | None = None
    """The name or the URL of the warehouse, for catalogs that have several."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        return url_validator("http", "https", user="auth")(url)

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        check_supported(self.resolved_tls, "the client of REST catalogs")
        return self

    @property
    def resolved_tls(self) -> Tls | None:
        """The TLS settings of the connection; None without TLS."""
        return resolve_tls(self.tls, self.url.startswith("https:"))


class GlueCatalog(_Catalog):
    """The AWS Glue Data Catalog."""

    type: Literal["glue"]
    """The AWS Glue Data Catalog."""
    endpoint_url: str | None = None
    """The URL of the service. AWS by default."""
    region: str | None = None
    """The region. By default that of the AWS configuration."""
    auth: AwsAuth | None = None
    """The credentials. By default those of the AWS default credential chain."""
    warehouse: StoragePath | None = None
    """The URL of new tables, for databases without a location."""


class HiveCatalog(_Catalog):
    """A Hive Metastore."""

    type: Literal["hive"]
    """A Hive Metastore."""
    url: str
    """The address: `thrift://HOST:PORT`."""
    warehouse: StoragePath | None = None
    """The URL of new tables."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        return url_validator("thrift")(url)


Catalog = Annotated[
    SqlCatalog | RestCatalog | GlueCatalog | HiveCatalog, Field(discriminator="type")
]


class IcebergTableConfig(Config):
    catalog: Catalog
    """The catalog of the table: `sql`, `rest`, `glue` or `hive`."""
    table: str
    """The table with its namespace, as `shop.orders`. A name with a dot has quotes:
    `shop."orders.2024"`."""
    storage: StorageOptions | None = None
    """The connection to the object store of the table, unless the catalog provides it."""

    @field_validator("table")
    @classmethod
    def _check_table(cls, table: str) -> str:
        if len(TableName.parse(table).parts) < 2:
            raise ValueError("expected a namespace and a table, as shop.orders")
        return table


class IcebergSourceConfig(LakeSourceConfig, IcebergTableConfig):
    snapshot: int | Literal["earliest"] | None = None
    """The ID of the snapshot that is read first, in place of `timestamp`; `earliest` is the oldest
    one that the table still has. By default the latest one. Without `watch` no later snapshot is
    read, unless it is `earliest`."""
    nanoseconds: Literal["reject", "truncate"] = "reject"
    """The action for times with nanoseconds: a dead letter, or microseconds."""

    @model_validator(mode="after")
    def _check_snapshot(self) -> Self:
        if self.snapshot is not None and self.timestamp is not None:
            raise ValueError("expected either snapshot or timestamp")
        return self

    @property
    def is_pinned(self) -> bool:
        return isinstance(self.snapshot, int) or super().is_pinned


class IcebergSinkConfig(CompactingConfig, TargetConfig, IcebergTableConfig):
    create: bool = True
    """Creates a missing table, and a missing namespace, with the columns of the rows."""
    partition_by: list[str] = []
    """The partitions of a new table: columns or transforms of them, as `day(at)`, `bucket(16, id)`,
    `truncate(10, name)`; also `year`, `month` and `hour`. An existing table must have the same
    ones."""
    location: StoragePath | None = None
    """The directory of a new table, or its URL. By default the catalog chooses it."""
    table_properties: dict[str, str] = {}
    """Properties of a new table, as `{write.parquet.compression-codec: zstd}`."""

    @field_validator("table_properties")
    @classmethod
    def _check_version(cls, properties: dict[str, str]) -> dict[str, Any]:
        if properties.get("format-version", "2") != "2":
            raise ValueError("expected format-version 2: PyIceberg writes no other one")
        return properties
