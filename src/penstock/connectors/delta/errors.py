"""Errors of delta-rs by their classes and texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.core.errors import PenstockError, Permanent
from penstock.sdk.lakes.commits import Conflict
from penstock.sdk.lakes.storage_errors import error_detail, storage_error


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

    detail = error_detail(error)
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
    return storage_error(error, operation, path, path, detail)
