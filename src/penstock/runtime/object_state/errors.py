"""Errors of the client of object stores."""

from __future__ import annotations

from urllib.parse import urlsplit

from penstock.core.errors import ConnectError, PenstockError, Permanent, Transient
from penstock.sdk.network.tls import certificate_hint
from penstock.sdk.object_store import is_untrusted

_DETAIL_CHARACTERS = 600


def convert_error(error: Exception, operation: str, url: str) -> PenstockError:
    """Returns the error for an error of an operation on a URL."""
    from obstore.exceptions import NotSupportedError, PermissionDeniedError, UnauthenticatedError

    if isinstance(error, PenstockError):
        return error
    detail = str(error).partition("\n\nDebug source")[0].strip()[:_DETAIL_CHARACTERS]
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return Permanent(
            f"cannot {operation} {url}: access denied", code="authorization", detail=detail,
            hint="Check the credentials (runtime.storage.auth, or the environment) and their "
            "permissions to list, read, write and delete objects below this URL.",
        )  # fmt: skip
    if isinstance(error, FileNotFoundError):
        bucket = urlsplit(url).netloc
        return Permanent(
            f'cannot {operation} {url}: bucket "{bucket}" does not exist', code="unknown-bucket",
            detail=detail, hint="Create the bucket, or correct runtime.state.",
        )  # fmt: skip
    if isinstance(error, NotSupportedError | NotImplementedError):
        return unsupported_store(url, detail)
    if is_untrusted(str(error)):
        return Permanent(
            f"cannot {operation} {url}: TLS verification failed", code="tls", detail=detail,
            hint=certificate_hint(
                detail, "Set runtime.storage.tls.ca to the CA certificate file."
            ),
        )  # fmt: skip
    if isinstance(error, ValueError | TypeError):
        return Permanent(f"cannot {operation} {url}", code="invalid-url", detail=detail)
    return _unavailable(operation, url, detail)


def unsupported_store(url: str, detail: str | None = None) -> ConnectError:
    """Returns the error of a store in which two runs could write the same object."""
    return Permanent(
        f"cannot keep the state in {url}: the object store has no conditional writes",
        code="unsupported-storage", detail=detail,
        hint="Use a store with If-None-Match and If-Match for writes, such as Amazon S3 or MinIO.",
    )  # fmt: skip


def _unavailable(operation: str, url: str, detail: str) -> ConnectError:
    return Transient(
        f"could not {operation} {url}", detail=detail,
        hint="Check that the object store is running and reachable.",
    )  # fmt: skip
