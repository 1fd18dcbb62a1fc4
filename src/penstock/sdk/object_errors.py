"""Errors of obstore, the client of object stores."""

from __future__ import annotations

import re

from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.sdk.network.tls import certificate_hint
from penstock.sdk.object_store import is_untrusted

_DETAIL_CHARACTERS = 600
_STATUS = re.compile(r"status code: (\d+)")
_MISSING_BUCKET = re.compile(
    "NoSuchBucket|ContainerNotFound|The specified bucket does not exist|ContainerBeingDeleted"
)
_METADATA = re.compile(r"metadata\.google\.internal|169\.254\.169\.254")
"""The servers of machines of the cloud."""
_LOGIN = "token request"
_REJECTED = ("400", "401", "403")
"""The status of a login whose credentials are wrong."""
_BAD_CREDENTIALS = re.compile(
    "GCP credential error|reading pem file|Invalid Access Key|an SAS key|SAS query pair"
)
_BAD_KEY = re.compile("contained empty path segment|Error parsing Path")


def is_missing_bucket(error: Exception) -> bool:
    """Returns whether an error is that of a missing bucket or container."""
    return _MISSING_BUCKET.search(str(error)) is not None


def convert_error(
    error: Exception, operation: str, url: str, *, bucket: str, option: str, source: str
) -> PenstockError:
    """Returns the error for an error of an operation on a URL.

    `option` is the option with the connection, and `source` the one with the URL.
    """
    from obstore.exceptions import InvalidPathError, PermissionDeniedError, UnauthenticatedError

    if isinstance(error, PenstockError):
        return error
    detail = error_detail(error)
    status = _STATUS.search(detail)
    has_metadata, is_login = _METADATA.search(detail) is not None, _LOGIN in detail
    is_rejected = is_login and status is not None and status[1] in _REJECTED
    if has_metadata or (is_login and not is_rejected):
        return Transient(
            f"could not {operation} {url}: no credentials", detail=detail,
            hint=f"Set {option}.auth, or the credentials of the environment. On a machine of the "
            "cloud, check that its metadata server is reachable.",
        )  # fmt: skip
    if is_rejected or _BAD_CREDENTIALS.search(detail):
        return Permanent(
            f"cannot {operation} {url}: the credentials cannot be used", code="authentication",
            detail=detail, hint=f"Check {option}.auth, or the credentials of the environment.",
        )  # fmt: skip
    denied = isinstance(error, PermissionDeniedError | UnauthenticatedError)
    if denied or (status is not None and status[1] in ("401", "403")):
        return Permanent(
            f"cannot {operation} {url}: access denied", code="authorization", detail=detail,
            hint=f"Check the credentials ({option}.auth, or the environment) and their "
            "permissions to list, read, write and delete objects below this URL.",
        )  # fmt: skip
    if isinstance(error, FileNotFoundError) or is_missing_bucket(error):
        return Permanent(
            f'cannot {operation} {url}: bucket "{bucket}" does not exist', code="unknown-bucket",
            detail=detail, hint=f"Create the bucket, or correct {source}.",
        )  # fmt: skip
    if is_untrusted(str(error)):
        return Permanent(
            f"cannot {operation} {url}: TLS verification failed", code="tls", detail=detail,
            hint=certificate_hint(detail, f"Set {option}.tls.ca to the CA certificate file."),
        )  # fmt: skip
    if isinstance(error, InvalidPathError) or _BAD_KEY.search(detail):
        return Permanent(
            f"cannot {operation} {url}: a key has an unsupported part", code="invalid-name",
            detail=detail, hint="Rename or delete objects whose keys have two slashes in a row, or "
            "the part . or .., or use another directory.",
        )  # fmt: skip
    if isinstance(error, ValueError | TypeError):
        return Permanent(f"cannot {operation} {url}", code="invalid-url", detail=detail)
    return Transient(
        f"could not {operation} {url}", detail=detail,
        hint="Check that the object store is running and reachable.",
    )  # fmt: skip


def error_detail(error: Exception) -> str:
    """Returns the text of an error without the parts for developers of the client."""
    return str(error).partition("\n\nDebug source")[0].strip()[:_DETAIL_CHARACTERS]
