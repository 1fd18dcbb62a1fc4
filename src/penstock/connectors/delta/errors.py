"""Errors of delta-rs by their classes and texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.core.errors import PenstockError, Permanent, Transient
from penstock.sdk.lakes.commits import Conflict

_STYLE = re.compile(r"\x1b\[[0-9;]*m|↳")
_FORBIDDEN = re.compile(
    r"\b(401 Unauthorized|403 Forbidden|HTTP status 40[013])\b|AccessDenied|InvalidAccessKeyId"
    r"|SignatureDoesNotMatch|InvalidClientTokenId|ACCESS_DENIED|INVALID_ACCESS_KEY_ID"
    r"|SIGNATURE_DOES_NOT_MATCH|CredentialsNotLoaded|[Pp]ermission denied|no permission"
)
_NO_BUCKET = re.compile("NoSuchBucket|NO_SUCH_BUCKET|Bucket '[^']*' not found")
_AUTH_HINT = "Check the credentials (storage.auth, or the environment) and their permissions."
_LOCAL_AUTH_HINT = "Change the permissions of the directory, or run as another user."
_MAX_DETAIL = 500


@contextmanager
def convert_errors(operation: str, path: str) -> Iterator[None]:
    """Raises Transient, Permanent or Conflict for an error of delta-rs."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        translated = translate_error(error, operation, path)
        if translated is None:
            raise
        raise translated from error


def translate_error(error: Exception, operation: str, path: str) -> Exception | None:
    """Returns the error of Penstock for one of delta-rs or of the storage; None for another."""
    from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError

    detail = _detail(error)
    if isinstance(error, CommitFailedError):
        return Conflict(detail)
    if isinstance(error, DeltaProtocolError):
        return Permanent(
            f"cannot {operation} {path}: the table has features that are not supported",
            code="unsupported-table",
            detail=detail,
            hint="Remove the features of the table with ALTER TABLE ... DROP FEATURE.",
        )
    if isinstance(error, DeltaError):
        return Permanent(f"cannot {operation} {path}", detail=detail)
    if not isinstance(error, OSError):
        return None
    if _NO_BUCKET.search(detail):
        return Permanent(
            f"cannot {operation} {path}: the bucket does not exist", code="unknown-bucket",
            detail=detail, hint="Create the bucket.",
        )  # fmt: skip
    if _FORBIDDEN.search(detail):
        return Permanent(
            f"cannot {operation} {path}", code="authorization", detail=detail,
            hint=_AUTH_HINT if "://" in path else _LOCAL_AUTH_HINT,
        )  # fmt: skip
    if "://" not in path and isinstance(error, NotADirectoryError | FileExistsError):
        return Permanent(
            f"cannot {operation} {path}: {detail}", code="not-a-directory", hint="Correct path."
        )
    hint = "Check that the storage is reachable and has free space."
    return Transient(f"could not {operation} {path}", detail=detail, hint=hint)


def _detail(error: Exception) -> str:
    """Returns the text of an error in one line, without colors and stack traces."""
    text = _STYLE.sub("", str(error)).partition("\n   0: ")[0]
    return " ".join(text.split())[:_MAX_DETAIL]
