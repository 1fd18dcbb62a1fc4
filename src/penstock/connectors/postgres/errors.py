"""Errors of PostgreSQL by their SQLSTATE.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

import re
from typing import Any

from penstock.connectors.postgres.config import ConnectionConfig
from penstock.core.errors import PenstockError, Permanent, Rejected, Transient

_REJECTED = ("22", "23", "44", "54000", "P0001")
"""Values, constraints, views with a check, rows that are too large, and RAISE in triggers."""
_TRANSIENT = ("08", "40", "53", "55P03", "57P", "57014", "58", "25006")
"""Connections, deadlocks, resources, locks, shutdown, timeouts, system errors, standbys."""
_HINTS = {
    "25006": "The server is a standby. Check that url is the primary.",
    "53100": "Free disk space of the server.",
    "53300": "Raise max_connections of the server, or close other connections.",
    "57014": "Set timeout, or find the lock or the slow query in pg_stat_activity.",
}
_AUTHENTICATION = ("authentication", "password", "pg_hba.conf", "role ")
_TOO_MANY = re.compile("too many connections|connection slots")
_UNREACHABLE = "Check that the server is running, and the option url."


def translate_error(error: Exception, config: ConnectionConfig) -> PenstockError | None:
    """Returns the error of Penstock for an error of the client; None for another error."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate or ""
    reason = _reason(error)
    server = f"the database {config.address}"
    if state.startswith(_REJECTED):
        return Rejected(f"PostgreSQL rejects the row: {reason}", code="rejected")
    if state == "42501":
        return Permanent(
            f"{server} denied permission: {reason}", code="authorization",
            hint="Grant the user the permission, as in GRANT SELECT ON TABLE ... TO ...",
        )  # fmt: skip
    if not state:
        return _connection_error(reason, server)
    if state.startswith(_TRANSIENT):
        return Transient(
            f"could not execute the statement: {server} returned: {reason}", code="busy",
            hint=_HINTS.get(state),
        )  # fmt: skip
    return Permanent(f"cannot execute the statement: {server} returned: {reason}", code="rejected")


def _connection_error(reason: str, server: str) -> PenstockError:
    """Returns the error of a connection that failed, for which the client has no SQLSTATE."""
    if "certificate" in reason or "SSL" in reason:
        return Permanent(
            f"TLS verification of {server} failed: {reason}", code="tls",
            hint="Set tls.ca to the CA certificate file, or check that the server has TLS.",
        )  # fmt: skip
    if any(text in reason for text in _AUTHENTICATION):
        return Permanent(
            f"authentication to {server} failed: {reason}", code="authentication",
            hint="Check auth.username and auth.password.",
        )  # fmt: skip
    if re.search('database ".*" does not exist', reason):
        return Permanent(
            f"cannot connect to {server}: {reason}", code="unknown-database",
            hint="Check the database in url.",
        )  # fmt: skip
    hint = _HINTS["53300"] if _TOO_MANY.search(reason) else _UNREACHABLE
    return Transient(f"could not reach {server}: {reason}", code="unreachable", hint=hint)


def _reason(error: Any) -> str:
    primary, detail = error.diag.message_primary, error.diag.message_detail
    if primary is None:
        return " ".join(str(error).split()) or type(error).__name__
    return f"{primary} ({detail.rstrip('.')})" if detail else str(primary)
