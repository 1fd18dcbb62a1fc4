"""Errors of PostgreSQL by their SQLSTATE.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

import re
from typing import Any

from penstock.connectors.postgres.config import ConnectionConfig
from penstock.core.errors import PenstockError, Rejected
from penstock.core.names import quote_standard_name
from penstock.sdk.database.errors import ServerErrors, is_connection_limit
from penstock.sdk.network.tls import is_lost_connection

_REJECTED = ("22", "23", "44", "54000", "P0001")
"""Values, constraints, views with a check, rows that are too large, and RAISE in triggers."""
_TRANSIENT = ("08", "40", "53", "55P03", "57P", "57014", "58", "25006", "25P03", "25P04")
"""Connections, deadlocks, resources, locks, shutdown, timeouts, system errors, standbys, and
transactions that the server has ended after a time."""
_HINTS = {
    "25006": "The server is a standby. Check that url is the primary.",
    "53100": "Free disk space of the server.",
    "57014": "Set timeout, or find the lock or the slow query in pg_stat_activity.",
}
_AUTHENTICATION = ("authentication", "password", "pg_hba.conf", "role ")
_COPIED_COLUMN = re.compile(r"^COPY .*, line \d+, column (.*?)(?:: .*|$)", re.MULTILINE)
"""The context of an error in a value that is copied, which the server abbreviates.

Types have states of their own, such as that of an unknown table for `regclass`.
"""
_DENIED = re.compile(r"permission denied for (table|relation|view|schema|sequence|database) (.+)$")
_PRIVILEGES = {"schema": "USAGE, CREATE", "sequence": "USAGE", "database": "TEMPORARY"}
"""The privileges on an object that Penstock needs; of a table they depend on the statement."""


def translate_error(error: Exception, config: ConnectionConfig) -> PenstockError | None:
    """Returns the error of Penstock for an error of the client; None for another error."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ""
    reason = _reason(error)
    errors = ServerErrors(config.address)
    rejected = Rejected(f"PostgreSQL rejects the row: {reason}", code="rejected")
    if state.startswith(_REJECTED):
        return rejected
    if state == "42501":
        return errors.authorization(reason, _grant(reason, config))
    if not state:
        return _connection_error(reason, errors)
    if state.startswith(_TRANSIENT):
        return errors.busy(reason, _HINTS.get(state))
    if _COPIED_COLUMN.search(error.diag.context or ""):
        return rejected
    return errors.statement(reason)


def _grant(reason: str, config: ConnectionConfig) -> str:
    """Returns the hint for a message of the server about a missing privilege."""
    match = _DENIED.search(reason)
    if match is None or config.auth is None:
        return "Grant the user the permission, as in GRANT SELECT ON TABLE ... TO ..."
    kind, name = match.groups()
    privileges = _PRIVILEGES.get(kind, "SELECT, INSERT, UPDATE, DELETE")
    object_ = "TABLE" if kind in ("relation", "view") else kind.upper()
    user, quoted = (quote_standard_name(text) for text in (str(config.auth.username), name))
    needed = ", or those of them that are missing" if "," in privileges else ""
    return f"Run GRANT {privileges} ON {object_} {quoted} TO {user}{needed}."


def _connection_error(reason: str, errors: ServerErrors) -> PenstockError:
    """Returns the error of a connection that failed, for which the client has no SQLSTATE."""
    if is_connection_limit(reason):
        return errors.busy(reason, None)
    if ("certificate" in reason or "SSL" in reason) and not is_lost_connection(reason):
        return errors.tls(reason)
    if any(text in reason for text in _AUTHENTICATION):
        return errors.authentication(reason)
    if re.search('database ".*" does not exist', reason):
        return errors.unknown_database(reason)
    return errors.unreachable(reason)


def _reason(error: Any) -> str:
    primary, detail = error.diag.message_primary, error.diag.message_detail
    if primary is None:
        return " ".join(str(error).split()) or type(error).__name__
    reason = f"{primary} ({detail.rstrip('.')})" if detail else str(primary)
    column = _COPIED_COLUMN.search(error.diag.context or "")
    if column is None or f'"{column[1]}"' in primary:
        return reason
    return f'column "{column[1]}": {reason}'
