"""Errors of ClickHouse by their code.

Source: https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp
"""

from __future__ import annotations

import re
import ssl

from penstock.connectors.clickhouse.config import ConnectionConfig
from penstock.core.errors import PenstockError, Rejected
from penstock.sdk.database.errors import UNREACHABLE, ServerErrors, at_limit
from penstock.sdk.network.tls import is_lost_connection

_CODE = re.compile(r"[Cc]ode: ?(\d+)")
_REASON = re.compile(r"DB::Exception: (.*)", re.DOTALL)
_REJECTED = frozenset(
    {
        6, 26, 27, 33, 38, 41, 42, 69, 70, 72, 117, 131, 190, 321, 349, 376, 407, 441, 469, 675,
        676, 691, 708,
    }
)  # fmt: skip
"""Values that do not fit their columns, and constraints."""
_TRANSIENT = frozenset(
    {
        74, 75, 95, 96, 159, 160, 173, 198, 201, 202, 203, 209, 210, 225, 236, 241, 242, 243, 252,
        254, 279, 285, 286, 319, 373, 394, 425, 439, 473, 499, 667, 700, 722, 733, 745, 999,
    }
)  # fmt: skip
"""Timeouts, limits, disks, replicas, Keeper, sessions, and statements that were ended."""
_AUTHENTICATION = frozenset({192, 193, 194, 516})
_AUTHORIZATION = frozenset({164, 291, 497})
_UNKNOWN_TABLE, _UNKNOWN_DATABASE, _SYNTAX, _READ_ONLY = 60, 81, 62, 164
_NEEDED = re.compile(r"necessary to have (?:the )?grants? (\S.*? ON \S+?)(?:\.? \(|[.,]? |\.?$)")
_SILENT = re.compile("Read timed out|without response|Connection aborted")
"""Reasons of a request that the server has accepted and not answered."""
_HINTS = {
    202: "Raise max_concurrent_queries of the server, or start fewer queries at a time.",
    241: "Raise max_memory_usage in settings, or set max_records.",
    243: "Free disk space of the server.",
    252: "Set batch so that it has more rows and less batches per second.",
    159: "Set timeout, or a smaller max_records.",
}


def code_of(error: BaseException | None) -> int | None:
    """Returns the code of the server in an error of the client, or in its cause."""
    text = str(error) if error is not None else ""
    match = _CODE.search(text)
    if match is None and error is not None and error.__cause__ is not None:
        return code_of(error.__cause__)
    return int(match[1]) if match else None


def translate_error(error: Exception, config: ConnectionConfig) -> PenstockError | None:
    """Returns the error of Penstock for an error of the client; None for another error."""
    import urllib3
    from clickhouse_connect.driver.exceptions import ClickHouseError

    if not isinstance(error, ClickHouseError | urllib3.exceptions.HTTPError | OSError):
        return None
    code, reason = code_of(error), _reason(error)
    errors = ServerErrors(config.address)
    if code is None:
        if _is_about_tls(error) and not is_lost_connection(str(error)):
            return errors.tls(reason)
        hint = at_limit("max_connections") if _SILENT.search(reason) else UNREACHABLE
        return errors.unreachable(reason, hint)
    if code in _AUTHENTICATION:
        return errors.authentication(reason)
    if code in _AUTHORIZATION:
        hint = _grant(reason, config)
        if code == _READ_ONLY:
            hint = "Set readonly of the user to 2 to read, or to 0 to write."
        return errors.authorization(reason, hint)
    if code == _UNKNOWN_DATABASE:
        return errors.unknown_database(reason)
    if code in _TRANSIENT:
        return errors.busy(reason, _HINTS.get(code))
    if code in _REJECTED:
        return Rejected(f"ClickHouse rejects the row: {reason}", code="rejected")
    return errors.statement(reason)


def _grant(reason: str, config: ConnectionConfig) -> str:
    """Returns the hint for a message of the server about a missing privilege."""
    match = _NEEDED.search(reason)
    if match is None:
        return "Grant the user the privilege, as in GRANT SELECT ON ... TO ..."
    user = "default" if config.auth is None else str(config.auth.username)
    return "Run GRANT {} TO `{}`.".format(match[1], user.replace("`", "\\`"))


def _is_about_tls(error: BaseException | None) -> bool:
    """Returns whether a connection failed in the handshake of TLS."""
    while error is not None:
        reason = getattr(error, "reason", None)
        if isinstance(error, ssl.SSLError) or isinstance(reason, ssl.SSLError):
            return True
        if "SSLError" in str(error):
            return True
        error = error.__cause__ or (reason if isinstance(reason, BaseException) else None)
    return False


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if match := _REASON.search(text):
        text = match[1]
    text = re.sub(r"\(for url .*?\)", "", text)
    text = re.sub(r" \(version [^)]*\)", "", text)
    return text.strip().rstrip(".") or "the connection is closed"
