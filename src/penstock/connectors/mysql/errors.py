"""Errors of MySQL and MariaDB by their number and SQLSTATE.

Sources: https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
https://mariadb.com/kb/en/mariadb-error-codes/
"""

from __future__ import annotations

import re
from typing import Any

from penstock.connectors.mysql.config import ConnectionConfig
from penstock.connectors.mysql.grants import grant_of
from penstock.core.errors import PenstockError, Rejected
from penstock.sdk.database.errors import ServerErrors
from penstock.sdk.database.mysql_errors import HINTS, TRANSIENT
from penstock.sdk.network.tls import is_lost_connection

CHANGED = frozenset({1264, 1265, 1292, 1366, 1406})
"""Warnings that the server has changed a value to store it."""
_REJECTED_STATES = ("22", "23", "44", "45")
"""Values, constraints, views with a check, and SIGNAL in triggers."""
_REJECTED = CHANGED | {1118, 1364, 1367, 1369, 1411, 1526, 1690, 1748, 3819, 4025}
"""Rows that are too large, missing defaults, partitions, CHECK constraints."""
_TRANSIENT_STATES = ("08", "40")
_AUTHENTICATION = frozenset({1045, 1130, 1251, 1698, 1820, 1862, 2049, 2059, 2061, 3118, 4151})
_AUTHORIZATION = frozenset({1044, 1142, 1143, 1227, 1370, 1410})
_LOST = frozenset({0, 1053, 2002, 2003, 2005, 2006, 2013, 2055, 4031})
_TLS, _CONNECT = 2026, 2003
_UNKNOWN_DATABASE = 1049
_PLACE = re.compile(r" at row \d+$")


def translate_error(
    error: Exception, config: ConnectionConfig, account: str | None = None
) -> PenstockError | None:
    """Returns the error of Penstock for an error of the client; None for another error.

    `account` is that of the connection, None before it is open.
    """
    import pymysql

    if not isinstance(error, pymysql.MySQLError):
        return None
    number, reason = _facts(error)
    state = getattr(error, "sqlstate", None) or ""
    errors = ServerErrors(config.address)
    if number == _TLS or (number == _CONNECT and _is_about_tls(reason)):
        return errors.tls(reason)
    if number in _LOST or isinstance(error, pymysql.InterfaceError):
        return errors.unreachable(reason)
    if number in _AUTHENTICATION:
        return errors.authentication(reason)
    if number in _AUTHORIZATION:
        user = "" if config.auth is None else config.auth.username
        hint = grant_of(reason, account or f"{user}@%", config.database)
        return errors.authorization(reason, hint)
    if number == _UNKNOWN_DATABASE:
        return errors.unknown_database(reason)
    if number in TRANSIENT or state.startswith(_TRANSIENT_STATES):
        return errors.busy(reason, HINTS.get(number))
    if number in _REJECTED or state.startswith(_REJECTED_STATES):
        return rejected(reason)
    return errors.statement(reason)


def rejected(reason: str) -> Rejected:
    """Returns the error of a row for a message of the server."""
    return Rejected(f"MySQL rejects the row: {_PLACE.sub('', reason)}", code="rejected")


def _is_about_tls(reason: str) -> bool:
    """Returns whether a connection failed in the handshake of TLS, other than by its end."""
    return ("SSL" in reason or "certificate" in reason) and not is_lost_connection(reason)


def _facts(error: Any) -> tuple[int, str]:
    """Returns the number and the message of an error."""
    if len(error.args) > 1 and isinstance(error.args[0], int):
        number, reason = error.args[:2]
    else:
        number, reason = 0, str(error)
    return number, " ".join(str(reason).split()) or "the connection is closed"
