"""Parts of the server that routes use."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from penstock.server.changes import Changes
from penstock.server.live.session_pool import SessionPool
from penstock.server.parts import Parts
from penstock.server.store.accounts import Accounts
from penstock.server.store.audit import Audit
from penstock.server.views import Views


def parts_of(request: Request) -> Parts:
    """Returns the parts of the server that answers a request."""
    parts: Parts = request.app.state.parts
    return parts


def _views(request: Request) -> Views:
    return parts_of(request).views


def _changes(request: Request) -> Changes:
    return parts_of(request).changes


def _accounts(request: Request) -> Accounts:
    return parts_of(request).accounts


def _audit(request: Request) -> Audit:
    return parts_of(request).audit


def _sessions(request: Request) -> SessionPool:
    return parts_of(request).sessions


TheViews = Annotated[Views, Depends(_views)]
TheChanges = Annotated[Changes, Depends(_changes)]
TheAccounts = Annotated[Accounts, Depends(_accounts)]
TheAudit = Annotated[Audit, Depends(_audit)]
TheSessions = Annotated[SessionPool, Depends(_sessions)]
