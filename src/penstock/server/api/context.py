"""Parts of the server that routes use. Dependencies that do not wait are coroutines: no thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from penstock.server.alerts.delivery import Delivery
from penstock.server.changes import Changes
from penstock.server.connections.connection_tests import ConnectionTests
from penstock.server.connections.profiles import Profiles
from penstock.server.functions import Functions
from penstock.server.history.recorder import History
from penstock.server.live.session_pool import SessionPool
from penstock.server.parts import Parts
from penstock.server.store.accounts import Accounts
from penstock.server.store.alerts import Alerts
from penstock.server.store.audit import Audit
from penstock.server.store.shares import Shares
from penstock.server.views import Views

T = TypeVar("T")


async def read_at_once(read: Callable[[], T], *, known: bool) -> T:
    """Returns the result of a reading, which has a thread of its own unless it does not wait."""
    return read() if known else await run_in_threadpool(read)


def parts_of(request: Request) -> Parts:
    """Returns the parts of the server that answers a request."""
    parts: Parts = request.app.state.parts
    return parts


async def _views(request: Request) -> Views:
    return parts_of(request).views


async def _changes(request: Request) -> Changes:
    return parts_of(request).changes


async def _accounts(request: Request) -> Accounts:
    return parts_of(request).accounts


async def _audit(request: Request) -> Audit:
    return parts_of(request).audit


async def _history(request: Request) -> History:
    return parts_of(request).history


async def _profiles(request: Request) -> Profiles:
    return parts_of(request).profiles


async def _connection_tests(request: Request) -> ConnectionTests:
    return parts_of(request).connection_tests


async def _alerts(request: Request) -> Alerts:
    return parts_of(request).alerts


async def _delivery(request: Request) -> Delivery:
    return parts_of(request).delivery


async def _shares(request: Request) -> Shares:
    return parts_of(request).shares


async def _functions(request: Request) -> Functions:
    return parts_of(request).functions


async def _sessions(request: Request) -> SessionPool:
    return parts_of(request).sessions


TheViews = Annotated[Views, Depends(_views)]
TheChanges = Annotated[Changes, Depends(_changes)]
TheAccounts = Annotated[Accounts, Depends(_accounts)]
TheAudit = Annotated[Audit, Depends(_audit)]
TheHistory = Annotated[History, Depends(_history)]
TheProfiles = Annotated[Profiles, Depends(_profiles)]
TheConnectionTests = Annotated[ConnectionTests, Depends(_connection_tests)]
TheAlerts = Annotated[Alerts, Depends(_alerts)]
TheDelivery = Annotated[Delivery, Depends(_delivery)]
TheShares = Annotated[Shares, Depends(_shares)]
TheFunctions = Annotated[Functions, Depends(_functions)]
TheSessions = Annotated[SessionPool, Depends(_sessions)]
