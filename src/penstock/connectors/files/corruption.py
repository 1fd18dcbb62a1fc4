"""Errors of damaged files, and of files of another kind."""

from __future__ import annotations

import lzma
import struct
import zlib
from typing import TypeGuard

import pyarrow as pa

from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.signature import NOT_COMPRESSED
from penstock.core.errors import DecodeError, RecordError
from penstock.sdk.forked import CRASHED

CORRUPT = (
    RecordError, pa.ArrowException, OSError, EOFError, ValueError, LookupError, MemoryError,
    struct.error, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""The errors that decoders raise for a damaged file."""


def is_of_another_kind(error: Exception | None) -> TypeGuard[RecordError]:
    """Returns whether an error is that of a file that is not compressed as expected."""
    return isinstance(error, RecordError) and error.code == NOT_COMPRESSED


def corrupt_file_error(error: Exception, range_: FileRange) -> RecordError:
    """Returns the error for the unreadable rest of a file, or for a file of another kind."""
    if is_of_another_kind(error):
        return DecodeError(
            f"cannot read {range_.display_path}: {error.message}",
            code="corrupt-file",
            hint=error.hint,
        )
    code = error.code if isinstance(error, RecordError) else None
    ratio = code == "compression-ratio"
    detail = error.message if isinstance(error, RecordError) else f"{type(error).__name__}: {error}"
    return DecodeError(
        f"cannot read the rest of {range_.display_path}",
        code=code if code in ("compression-ratio", CRASHED) else "corrupt-file",
        detail=detail,
        hint="Decompress the file under another name if you trust its origin."
        if ratio
        else "Add a complete copy of the file under another name.",
    )
