"""Errors of MongoDB by their code.

Source: https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from penstock.connectors.mongodb.config import ConnectionConfig
from penstock.core.errors import ConnectError, Rejected
from penstock.sdk.database.errors import UNREACHABLE, ServerErrors, at_limit
from penstock.sdk.network.tls import is_lost_connection

_AUTHENTICATION = frozenset({11, 18, 334, 8000})
_AUTHORIZATION = frozenset({13, 31})
_TRANSIENT = frozenset(
    {
        6, 7, 24, 43, 46, 50, 64, 79, 89, 91, 100, 112, 133, 134, 175, 189, 202, 234, 237, 262,
        290, 314, 317, 365, 371, 384, 391, 9001, 10107, 11600, 11602, 13388, 13435, 13436, 14031,
        16500,
    }
)  # fmt: skip
"""Timeouts, locks, elections, shutdown, disks, blocked writes, write concerns, conflicts, and
limits of load."""
_ATLAS, _QUOTA = 8000, "space quota"
"""The code of all errors of Atlas, and the text of the one for its disk space."""
_AWS_CLIENT = "(pymongo-auth-aws version"
"""The end of errors of the client without credentials of AWS, which have no code."""
_HINTS = {
    50: "Set timeout, or a smaller max_records.",
    371: "End the block of writes: db.adminCommand({setUserWriteBlockMode: 1, global: false}).",
    14031: "Free disk space of the server.",
}
_CLOSED = ("connection closed", "Connection reset by peer")
"""A server beyond its limit of connections closes them, also while the client sends."""
DUPLICATE_KEY = 11000


@contextmanager
def translate_errors(config: ConnectionConfig) -> Iterator[None]:
    """Raises errors of the client as Transient or Permanent."""
    from pymongo.errors import PyMongoError

    try:
        yield
    except PyMongoError as error:
        raise translate_error(error, config) from None


def translate_error(error: Exception, config: ConnectionConfig) -> ConnectError:
    """Returns the Transient or Permanent error for an error of the client."""
    from pymongo import errors as mongo

    errors, reason = ServerErrors(config.address), _reason(error)
    if isinstance(error, mongo.NotPrimaryError):
        return errors.busy(
            reason, "Wait for the election of a primary, or check the members of the replica set."
        )
    if isinstance(error, mongo.OperationFailure):
        return _by_code(error.code, reason, errors)
    if ("CERTIFICATE_VERIFY_FAILED" in reason or "SSL handshake failed" in reason) and (
        not is_lost_connection(reason)
    ):
        return errors.tls(reason)
    if isinstance(error, mongo.ConnectionFailure | mongo.InvalidOperation):
        is_closed = any(text in reason for text in _CLOSED)
        hint = at_limit("net.maxIncomingConnections") if is_closed else UNREACHABLE
        return errors.unreachable(reason, hint)
    return errors.statement(reason)


def row_error(found: Mapping[str, Any], config: ConnectionConfig) -> Rejected:
    """Returns the error of a document that the server has rejected.

    Raises Transient or Permanent for an error that affects other documents as well.
    """
    code, reason = found.get("code"), _one_line(found.get("errmsg", "no reason"))
    if code in _TRANSIENT | _AUTHENTICATION | _AUTHORIZATION:
        raise _by_code(code, reason, ServerErrors(config.address))
    return Rejected(f"MongoDB rejects the document: {reason}", code="rejected")


def concern_error(found: Mapping[str, Any], config: ConnectionConfig) -> ConnectError:
    """Returns the error of a write concern that is not satisfied."""
    reason = _one_line(found.get("errmsg", "the write concern is not satisfied"))
    return ServerErrors(config.address).busy(reason, "Check the members of the replica set.")


def _by_code(code: int | None, reason: str, errors: ServerErrors) -> ConnectError:
    if code == _ATLAS and _QUOTA in reason:
        return errors.busy(reason, "Free disk space of the cluster.")
    if code in _AUTHENTICATION or _AWS_CLIENT in reason:
        return errors.authentication(reason)
    if code in _AUTHORIZATION:
        return errors.authorization(reason, "Grant the user the role read or readWrite.")
    if code in _TRANSIENT:
        return errors.busy(reason, _HINTS.get(code or 0))
    return errors.statement(reason)


def _reason(error: Exception) -> str:
    """Returns the reason without the topology, and without the timeouts of the client."""
    text = _one_line(error)
    for end in (", Timeout: ", " (configured timeouts: ", ", full error: "):
        text = text.partition(end)[0]
    return text.rstrip(".") or "the connection is closed"


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
