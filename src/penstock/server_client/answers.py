"""Answers of the API of `penstock serve`: pipelines, versions, checks and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import (
    ConnectError,
    PenstockError,
    Permanent,
    StateError,
    Transient,
    UserError,
)
from penstock.core.location import Location
from penstock.plan.node_changes import Change
from penstock.runtime.health import Health

_CLASSES: Mapping[int, type[PenstockError]] = {
    401: Permanent, 403: Permanent, 409: StateError, 429: Transient, 500: PenstockError,
    502: ConnectError, 503: Transient, 504: Transient,
}  # fmt: skip
"""The classes of errors by the status of HTTP; others are errors of the user."""


@dataclass(frozen=True)
class ServedPipeline:
    """A pipeline of a server. `version` is the applied version; None before the first one.

    `changed` is whether its file differs from the applied version. `ejected` is the reason for
    which it runs outside of its share. In a list `text` is None, and `runs` unknown.
    """

    id: str
    name: str
    file: str
    health: Health
    wish: str
    version: int | None
    changed: bool
    ejected: str | None = None
    text: str | None = None
    runs: bool = False


@dataclass(frozen=True)
class ServedVersion:
    """An applied text of a pipeline."""

    number: int
    text: str
    author: str
    note: str
    time: str


@dataclass(frozen=True)
class Draft:
    """A text of a local file, which locates errors. `served` is the name of its file there."""

    file: Path
    text: str
    served: str


@dataclass(frozen=True)
class DraftCheck:
    """The result of a check of a draft against the state of its pipeline."""

    errors: Sequence[PenstockError]
    warnings: Sequence[PenstockError]
    changes: Sequence[Change]


def read_pipeline(facts: Mapping[str, Any]) -> ServedPipeline:
    """Returns a pipeline of an answer."""
    names = ("id", "name", "file", "wish", "version", "changed")
    known = {name: facts[name] for name in names}
    health = Health.from_json(facts["health"])
    runs = facts.get("owner") is not None or health.state == "starting"
    return ServedPipeline(
        **known, health=health, ejected=facts.get("ejected"), text=facts.get("text"), runs=runs
    )


def read_error(facts: Mapping[str, Any], status: int, draft: Draft | None = None) -> PenstockError:
    """Returns an error of the server in its class, located in the local file of a draft.

    `status` is that of the answer. An error of a check has one of its own.
    """
    kind = _CLASSES.get(facts.get("status", status), UserError)
    hint = facts.get("hint")
    if status == 401:
        hint = "Set PENSTOCK_TOKEN to a token of this server, or name its data with --data."
    return kind(
        facts["message"], code=facts["code"], hint=hint, detail=facts.get("detail"),
        where=_location(facts, draft),
    )  # fmt: skip


def _location(facts: Mapping[str, Any], draft: Draft | None) -> Location | None:
    file, line = facts.get("file"), facts.get("line")
    if not file or not line:
        return None
    column, length = facts.get("column") or 1, facts.get("length") or 1
    if draft is None or Path(file).name != Path(draft.served).name:
        return Location(file, line, column, length)
    lines = draft.text.splitlines()
    text = lines[line - 1] if line <= len(lines) else ""
    return Location(str(draft.file), line, column, length, text)
