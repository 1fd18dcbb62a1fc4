"""Errors of JDBC drivers by their SQLSTATE, and those of MySQL and MariaDB by their number.

Sources: ISO/IEC 9075-2, and https://www.h2database.com/javadoc/org/h2/api/ErrorCode.html
"""

from __future__ import annotations

from typing import Any

from penstock.core.errors import PenstockError, Permanent, Rejected, Transient
from penstock.sdk.database.errors import ServerErrors
from penstock.sdk.database.mysql_errors import HINTS, TRANSIENT

_REJECTED = ("22", "23", "44", "45")
"""Values, constraints, views with a check, errors of triggers."""
_TRANSIENT = ("08", "40", "53", "57P", "58")
_IN_USE_STATES = frozenset({"90020", "XSDB6", "XJ040"})
_IN_USE_TEXTS = ("already in use", "acquired", "Database lock", "another instance of Derby")
_AUTHENTICATION = frozenset({"28", "08004"})
_CERTIFICATES = ("PKIX", "CertificateException", "SSLPeerUnverified", "hostnameverifier")
_STATEMENT_TIMEOUTS = frozenset({"57014", "HYT00"})
_H2_LOST, _H2_NOT_FOUND, _H2_LOCK_TIMEOUT = (90067, 90121), 90146, 50200
_OF_MYSQL = ("jdbc:mysql:", "jdbc:mariadb:")
_UNKNOWN_DATABASE = frozenset({"3D000", "90146", "90149", "XJ004"})


def translate_error(error: Exception, address: str) -> PenstockError | None:
    """Returns the error of Penstock for an error of a driver; None for another error."""
    import jpype

    if not isinstance(error, jpype.JException):
        return None
    sql_error = jpype.JClass("java.sql.SQLException")
    if not isinstance(error, sql_error):
        return _other(error, address)
    first = _most_specific(error)
    state, number, reason = str(first.getSQLState() or ""), first.getErrorCode(), _reason(first)
    errors = ServerErrors(address)
    if state in _IN_USE_STATES or any(text in reason for text in _IN_USE_TEXTS):
        return Transient(
            f"could not open the database {address}: {reason}", code="busy",
            hint="Close the other program, or use the server of the database: one process at a "
            "time can open the files.",
        )  # fmt: skip
    if _is_about_certificates(first):
        return errors.tls(reason)
    if number in TRANSIENT and address.startswith(_OF_MYSQL):
        return errors.busy(reason, HINTS.get(number))
    if state in _AUTHENTICATION or state[:2] in _AUTHENTICATION:
        return errors.authentication(reason)
    if state in _UNKNOWN_DATABASE:
        return errors.unknown_database(reason)
    if (
        state[:2] == "42"
        and ("denied" in reason or "privilege" in reason.lower())
        and ("not found" not in reason)
    ):
        return errors.authorization(reason, "Grant the user the privilege.")
    if state in _STATEMENT_TIMEOUTS or _is(first, "SQLTimeoutException"):
        return errors.busy(reason, "Set timeout.")
    if (
        number in _H2_LOST
        or state.startswith("08")
        or _is(first, "SQLNonTransientConnectionException")
    ):
        return errors.unreachable(reason)
    if (
        state.startswith(_TRANSIENT)
        or number == _H2_LOCK_TIMEOUT
        or _is(first, "SQLTransientException")
    ):
        return errors.busy(reason, None)
    if state.startswith(_REJECTED) or _is(first, "SQLDataException"):
        return Rejected(f"the database rejects the row: {reason}", code="rejected")
    return errors.statement(reason)


def _most_specific(error: Any) -> Any:
    """Returns the error of the first row of a batch, which has the reason."""
    while (following := error.getNextException()) is not None:
        error = following
        if error.getSQLState():
            break
    return error


def _is_about_certificates(error: Any) -> bool:
    """Returns whether an error, or one of its causes, is that of the certificate of a server."""
    while error is not None:
        text = str(error)
        if any(known in text for known in _CERTIFICATES):
            return True
        error = error.getCause()
    return False


def _is(error: Any, name: str) -> bool:
    import jpype

    return isinstance(error, jpype.JClass(f"java.sql.{name}"))


def _other(error: Any, address: str) -> PenstockError:
    """Returns the error of an exception that is not one of SQL."""
    reason = " ".join(str(error).split())
    if "OutOfMemoryError" in reason:
        return Transient(
            f"could not use the database {address}: the memory of Java is full",
            hint="Set fetch_size or max_records of the source to fewer rows.",
        )
    return Permanent(f"the driver failed on the database {address}: {reason}")


def _reason(error: Any) -> str:
    text = " ".join(str(error.getMessage() or error).split())
    return text.partition("; SQL statement:")[0] or "the connection is closed"
