"""Routes of logins, users, tokens and the audit."""

from __future__ import annotations

import threading
import time
from collections import deque
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Query, Request, Response

from penstock.server.api.context import TheAccounts, TheAudit, parts_of
from penstock.server.api.models import (
    ChangedUser,
    Code,
    Login,
    NewToken,
    NewUser,
    Number,
    OwnPassword,
)
from penstock.server.api.security import Admin, RequestError, Viewer, cookie_name
from penstock.server.store.accounts import LIFETIME, User

router = APIRouter(tags=["users"])
LOGINS_PER_MINUTE = 10
OPEN_PATHS = ("/login", "/login/code")
"""The routes that need no right."""


class LoginLimit:
    """A limit of logins per minute and address."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def check(self, address: str) -> None:
        """Counts a login. Raises RequestError with the status 429 above the limit."""
        with self._lock:
            self._count(address, time.monotonic())

    def _count(self, address: str, now: float) -> None:
        for known in [key for key, times in self._times.items() if now - times[-1] > 60]:
            del self._times[known]
        times = self._times.setdefault(address, deque())
        while times and now - times[0] > 60:
            times.popleft()
        if len(times) >= LOGINS_PER_MINUTE:
            raise RequestError(
                429, "there were too many logins", code="too-many-logins",
                hint="Try again in a minute.",
            )  # fmt: skip
        times.append(now)


@router.post("/login")
def log_in(
    body: Login, request: Request, response: Response, accounts: TheAccounts, audit: TheAudit
) -> dict[str, Any]:
    """Starts a session by a password. The session is a cookie."""
    _limit(request)
    user = accounts.authenticate(body.name, body.password)
    if user is None:
        audit.record(body.name, "failed login")
        raise RequestError(401, "the name or the password is wrong", code="wrong-password")
    return _begin_session(request, response, accounts, audit, user)


@router.post("/login/code")
def log_in_by_code(
    body: Code, request: Request, response: Response, accounts: TheAccounts, audit: TheAudit
) -> dict[str, Any]:
    """Starts a session by a code, which is valid once."""
    _limit(request)
    user = accounts.redeem(body.code)
    if user is None:
        raise RequestError(
            401, "the code is invalid or was used", code="wrong-code",
            hint="Log in by a password, or ask a user with the right admin.",
        )  # fmt: skip
    return _begin_session(request, response, accounts, audit, user)


def _limit(request: Request) -> None:
    limit: LoginLimit = request.app.state.login_limit
    limit.check(request.client.host if request.client else "")


def _begin_session(
    request: Request, response: Response, accounts: TheAccounts, audit: TheAudit, user: User
) -> dict[str, Any]:
    token = accounts.issue(user.name, "session")
    response.set_cookie(
        cookie_name(request), token, max_age=int(LIFETIME["session"].total_seconds()),
        httponly=True, samesite="strict", secure=parts_of(request).settings.certificate is not None,
    )  # fmt: skip
    audit.record(user.name, "log in")
    return _facts(user)


@router.post("/logout", status_code=204)
def log_out(
    request: Request, response: Response, user: Viewer, accounts: TheAccounts, audit: TheAudit
) -> None:
    """Ends the session of the cookie."""
    accounts.revoke(request.cookies.get(cookie_name(request), ""))
    response.delete_cookie(cookie_name(request))
    audit.record(user.name, "log out")


@router.get("/me")
async def show_me(user: Viewer) -> dict[str, Any]:
    """Returns the name and the rights of the user of the request."""
    return _facts(user)


@router.put("/me/password", status_code=204)
def change_password(
    body: OwnPassword, user: Viewer, accounts: TheAccounts, audit: TheAudit
) -> None:
    """Sets the password of the user, and ends the sessions of the user."""
    accounts.set_user(user.name, password=body.password)
    audit.record(user.name, "change password")


@router.get("/me/tokens")
def list_tokens(user: Viewer, accounts: TheAccounts) -> list[dict[str, Any]]:
    """Returns the tokens of the user, without the tokens themselves."""
    return accounts.tokens(user.name)


@router.post("/me/tokens", status_code=201)
def create_token(
    body: NewToken, user: Viewer, accounts: TheAccounts, audit: TheAudit
) -> dict[str, Any]:
    """Creates a token for a program. Only this answer has it."""
    lifetime = timedelta(days=body.days) if body.days else None
    rights = sorted(user.rights) if body.rights is None else body.rights
    token = accounts.issue(user.name, "token", body.name, rights, lifetime)
    audit.record(user.name, "create token", body.name)
    return {"name": body.name, "token": token}


@router.delete("/me/tokens/{id}", status_code=204)
def remove_token(id: str, user: Viewer, accounts: TheAccounts, audit: TheAudit) -> None:
    """Removes a token of the user."""
    accounts.remove_token(user.name, id)
    audit.record(user.name, "remove token", id)


@router.get("/users")
def list_users(user: Admin, accounts: TheAccounts) -> list[dict[str, Any]]:
    """Returns all users."""
    return accounts.users()


@router.post("/users", status_code=201)
def create_user(
    body: NewUser, user: Admin, accounts: TheAccounts, audit: TheAudit
) -> dict[str, Any]:
    """Creates a user. Without a password the answer has a code for the first login."""
    accounts.add_user(body.name, body.rights, body.password)
    audit.record(user.name, "create user", body.name, rights=body.rights)
    code = None if body.password else accounts.issue(body.name, "code")
    return {"name": body.name, "code": code}


@router.patch("/users/{name}", status_code=204)
def change_user(
    name: str, body: ChangedUser, user: Admin, accounts: TheAccounts, audit: TheAudit
) -> None:
    """Changes the rights or the password of a user, and ends the sessions of the user."""
    accounts.set_user(name, body.rights, body.password)
    audit.record(user.name, "change user", name, rights=body.rights)


@router.delete("/users/{name}", status_code=204)
def delete_user(name: str, user: Admin, accounts: TheAccounts, audit: TheAudit) -> None:
    """Deletes a user with all sessions and tokens."""
    accounts.remove_user(name)
    audit.record(user.name, "delete user", name)


@router.get("/audit")
def list_audit(
    user: Admin, audit: TheAudit, before: Number | None = None, subject: str | None = None,
    limit: int = Query(100, ge=1, le=1000),
) -> list[dict[str, Any]]:  # fmt: skip
    """Returns entries of the audit, last first."""
    return audit.entries(limit=limit, before=before, subject=subject)


def _facts(user: User) -> dict[str, Any]:
    return {"name": user.name, "rights": sorted(user.rights)}
