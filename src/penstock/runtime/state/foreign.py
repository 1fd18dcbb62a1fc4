"""Content of a state directory that no run of this version has written.

Such content is an error of its pipeline, or left out. It must not end the work on other pipelines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from penstock.core.errors import StateError
from penstock.observe.snapshot import Snapshot

_LATER = frozenset({
    "batch_seconds", "batch_since", "began", "labels", "last_batch", "late_rows", "late_rows_exact",
    "lost", "open_windows", "receivers", "retained", "retained_seconds", "side_outputs", "sink",
    "started", "stopping", "watermarks", "without_event_time",
})  # fmt: skip
"""The keys of a snapshot that an earlier version may not have written."""


def check_numbers(path: Path, content: Any) -> Snapshot | None:
    """Returns the metrics in a file. Raises StateError for other content."""
    if content is None:
        return None
    found = _difference(content, Snapshot)
    if found is not None:
        raise _foreign(path, found)
    numbers: Snapshot = content
    return numbers


def _difference(value: Any, kind: Any, place: str = "status") -> str | None:
    """Returns the first place where a value is not of a type; None without one."""
    if is_typeddict(kind):
        if not isinstance(value, dict):
            return f"{place} is no object"
        for name, field in _fields(kind).items():
            is_needed = name in kind.__required_keys__ and name not in _LATER
            if name not in value and is_needed:
                return f"{place} has no {name}"
            if name in value and (found := _difference(value[name], field, f"{place}.{name}")):
                return found
        return None
    if get_origin(kind) is dict:
        if not isinstance(value, dict):
            return f"{place} is no object"
        parts = (_difference(each, get_args(kind)[1], f"{place}.{n}") for n, each in value.items())
        return next((found for found in parts if found), None)
    return None if _is_plain(value, kind) else f"{place} is of another type"


def _is_plain(value: Any, kind: Any) -> bool:
    """Returns whether a value is of a type, or of one of a union.

    Numbers are of one type. A text may be missing, as the ID of a run that a user has started.
    """
    if kind is str and value is None:
        return True
    kinds = get_args(kind) if get_origin(kind) is UnionType else (kind,)
    plain = {float if each is int else get_origin(each) or each for each in kinds}
    return (float if type(value) is int else type(value)) in plain


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def check_run(path: Path, content: Any) -> dict[str, Any] | None:
    """Returns the run in a file. Raises StateError for other content."""
    if content is None:
        return None
    if not _is_run(content, "began"):
        raise _foreign(path, "expected the ID of a run and its start")
    run: dict[str, Any] = content
    return run


def read_finished(line: str) -> dict[str, Any] | None:
    """Returns the finished run in a line; None for another line, as a power failure leaves one."""
    try:
        run = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not _is_run(run, "began", "ended", "ending"):
        return None
    return {**run, "errors": run["errors"] if _are_errors(run.get("errors")) else {}}


def _are_errors(errors: Any) -> bool:
    return isinstance(errors, Mapping) and all(
        isinstance(found, list) and all(_has_texts(each, "code", "message") for each in found)
        for found in errors.values()
    )


def _has_texts(content: Any, *names: str) -> bool:
    return isinstance(content, dict) and all(isinstance(content.get(n), str) for n in names)


def _is_run(content: Any, *names: str) -> bool:
    """Returns whether content has an ID, which may be null, and texts of these names."""
    return _has_texts(content, *names) and isinstance(content.get("id", 0), str | None)


def _foreign(path: Path, detail: str) -> StateError:
    return StateError(
        f"{path} is damaged, or of another version", code="corrupt-state", detail=detail,
        hint="Remove the file. A run writes it again.",
    )  # fmt: skip
