"""Access to catalogs, tables and their files with PyIceberg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from penstock.connectors.iceberg import config as options
from penstock.connectors.iceberg.catalogs import (
    CONNECT_SECONDS,
    RESPONSE_SECONDS,
    rest_catalog,
    sql_catalog,
)
from penstock.connectors.iceberg.errors import convert_errors
from penstock.core.errors import MissingExtra, OptionError
from penstock.core.secret import revealed
from penstock.sdk.database import TableName
from penstock.sdk.lakes.local_files import probe_directory, sync_file
from penstock.sdk.network.auth import AwsAuth
from penstock.sdk.object_store import StorageOptions

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_MODULES = {
    "sql": (("iceberg", "sqlalchemy"),), "rest": (), "glue": (("aws", "boto3"),),
    "hive": (("iceberg", "thrift"),),
}  # fmt: skip
"""The extra and the module of the client of each catalog."""


@dataclass(frozen=True)
class TableAccess:
    """A table in a catalog."""

    catalog_options: Any
    name: str
    storage: StorageOptions | None = None

    @classmethod
    def of(cls, config: options.IcebergTableConfig) -> TableAccess:
        """Returns the table that options name. Raises OptionError or MissingExtra."""
        catalog = config.catalog
        modules = list(_MODULES[catalog.type])
        if isinstance(catalog, options.SqlCatalog) and catalog.url is not None:
            modules.append(("postgres", "psycopg"))
        for extra, module in modules:
            if find_spec(module) is None:
                raise MissingExtra.of(extra, module)
        if config.storage is not None and config.storage.ca_file is not None:
            raise OptionError.of(
                "storage", "tls", message="ca is not supported for tables of Iceberg",
                hint="Set the environment variable SSL_CERT_FILE to the file.",
            )  # fmt: skip
        return cls(catalog, config.table, config.storage)

    @property
    def identifier(self) -> tuple[str, ...]:
        """The namespace and the name of the table."""
        return TableName.parse(self.name).parts

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog. Raises Transient or Permanent."""
        found = self.catalog_options
        make = _catalog_class(found.type)
        with convert_errors("reach the catalog of", self.name):
            made: Catalog = make(found.name, **self._properties())
        return made

    @property
    def lacks_catalog(self) -> bool:
        """Whether the catalog is a file that does not exist."""
        path = self._catalog_file
        return path is not None and not path.exists()

    @property
    def _catalog_file(self) -> Path | None:
        path = getattr(self.catalog_options, "path", None)
        return None if path is None else Path(path)

    def open(self) -> Table | None:
        """Returns the table; None if it does not exist."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if self.lacks_catalog:
            return None
        catalog = self.catalog
        with convert_errors("open", self.name):
            try:
                return catalog.load_table(self.identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def require(self, hint: str) -> Table:
        """Returns the table. Raises OptionError if it does not exist."""
        table = self.open()
        if table is None:
            raise OptionError.of(
                "table", message=f'there is no table of Iceberg "{self.name}" in the catalog',
                code="unknown-table", hint=hint,
            )  # fmt: skip
        return table

    def probe(self) -> None:
        """Checks that the catalog can be reached, or created."""
        warehouse = self.catalog_options.warehouse
        with convert_errors("write to", self.name):
            for path in (self._catalog_file and self._catalog_file.parent, warehouse):
                if path is not None and self.catalog_options.type == "sql" and is_local(str(path)):
                    probe_directory(Path(local_path(str(path))))
            if not self.lacks_catalog:
                self.catalog.list_namespaces()

    def prepare_directories(self) -> None:
        """Creates the directory of a catalog in a file."""
        if self._catalog_file is not None:
            self._catalog_file.parent.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """Closes the connections to the catalog."""
        catalog = self.__dict__.pop("catalog", None)
        close = getattr(catalog, "close", None)
        if close is not None:
            close()

    def _properties(self) -> dict[str, Any]:
        catalog = self.catalog_options
        found: dict[str, Any] = {name: revealed(v) for name, v in catalog.properties.items()}
        found["py-io-impl"] = "penstock.connectors.iceberg.file_io.WholeFileIO"
        found["penstock.storage"] = self.storage
        found |= _storage_properties(self.storage or StorageOptions())
        found |= _CATALOG_PROPERTIES[catalog.type](catalog)
        if catalog.warehouse is not None:
            found["warehouse"] = catalog.warehouse
        return {name: value for name, value in found.items() if value is not None}

    def __getstate__(self) -> Mapping[str, Any]:
        return {"catalog_options": self.catalog_options, "name": self.name, "storage": self.storage}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)


def _catalog_class(type_: str) -> Any:
    """Returns the class of a catalog, or a function that creates one."""
    if type_ in ("rest", "sql"):
        return rest_catalog if type_ == "rest" else sql_catalog
    if type_ == "glue":
        from pyiceberg.catalog.glue import GlueCatalog

        return GlueCatalog
    from pyiceberg.catalog.hive import HiveCatalog

    return HiveCatalog


def _sql(catalog: options.SqlCatalog) -> dict[str, Any]:
    """Returns properties of a SQL catalog. A path or a password may have any character."""
    from sqlalchemy import URL

    if catalog.url is None:
        return {"uri": URL.create("sqlite", database=catalog.path, query={"timeout": "30"})}
    parts, auth = urlsplit(catalog.url), catalog.auth
    return {
        "uri": URL.create(
            "postgresql+psycopg", auth.username if auth else None,
            revealed(auth.password) if auth else None, parts.hostname, parts.port,
            unquote(parts.path.strip("/")),
            {
                "connect_timeout": str(CONNECT_SECONDS),
                "options": f"-c statement_timeout={RESPONSE_SECONDS}s",
            },
        ),
        "pool_pre_ping": "true",
    }  # fmt: skip


def _rest(catalog: options.RestCatalog) -> dict[str, Any]:
    auth = catalog.auth or options.RestAuth.model_construct()
    secret = revealed(auth.client_secret)
    tls = catalog.resolved_tls
    ssl: dict[str, Any] = {}
    if tls is not None:
        ssl = {"cabundle": tls.ca if tls.verify else False}
        if tls.certificate:
            ssl["client"] = {"cert": tls.certificate, "key": tls.key}
    return {
        "uri": catalog.url, "token": revealed(auth.token),
        "credential": None if auth.client_id is None else f"{auth.client_id}:{secret}",
        "oauth2-server-uri": auth.token_url, "scope": auth.scope, "ssl": ssl or None,
    }  # fmt: skip


def _glue(catalog: options.GlueCatalog) -> dict[str, Any]:
    return {
        "glue.endpoint": catalog.endpoint_url,
        "glue.region": catalog.region,
        "glue.max-retries": 3,
        **_aws_properties("glue", catalog.auth),
    }  # fmt: skip


_CATALOG_PROPERTIES: Mapping[str, Any] = {
    "sql": _sql, "rest": _rest, "glue": _glue, "hive": lambda catalog: {"uri": catalog.url},
}  # fmt: skip


def _storage_properties(storage: StorageOptions) -> dict[str, Any]:
    return {
        "s3.endpoint": storage.endpoint,
        "s3.region": storage.region or (storage.region_of("") if storage.endpoint else None),
        "s3.anonymous": "true" if storage.anonymous else None,
        "s3.connect-timeout": str(CONNECT_SECONDS),
        "s3.request-timeout": str(RESPONSE_SECONDS),
        **_aws_properties("s3", storage.auth),
    }


def _aws_properties(prefix: str, auth: AwsAuth | None) -> dict[str, Any]:
    return {
        f"{prefix}.access-key-id": auth.access_key if auth else None,
        f"{prefix}.secret-access-key": revealed(auth.secret_key) if auth else None,
        f"{prefix}.session-token": revealed(auth.session_token) if auth else None,
    }


def is_local(location: str) -> bool:
    """Returns whether a location is in the local file system."""
    return location.startswith("file:") or "://" not in location


def local_path(location: str) -> str:
    """Returns the path of a local location."""
    if not location.startswith("file:"):
        return location
    return "/" + location.removeprefix("file:").lstrip("/")


def open_input(io: Any, location: str) -> BinaryIO:
    """Opens a file of a table for reading. Raises FileNotFoundError."""
    return cast(BinaryIO, io.new_input(location).open())


def open_output(io: Any, location: str) -> BinaryIO:
    """Creates a file of a table."""
    return cast(BinaryIO, io.new_output(location).create(overwrite=True))


def sync_location(location: str, root: str) -> None:
    """Writes a local file of a table and its directories to disk; in object stores it is there."""
    if is_local(location):
        sync_file(Path(local_path(location)), Path(local_path(root)))
