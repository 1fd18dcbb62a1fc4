"""Routes of dead letters: list, show, remove and replay."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from penstock.server.api.context import TheAudit, TheChanges, TheSessions
from penstock.server.api.idempotency import IdempotentRoute
from penstock.server.api.models import LetterIds, Letters
from penstock.server.api.security import DataReader, Operator

FEW = 1000
"""The dead letters that are replayed in a warm session. It has less memory than a run."""
REPLAY_SECONDS = 600.0
router = APIRouter(
    tags=["dead letters"], prefix="/pipelines/{id}/dead-letters", route_class=IdempotentRoute
)


@router.get("")
def list_dead_letters(
    id: str, user: DataReader, changes: TheChanges, audit: TheAudit, node: str | None = None,
    code: str | None = None, before: Annotated[str | None, Query(max_length=200)] = None,
    limit: int = Query(50, ge=1, le=1000),
) -> dict[str, Any]:  # fmt: skip
    """Returns the newest dead letters, or those before a place, and numbers by node and code.

    `next` is the value of `before` of the next page; null at the end. A page of large payloads has
    fewer letters than `limit`.
    """
    audit.record(user.name, "list dead letters", id)
    selected = {"node": node, "code": code, "before": before, "limit": limit}
    return changes.dead_letters(id, "list_dead_letters", **selected)


@router.get("/{letter}")
def show_dead_letter(
    id: str, letter: str, user: DataReader, changes: TheChanges, audit: TheAudit
) -> dict[str, Any]:
    """Returns a dead letter with its payload."""
    audit.record(user.name, "show dead letter", id, letter=letter)
    return changes.dead_letters(id, "show_dead_letter", letter=letter)


@router.post("/replay")
def replay_dead_letters(
    id: str, body: Letters, user: Operator, changes: TheChanges, sessions: TheSessions,
    audit: TheAudit,
) -> dict[str, Any]:  # fmt: skip
    """Replays dead letters of a stopped pipeline from the nodes where they failed."""
    audit.record(user.name, "replay", id, letters=None if body.ids is None else len(body.ids))
    if body.ids is not None and len(body.ids) <= FEW:
        draft, arguments = changes.own_draft(id), {"ids": body.ids, "force": body.force}
        return sessions.submit(user.name, "replay", draft, REPLAY_SECONDS, **arguments).wait()
    return changes.dead_letters(id, "replay_dead_letters", ids=body.ids, force=body.force)


@router.post("/remove")
def remove_dead_letters(
    id: str, body: LetterIds, user: Operator, changes: TheChanges, audit: TheAudit
) -> dict[str, Any]:
    """Removes dead letters for good."""
    audit.record(user.name, "remove dead letters", id, letters=len(body.ids))
    return changes.dead_letters(id, "remove_dead_letters", ids=body.ids)
