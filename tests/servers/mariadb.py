"""MariaDB, a database with the protocol of MySQL."""

from __future__ import annotations

import os
import pwd
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from servers.certificates import Authority
from servers.install import program, run
from servers.server import Server

USER, PASSWORD = "made-up-user", "made-up-password"
DATABASE = "made-up shop"
_PACKAGE = "mariadb-server"
_SETTINGS = {
    "innodb-use-native-aio": "0",
    "bind-address": "127.0.0.1",
    "log-bin": "bin",
    "binlog-format": "ROW",
    "binlog-row-metadata": "FULL",
    "server-id": "1",
    "innodb-flush-log-at-trx-commit": "2",
    "innodb-buffer-pool-size": "32M",
    "innodb-log-file-size": "8M",
    "performance-schema": "OFF",
}


class MariaDb(Server):
    """The server, with a database, and a user who may create others.

    It has TLS with a certificate of the authority `ca`, for clients that ask for it.
    """

    name = "mariadb"
    title = "MariaDB 10.11 (Debian 12)"
    settings: Mapping[str, str] = {}

    def __init__(
        self, port: int | None = None, user: str = USER, password: str = PASSWORD,
        database: str = DATABASE,
    ) -> None:  # fmt: skip
        super().__init__(port)
        self.user, self.password, self.database = user, password, database

    def command(self) -> Sequence[str]:
        """Creates the data directory at the first start."""
        server = program("mariadbd", _PACKAGE)
        data, user = self.directory.path / "data", _owner()
        if not data.exists():
            shutil.chown(self.directory.path, user)
            authority = Authority(self.directory.path)
            self.ca = authority.root
            self._certificate = authority.issue("server")
            shutil.chown(self._certificate, user)
            run(
                program("mariadb-install-db", _PACKAGE), "--no-defaults", f"--user={user}",
                f"--datadir={data}", "--auth-root-authentication-method=normal",
                "--skip-test-db", "--innodb-log-file-size=8M", "--innodb-use-native-aio=0",
            )  # fmt: skip
        settings = {
            **_SETTINGS, **self.settings, "port": str(self.port), "datadir": str(data),
            "socket": str(self.directory.path / "socket"), "user": user,
            "ssl-cert": str(self._certificate), "ssl-key": str(self._certificate),
        }  # fmt: skip
        return [server, "--no-defaults", *(f"--{name}={v}" for name, v in settings.items())]

    def ready(self) -> None:
        """Connects, and creates the user and the database at the first start."""
        with self.client("root", "", "") as client, client.cursor() as cursor:
            user = f"'{self.user}'@'%'"
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{self.database}`")
            cursor.execute(f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY '{self.password}'")
            cursor.execute(f"GRANT ALL ON *.* TO {user} WITH GRANT OPTION")

    @property
    def login(self) -> dict[str, Any]:
        """The options of a connection with short timeouts."""
        return {
            "url": f"mysql://127.0.0.1:{self.port}/{DATABASE.replace(' ', '%20')}",
            "auth": {"username": USER, "password": PASSWORD},
            "timeout": "20s",
        }

    def client(
        self, user: str = USER, password: str = PASSWORD, database: str = DATABASE, **options: Any
    ) -> Any:
        """A client of the tests' own, which commits each statement."""
        import pymysql

        return pymysql.connect(
            **{
                "host": "127.0.0.1", "port": self.port, "user": user, "password": password,
                "database": database or None, "autocommit": True, "read_timeout": 20,
                "ssl_disabled": True, "init_command": "SET time_zone = '+00:00'", **options,
            }
        )  # fmt: skip

    def new_database(self) -> str:
        """Creates a database, of which tables need no cleaning. Returns its name."""
        name = f"made_up_{uuid.uuid4().hex[:12]}"
        with self.client() as client, client.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return name


def _owner() -> str:
    """The user of the server, which does not run as root."""
    return "mysql" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """One server for all tests that ask for it."""
    with MariaDb() as server:
        yield server
