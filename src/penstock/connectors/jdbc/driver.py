"""Drivers of JDBC: their classes, and connections."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import Any

from penstock.connectors.jdbc.config import ConnectionConfig
from penstock.connectors.jdbc.dialects import JdbcDialect
from penstock.core.errors import OptionError, Permanent
from penstock.core.text import did_you_mean
from penstock.sdk.java import class_loader, java_class

_KNOWN = {
    "postgresql": "org.postgresql:postgresql:42.7.8",
    "mysql": "com.mysql:mysql-connector-j:9.4.0",
    "mariadb": "org.mariadb.jdbc:mariadb-java-client:3.5.6",
    "sqlserver": "com.microsoft.sqlserver:mssql-jdbc:13.2.0.jre11",
    "oracle": "com.oracle.database.jdbc:ojdbc11:23.9.0.25.07",
    "db2": "com.ibm.db2:jcc:12.1.2.0",
    "snowflake": "net.snowflake:snowflake-jdbc:3.26.1",
    "h2": "com.h2database:h2:2.4.240",
    "hsqldb": "org.hsqldb:hsqldb:2.7.4",
    "derby": "org.apache.derby:derbyclient:10.16.1.1",
    "trino": "io.trino:trino-jdbc:477",
}
"""The packages of drivers, for hints."""
SILENCE = 10.0
"""The seconds after a timeout of a statement at which the driver closes the connection."""


class Driver:
    """The driver of a database."""

    def __init__(self, config: ConnectionConfig) -> None:
        self._config = config
        self._driver = self._named(config.driver) if config.driver else self._declared()

    def connect(self, dialect: JdbcDialect) -> Any:
        """Returns a new connection without automatic commits. Raises JException of the driver."""
        system = java_class("java.lang.System")
        for name, value in dialect.system_properties.items():
            system.setProperty(name, value)
        seconds = math.ceil(self._config.connect_seconds)
        java_class("java.sql.DriverManager").setLoginTimeout(seconds)
        defaults = dict(dialect.properties)
        if dialect.login_timeout is not None:
            defaults[dialect.login_timeout] = str(seconds)
        properties = java_class("java.util.Properties")()
        for name, value in {**defaults, **self._config.driver_properties()}.items():
            properties.setProperty(name, value)
        client = self._driver.connect(self._config.url, properties)
        if client is None:
            raise self._wrong_url()
        client.setAutoCommit(False)
        with suppress(Exception):  # Not all drivers have this timeout.
            thread = java_class("java.util.concurrent.ForkJoinPool").commonPool()
            client.setNetworkTimeout(thread, int((self._config.timeout + SILENCE) * 1000))
        return client

    def shut_down(self, parameter: str) -> None:
        """Closes an embedded database, by a parameter of its URL."""
        url = re.split(";", self._config.url)[0] + parameter
        with suppress(Exception):  # The driver reports the success as an error.
            self._driver.connect(url, java_class("java.util.Properties")())

    def _named(self, name: str) -> Any:
        import jpype

        try:
            return java_class(name, class_loader(self._config.jar_files()))()
        except (jpype.JException, TypeError):
            raise OptionError.of(
                "driver", message=f"there is no driver {name} in the jars", code="no-driver",
                hint=did_you_mean(name, self._names()) or self._package_hint(),
            ) from None  # fmt: skip

    def _declared(self) -> Any:
        """Returns the driver that the jars declare for the URL."""
        for driver in self._drivers():
            if driver.acceptsURL(self._config.url):
                return driver
        names = self._names()
        if names:
            raise self._wrong_url()
        raise Permanent(
            f"there is no JDBC driver for {self._config.address}", code="no-driver",
            hint=self._package_hint(),
        )  # fmt: skip

    def _drivers(self) -> list[Any]:
        loader = class_loader(self._config.jar_files())
        services = java_class("java.util.ServiceLoader")
        return [*services.load(java_class("java.sql.Driver"), loader)]

    def _names(self) -> list[str]:
        return [str(driver.getClass().getName()) for driver in self._drivers()]

    def _wrong_url(self) -> Permanent:
        names = ", ".join(self._names()) or str(self._config.driver)
        return Permanent(
            f"the driver {names} does not accept {self._config.address}", code="no-driver",
            hint=f"Correct url, or {self._package_hint(start='s')}",
        )  # fmt: skip

    def _package_hint(self, start: str = "S") -> str:
        package = _KNOWN.get(self._config.system)
        if package is None:
            return (
                f"{start}et jars to the file of the driver, or packages to its Maven coordinates."
            )
        return f"{start}et packages: [{package}], or jars to the file of the driver."


def drops_fractions(client: Any) -> bool:
    """Returns whether a driver sends times without fractions of seconds.

    The driver of MySQL does so to MariaDB, whose version begins with 5.5.5.
    """
    data = client.getMetaData()
    return (
        str(data.getDriverName()).startswith("MySQL")
        and "mariadb" in str(data.getDatabaseProductVersion()).lower()
    )
