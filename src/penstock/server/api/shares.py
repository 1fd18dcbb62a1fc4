"""Routes of share links, which show one pipeline or one dead letter without a login.

The token is in the fragment of the address of the console, which browsers do not send, and in a
header of the request. A link shows nothing that its author may not see any more.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Header
from pydantic import Field

from penstock.server.api.context import TheAudit, TheChanges, TheShares, TheViews
from penstock.server.api.models import Body
from penstock.server.api.security import RequestError, Viewer
from penstock.server.store.accounts import Right, User
from penstock.server.store.shares import Share

router = APIRouter(tags=["share links"])
PATH = "/pipelines/{id}/shares"
OPEN_PATHS = ("/shared",)
"""The route whose token is that of a link."""
FACTS = (
    "name", "health", "version", "rows_per_second", "lag", "dead_letters", "bounded", "numbers",
)  # fmt: skip
NODE_FACTS = ("name", "kind", "type", "inputs", "watermark", "state", "guarantee")
"""The facts of pipelines and nodes that a link shows: no texts and no rows."""


class NewShare(Body):
    """A link, of a dead letter if its ID is given. `days` is its lifetime."""

    letter: Annotated[str, Field(max_length=200)] | None = None
    days: Annotated[int, Field(ge=1, le=90)] = 7


@router.post(PATH, status_code=201)
def create_share(
    id: str, body: NewShare, user: Viewer, views: TheViews, changes: TheChanges, shares: TheShares,
    audit: TheAudit,
) -> dict[str, Any]:  # fmt: skip
    """Creates a link. Only this answer has its token. A dead letter requires the right data."""
    views.summary(id)
    if body.letter is not None:
        _require(user.rights, "data")
        changes.dead_letters(id, "show_dead_letter", letter=body.letter)
    share, token = shares.create(id, body.letter, user.name, timedelta(days=body.days))
    audit.record(user.name, "create link", id, link=share.id, letter=body.letter)
    return {**asdict(share), "token": token}


@router.get(PATH)
def list_shares(id: str, user: Viewer, views: TheViews, shares: TheShares) -> list[dict[str, Any]]:
    """Returns the links of a pipeline, without their tokens."""
    views.summary(id)
    return [asdict(share) for share in shares.of_pipeline(id)]


@router.delete(PATH + "/{share}", status_code=204)
def revoke_share(id: str, share: str, user: Viewer, shares: TheShares, audit: TheAudit) -> None:
    """Revokes a link: the own one, or any one with the right edit."""
    own = any(each.id == share and each.author == user.name for each in shares.of_pipeline(id))
    if not own:
        _require(user.rights, "edit")
    shares.revoke(id, share)
    audit.record(user.name, "revoke link", id, link=share)


@router.get("/shared")
def show_shared(
    views: TheViews, changes: TheChanges, shares: TheShares, audit: TheAudit,
    penstock_share: Annotated[str, Header(max_length=200)] = "",
) -> dict[str, Any]:  # fmt: skip
    """Returns the pipeline or the dead letter of a link. The token is in `Penstock-Share`."""
    found = shares.find(penstock_share)
    if found is None:
        raise RequestError(
            401, "the link is invalid, has expired or was revoked", code="invalid-link",
            hint="Ask for a new link.",
        )  # fmt: skip
    share, rights = found
    _require(rights, "view" if share.letter is None else "data")
    audit.record(share.author, "open link", share.pipeline, link=share.id)
    content = _letter(share, changes) if share.letter else _pipeline(share, views)
    return {"expires": share.expires, "author": share.author, **content}


def _pipeline(share: Share, views: TheViews) -> dict[str, Any]:
    detail = views.detail(share.pipeline)
    nodes = [{name: node[name] for name in NODE_FACTS} for node in detail["nodes"]]
    return {"pipeline": {**{name: detail[name] for name in FACTS}, "nodes": nodes}}


def _letter(share: Share, changes: TheChanges) -> dict[str, Any]:
    found = changes.dead_letters(share.pipeline, "show_dead_letter", letter=share.letter)
    return {"letter": found}


def _require(rights: frozenset[str], right: Right) -> None:
    if not User("", rights).may(right):
        raise RequestError(
            403, f"the link requires the right {right} of its author", code="forbidden",
            hint="Ask a user with the right admin.",
        )  # fmt: skip
