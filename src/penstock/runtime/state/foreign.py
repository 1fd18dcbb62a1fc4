"""Content of a state directory that no run of this version has written.

Such content is an error of its pipeline, or left out. It must not end the work on other pipelines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from penstock.core.errors import StateError
from penstock.observe.snapshot import Snapshot
from penstock.runtime.state.files import read_if_exists


@cache
def _numbers() -> TypeAdapter[Snapshot]:
    return TypeAdapter(Snapshot)


def read_numbers(path: Path) -> Snapshot | None:
    """Returns the metrics in a file; None without the file. Raises StateError for other content.

    Leaves out the keys of a later version.
    """
    try:
        text = read_if_exists(path)
        return None if text is None else _numbers().validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the content"
        raise _foreign(path, f"{place}: {first['msg']}") from None
    except UnicodeDecodeError as error:
        raise _foreign(path, str(error)) from None


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
