"""Options of connections, and the statements at their start."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn

from penstock.connectors.mysql.config import ConnectionConfig
from penstock.core.errors import Permanent

_SQL_MODE = (
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
)


_CLEAR_TEXT_PLUGINS = ("mysql_clear_password", "dialog")
"""The authentication plugins that send the password itself: that of LDAP, IAM and PAM."""


class UnencryptedPassword:
    """The authentication by a password in clear text, which a connection without TLS rejects.

    A server, or a peer in its place, can request it of a user with another authentication.
    """

    def __init__(self, connection: object) -> None:
        pass

    def authenticate(self, packet: object) -> NoReturn:
        """Raises Permanent."""
        raise Permanent(
            "the server requested the password in clear text, and the connection is not encrypted",
            code="authentication", hint="Set tls, or another authentication plugin of the user.",
        )  # fmt: skip


def connect_options(config: ConnectionConfig) -> dict[str, Any]:
    """Returns the parameters of a connection. Raises Permanent if a certificate file is missing."""
    from pymysql.constants import CLIENT

    tls = config.tls_settings
    auth = config.auth
    password = None if auth is None else auth.password_for(config.host, config.port)
    return {
        "host": config.host,
        "port": config.port,
        "database": config.database,
        "user": None if auth is None else auth.username,
        "password": (password or "").encode(),
        "charset": "utf8mb4",
        "sql_mode": _SQL_MODE,
        "connect_timeout": config.connect_seconds,
        "read_timeout": config.connect_seconds,
        "write_timeout": config.timeout,
        "program_name": "penstock",
        "client_flag": CLIENT.LOCAL_FILES,
        "ssl": None if tls is None else tls.context(),
        "ssl_disabled": tls is None,
        "auth_plugin_map": (
            dict.fromkeys(_CLEAR_TEXT_PLUGINS, UnencryptedPassword) if tls is None else {}
        ),
    }


def session_statements(timeout: float) -> Iterator[str]:
    """Yields the statements at the start of a session."""
    seconds = max(1, math.ceil(timeout))
    yield (
        f"SET SESSION time_zone = '+00:00', sql_notes = 1, sql_auto_is_null = 0, "
        f"innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}, "
        f"net_write_timeout = {max(600, seconds)}, wait_timeout = 604800"
    )
    yield "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
