"""Options of the JDBC source and sink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, field_validator

from penstock.core.known_secrets import remember_secret
from penstock.core.paths import require_permitted
from penstock.sdk import PositiveDuration, Secret
from penstock.sdk.database import DatabaseSinkConfig, RangesConfig
from penstock.sdk.database.config import CONNECT_SECONDS
from penstock.sdk.java import Jars
from penstock.sdk.network.auth import PasswordAuth
from penstock.sdk.properties import Properties

_USER_IN_URL = re.compile(
    r"//[^/@?;]+@|:[^/@:?;]+/[^/@:]+@"
    r"|[?&;:,(]\s*(user|username|uid|password|passwd|pwd)\s*=",
    re.IGNORECASE,
)
_PASSWORD_IN_URL = re.compile(
    r"(?:password|passwd|pwd)\s*=\s*([^;&,)]+)|//[^/@?;:]+:([^/@?;]+)@|:[^/@:?;]+/([^/@:]+)@",
    re.IGNORECASE,
)
_IN_MEMORY = re.compile(r"jdbc:(h2:mem:|hsqldb:mem:|derby:memory:)", re.IGNORECASE)
_EMBEDDED = re.compile(r"jdbc:(h2:(?!tcp:|ssl:)|hsqldb:(file:|res:)|derby:(?!//))", re.IGNORECASE)
_FILE = re.compile(
    r"jdbc:(?:h2:(?:file:)?(?!tcp:|ssl:|mem:|zip:|split:)|h2:(?:zip|split):|hsqldb:file:"
    r"|derby:(?:directory:|jar:)?(?!//|memory:|classpath:))(?P<path>[^;]*)",
    re.IGNORECASE,
)
_AUTO_SERVER = re.compile(r";\s*AUTO_SERVER\s*=\s*TRUE", re.IGNORECASE)
_NATIVE_ONLY = frozenset({"duckdb", "sqlite"})
_CREDENTIALS = frozenset({"user", "username", "password"})


class ConnectionConfig(Jars):
    url: str
    """The database, as the driver expects it: `jdbc:SYSTEM:...`, without user and password."""
    driver: str | None = None
    """The class of the driver, such as `oracle.jdbc.OracleDriver`. By default the one that the jars
    declare for `url`."""
    auth: PasswordAuth | None = None
    """The credentials: the properties `user` and `password` of the driver."""
    properties: Properties = {}
    """Other properties of the driver, such as `ssl`."""
    timeout: PositiveDuration = 300.0
    """The time after which a statement is canceled, and the time without a response after which the
    connection is closed, as far as the driver supports both."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if not re.match(r"jdbc:[A-Za-z0-9_+-]+:", url):
            raise ValueError("expected jdbc:SYSTEM:..., such as jdbc:postgresql://HOST/DATABASE")
        if (native := url.split(":", 2)[1].lower()) in _NATIVE_ONLY:
            # Their types depend on the values of a row, which JDBC does not have.
            raise ValueError(f"expected another database; set type: {native} for this one")
        if _USER_IN_URL.search(url):
            for match in _PASSWORD_IN_URL.finditer(url):
                remember_secret(next(filter(None, match.groups())))
            raise ValueError("expected the user in auth.username and auth.password, not in the URL")
        if _IN_MEMORY.match(url):
            raise ValueError(
                "expected a database that other processes can open, not one in memory: a file, or "
                "a server"
            )
        if (file := _FILE.match(url)) is not None:
            path = file["path"]
            if path.startswith(("/", "~")) or ".." in Path(path).parts:
                require_permitted(path)  # others begin in the directory of the pipeline
        return url

    @field_validator("properties")
    @classmethod
    def _check_properties(cls, properties: dict[str, Secret]) -> dict[str, Secret]:
        for name in properties:
            if name.lower() in _CREDENTIALS:
                raise ValueError(f"{name} is set by the option auth")
        return properties

    @property
    def system(self) -> str:
        """The name of the system in the URL, such as `postgresql`."""
        return self.url.split(":", 2)[1].lower()

    @property
    def address(self) -> str:
        """The URL for messages, without its parameters."""
        return re.split(r"[?;]", self.url)[0]

    @property
    def connect_seconds(self) -> float:
        """The timeout of a connection attempt."""
        return min(self.timeout, CONNECT_SECONDS)

    @property
    def is_embedded(self) -> bool:
        """Whether the driver itself opens the files of the database, in one process at a time."""
        return bool(_EMBEDDED.match(self.url)) and not _AUTO_SERVER.search(self.url)

    def driver_properties(self) -> Mapping[str, str]:
        """Returns the properties of the driver."""
        auth = self.auth
        found = {name: value.reveal() for name, value in self.properties.items()}
        if auth is not None and auth.username is not None and auth.password is not None:
            found |= {"user": auth.username, "password": auth.password.reveal()}
        return found


class JdbcSourceConfig(ConnectionConfig, RangesConfig):
    fetch_size: int = Field(default=1000, ge=1)
    """The number of rows that the driver fetches at once."""


class JdbcSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    pass
