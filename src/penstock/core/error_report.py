"""Errors for people and for programs: the text of a report, and dictionaries."""

from __future__ import annotations

from penstock.core.errors import PenstockError, ValidationErrors, flatten_errors
from penstock.core.known_secrets import conceal
from penstock.core.text import printable


def format_error(error: BaseException) -> str:
    """Returns the report of an error: message, location with its line, hint and detail.

    The report is printable.
    """
    if isinstance(error, ValidationErrors):
        return "\n\n".join(format_error(inner) for inner in error.errors)
    if not isinstance(error, PenstockError):
        return printable(conceal(f"error[bug]: {type(error).__name__}: {error}"))
    lines = [f"error[{error.code}]: {error.message}"]
    if error.where is not None:
        lines += error.where.excerpt(error.hint)
    elif error.hint:
        lines.append(f"  hint: {error.hint}")
    if error.detail:
        lines += [f"  {line}" for line in error.detail.strip().splitlines()]
    return printable("\n".join(lines))


def to_dicts(error: PenstockError) -> list[dict[str, str | int | None]]:
    """Returns a dictionary for each error: message, code, detail, hint and its location.

    The location is `file`, `line`, `column` and `length`; each of them is None without one.
    """
    return [{**inner.fields(), **_location(inner)} for inner in flatten_errors(error)]


def _location(error: PenstockError) -> dict[str, str | int | None]:
    where = error.where
    if where is None:
        return {"file": None, "line": None, "column": None, "length": None}
    return {
        "file": where.file, "line": where.line, "column": where.column, "length": where.length,
    }  # fmt: skip
