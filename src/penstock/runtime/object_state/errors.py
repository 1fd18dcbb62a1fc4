"""Errors of the client of object stores."""

from __future__ import annotations

from urllib.parse import urlsplit

from penstock.core.errors import ConnectError, PenstockError, Permanent
from penstock.sdk import object_errors


def convert_error(error: Exception, operation: str, url: str) -> PenstockError:
    """Returns the error for an error of an operation on a URL."""
    from obstore.exceptions import NotSupportedError

    if isinstance(error, NotSupportedError | NotImplementedError):
        return unsupported_store(url, object_errors.error_detail(error))
    bucket = urlsplit(url).netloc.partition("@")[0]
    return object_errors.convert_error(
        error, operation, url, bucket=bucket, option="runtime.storage", source="runtime.state"
    )


def unsupported_store(url: str, detail: str | None = None) -> ConnectError:
    """Returns the error of a store in which two runs could write the same object."""
    return Permanent(
        f"cannot keep the state in {url}: the object store has no conditional writes",
        code="unsupported-storage", detail=detail,
        hint="Use a store with conditional writes: Amazon S3, MinIO, Google Cloud Storage, Azure.",
    )  # fmt: skip
