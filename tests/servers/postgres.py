"""PostgreSQL, a database."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from servers.install import program, unavailable
from servers.server import Server

USER, PASSWORD = "made-up-user", "made-up-password"
DATABASE = "made-up shop"
ROOT = "postgres"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}


class Postgres(Server):
    """The server, with a database that belongs to a user who may replicate."""

    name = "postgres"
    title = "PostgreSQL 15 (Debian 12)"
    settings: Mapping[str, str] = {}

    def __init__(
        self, port: int | None = None, user: str = USER, password: str = PASSWORD,
        database: str = DATABASE,
    ) -> None:  # fmt: skip
        super().__init__(port)
        self.user, self.password, self.database = user, password, database

    def command(self) -> Sequence[str]:
        """Creates the cluster at the first start."""
        directory = self.programs()
        data = self.directory.path / "data"
        if not data.exists():
            shutil.chown(self.directory.path, *owner())
            secret = self.directory.path / "password"
            secret.write_text(self.password)
            run_as_user(
                f"{directory}/initdb", "-D", str(data), "-U", ROOT, "-A", "scram-sha-256",
                f"--pwfile={secret}", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8",
            )  # fmt: skip
        (data / "postmaster.pid").unlink(missing_ok=True)
        settings = {**_SETTINGS, **self.settings, "port": str(self.port)}
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [*_as_user(), f"{directory}/postgres", "-D", str(data), *options]

    def programs(self) -> Path:
        """The directory of its programs."""
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not found:
            program("pg_ctlcluster", "postgresql-15")
            found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not found:
            unavailable("PostgreSQL is not installed", "install it: sudo apt install postgresql-15")
        return found[-1].parent

    def ready(self) -> None:
        """Connects, and creates the user and the database at the first start."""
        with self.client(ROOT, "postgres") as client:
            if client.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (self.user,)).fetchone():
                return
            role = f'CREATE ROLE "{self.user}" LOGIN REPLICATION'
            client.execute(f"{role} PASSWORD '{self.password}'")
            client.execute(f'CREATE DATABASE "{self.database}" OWNER "{self.user}"')

    def stop(self) -> None:
        """Ends it and the connections of its clients."""
        os.kill(self.process.pid, signal.SIGINT)
        super().stop()

    def kill(self) -> None:
        """Ends the server and its backends, each of which leads a session."""
        self._signal(signal.SIGKILL)
        super().kill()

    def pause(self) -> None:
        """From now on backends do not answer."""
        self._signal(signal.SIGSTOP)
        super().pause()

    def resume(self) -> None:
        """Lets the server and its backends go on."""
        super().resume()
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(psutil.NoSuchProcess):
            for backend in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    backend.send_signal(number)

    @property
    def login(self) -> dict[str, Any]:
        """The options of a connection with short timeouts."""
        return {
            "url": f"postgresql://127.0.0.1:{self.port}/{quote(self.database)}",
            "auth": {"username": self.user, "password": self.password},
            "timeout": "20s",
        }

    def client(self, user: str | None = None, database: str | None = None, **options: Any) -> Any:
        """A client of the tests' own, which commits each statement."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user or self.user, password=self.password,
            dbname=database or self.database, autocommit=True, connect_timeout=20, **options,
        )  # fmt: skip

    def new_schema(self) -> str:
        """Creates a schema, of which tables need no cleaning. Returns its name."""
        name = f"made_up_{uuid.uuid4().hex[:12]}"
        with self.client() as client:
            client.execute(f"CREATE SCHEMA {name}")
        return name


def owner() -> tuple[int, int]:
    """The user of the server, which does not run as root."""
    user = pwd.getpwnam(ROOT) if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    return user.pw_uid, user.pw_gid


def _as_user() -> list[str]:
    user, group = owner()
    if os.getuid():
        return []
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]


def run_as_user(*command: str) -> None:
    """Runs a program as the user of the server."""
    subprocess.run([*_as_user(), *command], check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests that ask for it."""
    with Postgres() as server:
        yield server
