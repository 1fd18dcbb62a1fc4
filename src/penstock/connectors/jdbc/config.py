"""Options of the JDBC source and sink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from penstock.core.known_secrets import remember_secret
from penstock.core.paths import require_permitted
from penstock.sdk import PositiveDuration, Secret
from penstock.sdk.database import DatabaseSinkConfig, RangesConfig
from penstock.sdk.database.config import CONNECT_SECONDS
from penstock.sdk.java import Jars
from penstock.sdk.network.identity import IdentityAuth
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
_ONE_HOST = re.compile(r"jdbc:\w+://(?P<host>[^/:,?;]+)(?::(?P<port>\d+))?(?:[/?;]|$)")
_DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
"""The ports of the systems that accept a token as a password."""
_CREDENTIALS = frozenset({"user", "username", "password"})


class ConnectionConfig(Jars):
    url: str
    """The database, as the driver expects it: `jdbc:SYSTEM:...`, without user and password."""
    driver: str | None = None
    """The class of the driver, such as `oracle.jdbc.OracleDriver`. By default the one that the jars
    declare for `url`."""
    auth: IdentityAuth | None = None
    """The credentials: the properties `user` and `password` of the driver. `identity` is for
    PostgreSQL, MySQL and MariaDB, whose URL has one host."""
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

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        has_identity = self.auth is not None and self.auth.identity is not None
        if has_identity and (self.system not in _DEFAULT_PORTS or not _ONE_HOST.match(self.url)):
            systems = ", ".join(sorted(_DEFAULT_PORTS))
            raise ValueError(f"auth.identity requires jdbc:SYSTEM://HOST of one of {systems}")
        return self

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
        """Returns the properties of the driver. Raises Transient or Permanent without a token."""
        auth = self.auth
        found = {name: value.reveal() for name, value in self.properties.items()}
        if auth is not None:
            password = auth.password_for(*self._host_and_port())
            found |= {"user": str(auth.username), "password": str(password)}
        return found

    def _host_and_port(self) -> tuple[str, int]:
        """Returns the address for which a token is signed."""
        found = _ONE_HOST.match(self.url)
        if found is None:
            return "", 0
        return found["host"], int(found["port"] or _DEFAULT_PORTS.get(self.system, 0))


class JdbcSourceConfig(ConnectionConfig, RangesConfig):
    fetch_size: int = Field(default=1000, ge=1)
    """The number of rows that the driver fetches at once."""


class JdbcSinkConfig(ConnectionConfig, DatabaseSinkConfig):
    pass
