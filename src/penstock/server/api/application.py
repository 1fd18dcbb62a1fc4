"""The application: all routes, with authentication, errors and protection."""

from __future__ import annotations

import socket

from fastapi import FastAPI
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from penstock.core.version import __version__
from penstock.server.api import (
    alerts,
    components,
    connections,
    dead_letters,
    events,
    functions,
    language,
    live,
    message_samples,
    metrics,
    monitoring,
    pipelines,
    sessions,
    shares,
    taps,
    templates,
)
from penstock.server.api.description import rights_of
from penstock.server.api.errors import add_error_handlers
from penstock.server.api.security import MAX_BODY, Protection, unprotected_routes
from penstock.server.console import routes as console
from penstock.server.documentation import routes as documentation
from penstock.server.parts import Parts
from penstock.server.settings import Settings
from penstock.server.telemetry import RequestSpans

PREFIX = "/api/v1"
ROUTERS = (
    pipelines.router, metrics.router, language.router, dead_letters.router, components.router,
    events.router, sessions.router, connections.router, message_samples.router,
    functions.router, alerts.router, shares.router, live.router, taps.router, templates.router,
)  # fmt: skip
OPEN_PATHS = (
    *sessions.OPEN_PATHS,
    *shares.OPEN_PATHS,
    *monitoring.OPEN_PATHS,
    *documentation.OPEN_PATHS,
    *console.OPEN_PATHS,
)
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


def make_application(parts: Parts) -> FastAPI:
    """Returns the application of a server.

    Raises AssertionError if a route requires no right: a defect of Penstock.
    """
    unprotected = unprotected_routes(
        (*ROUTERS, monitoring.router, documentation.router, console.router), OPEN_PATHS
    )
    assert not unprotected, f"routes without a right: {unprotected}"
    app = FastAPI(
        title="Penstock", version=__version__, openapi_url=None, docs_url=None, redoc_url=None
    )
    app.state.parts, app.state.rights = parts, rights_of(ROUTERS, PREFIX)
    app.state.login_limit, app.state.streams = sessions.LoginLimit(), events.Streams()
    for router in ROUTERS:
        app.include_router(router, prefix=PREFIX)
    app.include_router(monitoring.router)
    app.include_router(documentation.router)
    app.include_router(console.router)  # the last one: its page answers all other paths
    add_error_handlers(app)
    if parts.telemetry is not None:
        app.add_middleware(RequestSpans, telemetry=parts.telemetry, prefix=PREFIX)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY)
    app.add_middleware(Protection, hosts=_hosts(parts.settings))
    return app


def _hosts(settings: Settings) -> frozenset[str]:
    """Returns the names by which the server is called."""
    own = {settings.host.lower(), socket.gethostname().lower()} - {"0.0.0.0", "::"}
    bracketed = {f"[{name}]" if ":" in name else name for name in own}
    return LOOPBACK | bracketed | {name.lower() for name in settings.hosts}
