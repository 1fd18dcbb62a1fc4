"""The server: its parts, their start and their end."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from penstock.core.errors import Permanent, StateError, UserError
from penstock.core.files.durable import replace_durably
from penstock.core.files.private_files import create_directory
from penstock.core.log import Log
from penstock.core.path_permission import VARIABLE as PERMITTED_PATHS
from penstock.core.path_permission import setting_of
from penstock.core.python_permission import SERVER_FUNCTIONS
from penstock.core.python_permission import VARIABLE as NO_PYTHON
from penstock.runtime.event_log import EventLog
from penstock.server.alerts.delivery import Delivery
from penstock.server.alerts.watcher import Watcher
from penstock.server.api.application import make_application
from penstock.server.api.monitoring import states
from penstock.server.catalog import Catalog
from penstock.server.changes import Changes
from penstock.server.connections.connection_tests import ConnectionTests
from penstock.server.connections.profiles import Profiles
from penstock.server.functions import Functions
from penstock.server.history.recorder import History
from penstock.server.live.session_pool import SessionPool
from penstock.server.parts import Parts
from penstock.server.pipeline_files import PipelineFiles
from penstock.server.settings import Settings
from penstock.server.store.accounts import RIGHTS, Accounts
from penstock.server.store.alerts import Alerts
from penstock.server.store.audit import Audit
from penstock.server.store.connections import Connections
from penstock.server.store.database import Database, leadership
from penstock.server.store.encryption import Encryption
from penstock.server.store.functions import StoredFunctions
from penstock.server.store.pipelines import Pipelines
from penstock.server.store.requests import Requests
from penstock.server.store.shares import Shares
from penstock.server.supervision.run_process import Launcher
from penstock.server.supervision.shared_runs import Hosts
from penstock.server.supervision.supervisor import Supervisor
from penstock.server.telemetry import exported, variables
from penstock.server.views import Views
from penstock.server.workers.pool import WorkerPool

ADMIN = "admin"
TOKEN_FILE = "token"
"""The file with the token of the commands of the same user on the same machine."""
LOCAL = "local commands"
"""The name of that token."""
SHUTDOWN_SECONDS = 3
SWITCH_SECONDS = 0.001
WORKERS = 2
INHERITED = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "JAVA_HOME", "SPARK_HOME",
    "PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""The variables that runs inherit, beside those of `Settings.environment`."""
WITHHELD = frozenset({"PENSTOCK_TOKEN", "PENSTOCK_SERVER", "PENSTOCK_STORE", "PENSTOCK_KEYS"})
"""The variables of the server and its clients, which are not for the code of pipelines."""


@dataclass(frozen=True)
class Server:
    """A server that supervises. `login_code` is a code of the first login; None later."""

    parts: Parts
    supervisor: Supervisor
    watcher: Watcher
    login_code: str | None


@contextmanager
def open_server(
    settings: Settings, log: Log, workers: WorkerPool | None = None
) -> Iterator[Server]:
    """Opens the store, adopts runs and supervises pipelines during the block.

    `workers` belong to the caller; by default the server has workers of its own. Raises UserError
    without the directory, and StateError if the store cannot be used or has
    another server.
    """
    if not settings.directory.is_dir():
        raise UserError(
            f"the directory {settings.directory} does not exist", code="missing-file",
            hint="Create the directory, or name another one.",
        )  # fmt: skip
    log = EventLog(log)
    with leadership(settings.data):
        create_directory(settings.created)
        create_directory(settings.functions)
        database = Database.open(settings.data, settings.store)
        environment = child_environment(settings, os.environ)
        encryption = Encryption.load(settings.data, os.environ, settings.key_command)
        profiles = Profiles(Connections(database, encryption), settings.directory)
        own = WorkerPool(WORKERS, environment)
        pipelines, accounts = Pipelines(database), Accounts(database)
        directories = [settings.directory, settings.created]
        files, describing = PipelineFiles(directories), WorkerPool(1, environment)
        catalog = Catalog(directories, pipelines, files, workers or describing, profiles)
        hosts = Hosts(settings.share_hosts, settings.host_command, environment, settings.logs)
        launcher = Launcher(settings.command, environment, settings.logs, profiles, hosts)
        alerts = Alerts(database, encryption)
        functions = Functions(settings, StoredFunctions(database), workers or own)
        functions.write_files()
        supervisor = Supervisor(pipelines, catalog, launcher, log, database.lease)
        views = Views(settings, pipelines, catalog, supervisor)
        changes = Changes(settings, pipelines, files, catalog, supervisor, workers or own, profiles)
        history = _open_history(settings, pipelines, supervisor, log)
        sessions = SessionPool(settings.session_command, environment)
        code = _set_up(settings, accounts)
        delivery = Delivery(alerts, settings.url)
        watcher = Watcher(alerts, views, delivery, database.lease, log)
        supervisor.start()
        watcher.start()
        history.start()
        try:
            endpoint = settings.otlp_endpoint
            with exported(endpoint, log, lambda: [states(views.summaries())]) as telemetry:
                parts = Parts(
                    settings, views, changes, accounts, Audit(database), history, log, profiles,
                    ConnectionTests(settings, profiles, workers or own), Requests(database),
                    alerts, delivery, Shares(database), functions, sessions, telemetry,
                )  # fmt: skip
                yield Server(parts, supervisor, watcher, code)
        finally:
            watcher.close()
            sessions.close()
            own.close()
            describing.close()
            supervisor.close()
            history.close()
            database.close()


def serve(settings: Settings, log: Log, on_ready: Callable[[Server], None]) -> None:
    """Serves until SIGINT or SIGTERM. Runs continue.

    `on_ready` is called when the server listens. Raises errors as `open_server`, and Permanent if
    the server cannot listen.
    """
    with open_server(settings, log) as server:
        app = make_application(server.parts)
        http = _HttpServer(
            http_config(app, settings),
            lambda: _begin(server, on_ready),
            app.state.streams.close_all,
        )
        try:
            http.run()
        except SystemExit:
            raise Permanent(
                f"cannot listen on {settings.host}:{settings.port}", code="listen",
                hint="Choose a free port with --port, and an address of this machine.",
            ) from None  # fmt: skip


def _begin(server: Server, on_ready: Callable[[Server], None]) -> None:
    """Limits the time for which other threads delay requests.

    Collections of garbage leave out the objects of the start; one of them all takes 150 ms. A
    thread that computes interrupts each step of a request for at most `SWITCH_SECONDS`.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_SECONDS)
    on_ready(server)


def http_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Returns the configuration of the HTTP server.

    The parser is h11, which limits the size of headers; httptools, which Uvicorn prefers if it is
    installed, does not.
    """
    return uvicorn.Config(
        app, host=settings.host, port=settings.port, log_level="warning", access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS, server_header=False, lifespan="off",
        ssl_certfile=settings.certificate, ssl_keyfile=settings.key, ws="none", http="h11",
    )  # fmt: skip


def child_environment(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of runs and workers: the variables that are permitted.

    Raises UserError for a permitted variable that is not set.
    """
    for name in settings.environment:
        if name not in environment:
            raise UserError(
                f"the variable {name} of --env is not set", code="unset-variable",
                hint=f"Set {name} before the start of the server, or remove the option.",
            )  # fmt: skip
    names = (*INHERITED, *settings.environment)
    found = {name: environment[name] for name in names if name in environment}
    own = {
        name: text
        for name, text in environment.items()
        if name.startswith("PENSTOCK_") and name not in WITHHELD
    }
    server = {
        SERVER_FUNCTIONS: str(settings.functions),
        PERMITTED_PATHS: setting_of(settings.permitted_paths, [settings.data]),
    }
    if not settings.python:
        server[NO_PYTHON] = "1"
    return {**own, **found, **server, **variables(settings.otlp_endpoint)}


def _open_history(
    settings: Settings, pipelines: Pipelines, supervisor: Supervisor, log: Log
) -> History:
    """Opens the history of metrics. Raises StateError if its file cannot be opened."""
    try:
        return History(
            settings.data, supervisor.snapshots, lambda: [each.id for each in pipelines.all()], log
        )
    except sqlite3.Error as error:
        raise StateError(
            "the history of metrics cannot be opened", code="store-not-opened", detail=str(error),
            hint="Correct the rights of the directory of --data.",
        ) from error  # fmt: skip


def _set_up(settings: Settings, accounts: Accounts) -> str | None:
    """Creates the first user and the token of local commands. Returns a code of the first login.

    A server that was killed before it wrote the token leaves that to the next one.
    """
    token, users = settings.data / TOKEN_FILE, accounts.users()
    if users and (token.exists() or users[0]["has_password"] or len(users) > 1):
        return None
    if not users:
        accounts.add_user(ADMIN, RIGHTS)
    for earlier in accounts.tokens(ADMIN):
        if earlier["name"] == LOCAL:
            accounts.remove_token(ADMIN, earlier["id"])
    replace_durably(token, accounts.issue(ADMIN, "token", LOCAL))
    token.chmod(0o600)
    return accounts.issue(ADMIN, "code")


class _HttpServer(uvicorn.Server):
    """Uvicorn, with calls at the start and before the end."""

    def __init__(
        self, config: uvicorn.Config, on_ready: Callable[[], None], on_end: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_ready, self._on_end = on_ready, on_end

    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: object = None) -> None:
        self._on_end()
        await super().shutdown(sockets)  # type: ignore[arg-type]
