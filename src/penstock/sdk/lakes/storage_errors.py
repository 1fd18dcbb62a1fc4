"""Errors of the storage of a table by their classes and texts."""

from __future__ import annotations

import errno
import re

from penstock.core.errors import Permanent, Transient
from penstock.sdk.network.tls import certificate_hint
from penstock.sdk.object_store import is_untrusted

_STYLE = re.compile(r"\x1b\[[0-9;]*m|↳")
_FORBIDDEN = re.compile(
    r"\b(401 Unauthorized|403 Forbidden|HTTP status 40[013])\b|AccessDenied|InvalidAccessKeyId"
    r"|SignatureDoesNotMatch|InvalidClientTokenId|ACCESS_DENIED|INVALID_ACCESS_KEY_ID"
    r"|SIGNATURE_DOES_NOT_MATCH|CredentialsNotLoaded|[Pp]ermission denied|no permission"
    r"|access denied"
)
_NO_BUCKET = re.compile("NoSuchBucket|NO_SUCH_BUCKET|ContainerNotFound|Bucket '[^']*' not found")
_AUTH_HINT = "Check the credentials (storage.auth, or the environment) and their permissions."
_LOCAL_AUTH_HINT = "Change the permissions of the directory, or run as another user."
_MAX_DETAIL = 500


def storage_error(
    error: OSError, operation: str, subject: str, location: str, detail: str
) -> Permanent | Transient:
    """Returns the error of Penstock for one of the storage of a table at `location`."""
    is_local = "://" not in location
    if _NO_BUCKET.search(detail):
        return Permanent(
            f"cannot {operation} {subject}: the bucket does not exist", code="unknown-bucket",
            detail=detail, hint="Create the bucket.",
        )  # fmt: skip
    if _FORBIDDEN.search(detail):
        return Permanent(
            f"cannot {operation} {subject}", code="authorization", detail=detail,
            hint=_LOCAL_AUTH_HINT if is_local else _AUTH_HINT,
        )  # fmt: skip
    if is_untrusted(detail):
        return Permanent(
            f"cannot {operation} {subject}: TLS verification of the storage failed", code="tls",
            detail=detail,
            hint=certificate_hint(
                detail,
                "Set the environment variable SSL_CERT_FILE to the CA certificate file.",
            ),
        )  # fmt: skip
    if is_local and isinstance(error, NotADirectoryError | FileExistsError):
        return Permanent(
            f"cannot {operation} {subject}: {detail}", code="not-a-directory", hint="Correct path."
        )
    if is_local and error.errno == errno.ENAMETOOLONG:
        return Permanent(
            f"cannot {operation} {subject}: a name in the path is too long", code="invalid-name",
            detail=detail, hint="Choose a shorter name.",
        )  # fmt: skip
    hint = "Check that the storage is reachable and has free space."
    return Transient(f"could not {operation} {subject}", detail=detail, hint=hint)


def error_detail(error: Exception) -> str:
    """Returns the text of an error in one line, without colors and stack traces."""
    text = _STYLE.sub("", str(error)).partition("\n   0: ")[0]
    return " ".join(text.split())[:_MAX_DETAIL]
