"""Parts of a server that its API uses."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.log import Log
from penstock.server.changes import Changes
from penstock.server.live.session_pool import SessionPool
from penstock.server.settings import Settings
from penstock.server.store.accounts import Accounts
from penstock.server.store.audit import Audit
from penstock.server.views import Views


@dataclass(frozen=True)
class Parts:
    """Settings, pipelines, users and the audit of a server, its log, and its Spark sessions."""

    settings: Settings
    views: Views
    changes: Changes
    accounts: Accounts
    audit: Audit
    log: Log
    sessions: SessionPool
