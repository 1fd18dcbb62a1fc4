"""Routes of the editor: completion and documentation at a position of a text."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from penstock.server.api.context import TheChanges
from penstock.server.api.models import NewPlace, Place
from penstock.server.api.security import Editor

router = APIRouter(tags=["editor"])
PATH = "/pipelines/{id}"


@router.post(PATH + "/complete")
def complete(id: str, body: Place, user: Editor, changes: TheChanges) -> dict[str, Any]:
    """Returns the proposals at a position of a text of a pipeline."""
    return changes.ask(id, "complete", body.text, user, line=body.line, column=body.column)


@router.post(PATH + "/hover")
def hover(id: str, body: Place, user: Editor, changes: TheChanges) -> dict[str, Any]:
    """Returns the documentation of the word at a position of a text of a pipeline."""
    return changes.ask(id, "hover", body.text, user, line=body.line, column=body.column)


@router.post("/complete")
def complete_new(body: NewPlace, user: Editor, changes: TheChanges) -> dict[str, Any]:
    """Returns the proposals at a position of a text of a new pipeline."""
    return changes.ask_new(
        body.name, "complete", body.text, user, line=body.line, column=body.column
    )


@router.post("/hover")
def hover_new(body: NewPlace, user: Editor, changes: TheChanges) -> dict[str, Any]:
    """Returns the documentation of the word at a position of a text of a new pipeline."""
    place = {"line": body.line, "column": body.column}
    return changes.ask_new(body.name, "hover", body.text, user, **place)
