"""Errors of DuckDB by their classes.

Source: https://duckdb.org/docs/stable/guides/python/exceptions
"""

from __future__ import annotations

import re

from penstock.core.errors import PenstockError, Permanent, Rejected, Transient

_IN_USE = re.compile(
    "Could not set lock|different configuration|already attached|already exists|being used by"
)
_REJECTED = {"ConstraintException", "ConversionException", "OutOfRangeException", "DataError"}
_TRANSIENT = {
    "TransactionException": "Another program in the same process changed the same rows.",
    "OutOfMemoryException": "Free memory, or set max_records of the source.",
    "InterruptException": None,
    "FatalException": None,
    "InternalException": None,
    "ResourceInUseException": None,
}
_IN_USE_HINT = (
    "Close the other program, or set timeout: one process at a time can write to the file."
)


def is_in_use(error: Exception) -> bool:
    """Returns whether another process or configuration has the file open."""
    return _IN_USE.search(str(error)) is not None


def translate_error(error: Exception, path: str) -> PenstockError | None:
    """Returns the error of Penstock for an error of the client; None for another error."""
    import duckdb

    # Arrow's reader of a result raises OSError with the text of DuckDB's error.
    if not isinstance(error, duckdb.Error | OSError):
        return None
    name, reason = type(error).__name__, _reason(error)
    if is_in_use(error):
        return Transient(
            f"could not open the database {path}: {reason}", code="busy", hint=_IN_USE_HINT
        )
    if name in _REJECTED:
        return Rejected(f"DuckDB rejects the row: {reason}", code="rejected")
    if name in _TRANSIENT:
        return Transient(f"could not use the database {path}: {reason}", hint=_TRANSIENT[name])
    if "No space left" in reason or "failed to offload" in reason:
        return Transient(f"could not use the database {path}: {reason}", hint="Free disk space.")
    if name == "IOException" and re.search("open|read from file|not a valid|exist", reason):
        return Permanent(
            f"cannot open the database {path}: {reason}",
            hint="Correct path, or the permissions of the file and its directory.",
        )
    return Permanent(f"cannot use the database {path}: {reason}")


def _reason(error: Exception) -> str:
    text = str(error).partition("\n\nLINE ")[0].partition(" See also http")[0]
    return " ".join(text.split()).partition(" Error: ")[2] or " ".join(text.split())
