"""Parts of a server that its API uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.log import Log
from penstock.server.changes import Changes
from penstock.server.history.recorder import History
from penstock.server.settings import Settings
from penstock.server.store.accounts import Accounts
from penstock.server.store.audit import Audit
from penstock.server.views import Views

if TYPE_CHECKING:
    from penstock.observe.otlp.telemetry import Telemetry


@dataclass(frozen=True)
class Parts:
    """Settings, pipelines, users, the audit, the history, the log and the telemetry of a server."""

    settings: Settings
    views: Views
    changes: Changes
    accounts: Accounts
    audit: Audit
    history: History
    log: Log
    telemetry: Telemetry | None = None
