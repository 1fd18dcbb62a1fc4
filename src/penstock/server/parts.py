"""Parts of a server that its API uses."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.server.changes import Changes
from penstock.server.history.recorder import History
from penstock.server.settings import Settings
from penstock.server.store.accounts import Accounts
from penstock.server.store.audit import Audit
from penstock.server.telemetry import ExportedLog
from penstock.server.views import Views


@dataclass(frozen=True)
class Parts:
    """Settings, pipelines, users, the audit and the history of a server, and its log."""

    settings: Settings
    views: Views
    changes: Changes
    accounts: Accounts
    audit: Audit
    history: History
    log: ExportedLog
