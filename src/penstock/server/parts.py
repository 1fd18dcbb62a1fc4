"""Parts of a server that its API uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.log import Log
from penstock.server.alerts.delivery import Delivery
from penstock.server.changes import Changes
from penstock.server.connections.connection_tests import ConnectionTests
from penstock.server.connections.profiles import Profiles
from penstock.server.functions import Functions
from penstock.server.history.recorder import History
from penstock.server.live.session_pool import SessionPool
from penstock.server.settings import Settings
from penstock.server.store.accounts import Accounts
from penstock.server.store.alerts import Alerts
from penstock.server.store.audit import Audit
from penstock.server.store.requests import Requests
from penstock.server.store.shares import Shares
from penstock.server.views import Views

if TYPE_CHECKING:
    from penstock.observe.otlp.telemetry import Telemetry


@dataclass(frozen=True)
class Parts:
    """Settings, pipelines, users, connections, alerts, the audit and the history of a server, its
    log, its Spark sessions and its telemetry.
    """

    settings: Settings
    views: Views
    changes: Changes
    accounts: Accounts
    audit: Audit
    history: History
    log: Log
    profiles: Profiles
    connection_tests: ConnectionTests
    requests: Requests
    alerts: Alerts
    delivery: Delivery
    shares: Shares
    functions: Functions
    sessions: SessionPool
    telemetry: Telemetry | None = None
