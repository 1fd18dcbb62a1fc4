"""Errors of PyIceberg, of catalogs and of storage by their classes and texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.sdk.lakes.commits import Conflict
from penstock.sdk.lakes.storage_errors import error_detail, storage_error
from penstock.sdk.network.tls import certificate_hint, is_lost_connection

_AUTH_HINT = "Check the credentials (catalog.auth) and their permissions."
_REACH_HINT = "Check that the catalog is reachable."
_OPTIONS_HINT = "Check the options of catalog, and the table."
_FORBIDDEN_CODES = ("AccessDenied", "UnrecognizedClient", "InvalidClientToken", "SignatureDoesNot",
                    "InvalidSignature", "ExpiredToken")  # fmt: skip


@contextmanager
def convert_errors(operation: str, table: str) -> Iterator[None]:
    """Raises Transient, Permanent or Conflict for an error of PyIceberg, a catalog or storage."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        translated = translate_error(error, operation, table)
        if translated is None:
            raise
        raise translated from error


def translate_error(error: Exception, operation: str, table: str) -> Exception | None:
    """Returns the error of Penstock for an error of a library; None for another error."""
    from pyiceberg import exceptions as known

    detail = error_detail(error)
    if isinstance(error, known.CommitFailedException | known.ValidationException):
        return Conflict(detail)
    if isinstance(
        error,
        known.UnauthorizedError
        | known.ForbiddenError
        | known.OAuthError
        | known.AuthorizationExpiredError,
    ):
        return _forbidden(operation, table, detail)
    if isinstance(
        error,
        known.ServiceUnavailableError
        | known.ServerError
        | known.TooManyRequestsError
        | known.CommitStateUnknownException
        | known.WaitingForLockException,
    ):
        return Transient(f"could not {operation} {table}", detail=detail, hint=_REACH_HINT)
    if isinstance(error, known.NoSuchTableError | known.NoSuchNamespaceError):
        return Permanent(
            f"cannot {operation} {table}: it was dropped", code="unknown-table", detail=detail,
            hint="Start the run again.",
        )  # fmt: skip
    found = _library_error(error, operation, table, detail)
    if found is not None:
        return found
    if isinstance(error, OSError):
        is_remote = "://" in detail or "AWS" in detail
        return storage_error(error, operation, table, "://" if is_remote else "", detail)
    if isinstance(error, ValueError | NotImplementedError | known.RESTError):
        return Permanent(f"cannot {operation} {table}", detail=detail, hint=_OPTIONS_HINT)
    return None


def _library_error(error: Exception, operation: str, table: str, detail: str) -> Exception | None:
    """Returns the error for one of a client of a catalog."""
    module = type(error).__module__
    if module.startswith("sqlalchemy"):
        from sqlalchemy.exc import DBAPIError, OperationalError

        if "authentication failed" in detail:
            return _forbidden(operation, table, detail)
        is_transient = isinstance(error, OperationalError) and "no such" not in detail
        if is_transient or (isinstance(error, DBAPIError) and error.connection_invalidated):
            return Transient(f"could not {operation} {table}", detail=detail, hint=_REACH_HINT)
        return Permanent(f"cannot {operation} {table}", detail=detail, hint=_OPTIONS_HINT)
    if module.startswith("requests"):
        from requests.exceptions import ConnectionError, JSONDecodeError, SSLError, Timeout

        if isinstance(error, SSLError) and not is_lost_connection(detail):
            return Permanent(
                f"cannot {operation} {table}", code="tls", detail=detail,
                hint=certificate_hint(detail, "Set catalog.tls.ca to the CA certificate file."),
            )  # fmt: skip
        if isinstance(error, ConnectionError | Timeout):
            return Transient(f"could not {operation} {table}", detail=detail, hint=_REACH_HINT)
        if isinstance(error, JSONDecodeError):
            return Permanent(
                f"cannot {operation} {table}: the server is not a catalog", detail=detail,
                hint="Correct catalog.url.",
            )  # fmt: skip
    if module.startswith("botocore"):
        if any(code in detail for code in _FORBIDDEN_CODES) or "redentials" in detail:
            return _forbidden(operation, table, detail)
        return Transient(f"could not {operation} {table}", detail=detail, hint=_REACH_HINT)
    if module.startswith("thrift"):
        return Transient(f"could not {operation} {table}", detail=detail, hint=_REACH_HINT)
    return None


def _forbidden(operation: str, table: str, detail: str) -> Permanent:
    return Permanent(
        f"cannot {operation} {table}", code="authorization", detail=detail, hint=_AUTH_HINT
    )
