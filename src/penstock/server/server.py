"""The server: its parts, their start and their end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from penstock.core.errors import Permanent, UserError
from penstock.core.files.durable import replace_durably
from penstock.core.files.private_files import create_directory
from penstock.core.log import Log
from penstock.server.api.application import make_application
from penstock.server.catalog import Catalog
from penstock.server.changes import Changes
from penstock.server.live.session_pool import SessionPool
from penstock.server.parts import Parts
from penstock.server.pipeline_files import PipelineFiles
from penstock.server.settings import Settings
from penstock.server.store.accounts import RIGHTS, Accounts
from penstock.server.store.audit import Audit
from penstock.server.store.database import Database, leadership
from penstock.server.store.pipelines import Pipelines
from penstock.server.supervision.run_process import Launcher
from penstock.server.supervision.supervisor import Supervisor
from penstock.server.views import Views
from penstock.server.workers.pool import WorkerPool

ADMIN = "admin"
TOKEN_FILE = "token"
"""The file with the token of the commands of the same user on the same machine."""
SHUTDOWN_SECONDS = 3
WORKERS = 2
INHERITED = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "JAVA_HOME", "SPARK_HOME",
    "PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""The variables that runs inherit, beside those of `Settings.environment`."""
WITHHELD = frozenset({"PENSTOCK_TOKEN", "PENSTOCK_SERVER"})
"""The variables of clients of the server, which are not for the code of pipelines."""


@dataclass(frozen=True)
class Server:
    """A server that supervises. `login_code` is a code of the first login; None later."""

    parts: Parts
    supervisor: Supervisor
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
    with leadership(settings.data):
        create_directory(settings.created)
        database = Database.open(settings.data, settings.store)
        environment = child_environment(settings, os.environ)
        own = WorkerPool(WORKERS, environment)
        pipelines, accounts = Pipelines(database), Accounts(database)
        directories = [settings.directory, settings.created]
        files, describing = PipelineFiles(directories), WorkerPool(1, environment)
        catalog = Catalog(directories, pipelines, files, workers or describing)
        launcher = Launcher(settings.command, environment, settings.logs)
        supervisor = Supervisor(pipelines, catalog, launcher, log)
        views = Views(settings, pipelines, files, catalog, supervisor)
        changes = Changes(settings, pipelines, files, catalog, supervisor, workers or own)
        sessions = SessionPool(settings.session_command, environment)
        code = _set_up(settings, accounts)
        supervisor.start()
        try:
            parts = Parts(settings, views, changes, accounts, Audit(database), log, sessions)
            yield Server(parts, supervisor, code)
        finally:
            sessions.close()
            own.close()
            describing.close()
            supervisor.close()
            database.close()


def serve(settings: Settings, log: Log, on_ready: Callable[[Server], None]) -> None:
    """Serves until SIGINT or SIGTERM. Runs continue.

    `on_ready` is called when the server listens. Raises errors as `open_server`, and Permanent if
    the server cannot listen.
    """
    with open_server(settings, log) as server:
        app = make_application(server.parts)
        config = uvicorn.Config(
            app, host=settings.host, port=settings.port, log_level="warning", access_log=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS, server_header=False, lifespan="off",
            ssl_certfile=settings.certificate, ssl_keyfile=settings.key, ws="none",
        )  # fmt: skip
        http = _HttpServer(config, lambda: on_ready(server), app.state.streams.close_all)
        try:
            http.run()
        except SystemExit:
            raise Permanent(
                f"cannot listen on {settings.host}:{settings.port}", code="listen",
                hint="Choose a free port with --port, and an address of this machine.",
            ) from None  # fmt: skip


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
    return {**own, **found}


def _set_up(settings: Settings, accounts: Accounts) -> str | None:
    """Creates the first user and the token of local commands. Returns a code of the first login."""
    token = settings.data / TOKEN_FILE
    if accounts.users():
        return None
    accounts.add_user(ADMIN, RIGHTS)
    replace_durably(token, accounts.issue(ADMIN, "token", "local commands"))
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
