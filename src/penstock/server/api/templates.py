"""Routes of texts for new pipelines: templates, and files of other systems as YAML."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from penstock.server.api.context import TheChanges
from penstock.server.api.models import NewText
from penstock.server.api.security import Editor, Viewer
from penstock.templates import all_templates

router = APIRouter(tags=["pipelines"])


@router.get("/templates")
def list_templates(user: Viewer) -> list[dict[str, Any]]:
    """Returns the templates of pipelines, the simplest first."""
    return [asdict(each) for each in all_templates("FILE")]


@router.post("/convert")
def convert_text(body: NewText, user: Editor, changes: TheChanges) -> dict[str, Any]:
    """Returns the language of a text, which may be of another system, and the text as YAML."""
    return changes.convert(body.name, body.text, user)
