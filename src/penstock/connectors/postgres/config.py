"""Options of the PostgreSQL source and sink."""

from __future__ import annotations

from typing import Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.sdk import Config, PositiveDuration, ReceivingConfig
from penstock.sdk.database import DatabaseSinkConfig, TableSourceConfig
from penstock.sdk.network.address import url_validator
from penstock.sdk.network.auth import PasswordAuth
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls

_PORT = 5432
_CONNECT_SECONDS = 10.0


class ConnectionConfig(Config):
    url: str
    """The database, as `postgresql://HOST:PORT/DATABASE`."""
    auth: PasswordAuth | None = None
    """The credentials. Without them the server must accept the user that runs Penstock."""
    tls: TlsOption = None
    """TLS: `true`, or certificates and verification. Without TLS by default."""
    timeout: PositiveDuration = 300.0
    """The time after which a statement is canceled, and the time without a response after which the
    connection is closed."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        url_validator("postgresql", "postgres", user="auth.username and auth.password")(url)
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise ValueError("expected options of Penstock, such as tls, in place of parameters")
        if not parts.path.strip("/"):
            raise ValueError("expected a database: postgresql://HOST/DATABASE")
        return url

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        self.tls_settings  # noqa: B018
        return self

    @property
    def host(self) -> str:
        """The host."""
        return str(urlsplit(self.url).hostname)

    @property
    def port(self) -> int:
        """The port."""
        return urlsplit(self.url).port or _PORT

    @property
    def database(self) -> str:
        """The name of the database."""
        return unquote(urlsplit(self.url).path.strip("/"))

    @property
    def address(self) -> str:
        """The database for messages."""
        return f"{self.host}:{self.port}/{self.database}"

    @property
    def connect_seconds(self) -> float:
        """The timeout of a connection attempt."""
        return min(self.timeout, _CONNECT_SECONDS)

    @property
    def tls_settings(self) -> Tls | None:
        """The TLS settings; None without TLS."""
        return resolve_tls(self.tls)


_OF_CHANGES = ("slot", "publication", "on_truncate", "journal", "max_message_size")
_OF_ROWS = ("query", "cursor_columns", "watch", "interval", "min_age")


class PostgresSourceConfig(ConnectionConfig, TableSourceConfig, ReceivingConfig):
    changes: bool = False
    """Reads the rows of the table, then their inserts, updates and deletes by logical replication.
    The run does not end."""
    slot: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,63}$")
    """The replication slot, which is created if it is missing. `penstock_PIPELINE_NODE` by
    default."""
    publication: str | None = Field(default=None, min_length=1)
    """The publication of the table, which is created if it is missing. Named as the slot by
    default."""
    on_truncate: Literal["fail", "ignore"] = "fail"
    """The action when the table is truncated. `ignore` keeps the rows in the targets."""

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        for option in _OF_ROWS if self.changes else _OF_CHANGES:
            if option in self.model_fields_set:
                raise ValueError(
                    f"changes excludes {option}" if self.changes else f"{option} requires changes"
                )
        return self


class PostgresSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    pass
