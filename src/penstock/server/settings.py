"""Settings of a server."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_PORT = 7077


@dataclass(frozen=True)
class Settings:
    """Settings of `penstock serve`.

    `directory` has pipeline files. `data` has the store, keys, logs of runs, and the files of
    pipelines that the API creates. `environment` names the variables of the server's environment
    that runs inherit. `python` is whether pipelines may contain Python code. `hosts` are further
    names of the server in the header Host. `otlp_endpoint` is the base URL to which the server and
    its runs export their telemetry. `key_command` prints the keys of secrets. `networks`
    are those that tests of connections may reach although they are special. `paths` are further
    directories of files that pipelines may name. `command` is the
    beginning of the command line of runs, `session_command` the command line of workers with a
    Spark session, `host_command` that of hosts of shares.
    """

    directory: Path
    data: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    store: str | None = None
    environment: tuple[str, ...] = ()
    python: bool = True
    hosts: frozenset[str] = field(default_factory=frozenset)
    certificate: Path | None = None
    key: Path | None = None
    otlp_endpoint: str | None = None
    key_command: str | None = None
    networks: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    command: tuple[str, ...] = (sys.executable, "-m", "penstock")
    session_command: tuple[str, ...] = (sys.executable, "-m", "penstock.server.live.session_worker")
    host_command: tuple[str, ...] = (sys.executable, "-m", "penstock.cli.share_host")

    @property
    def created(self) -> Path:
        """The directory of the pipelines that the API creates."""
        return self.data / "pipelines"

    def is_deletable(self, file: Path) -> bool:
        """Returns whether the API may delete a pipeline: it created the file, or there is none."""
        return file.is_relative_to(self.created) or not os.path.lexists(file)

    @property
    def permitted_paths(self) -> tuple[Path, ...]:
        """The directories of the files that pipelines may name, without the data of the server."""
        return self.directory, self.created, *self.paths

    @property
    def functions(self) -> Path:
        """The directory of the functions that all pipelines can call."""
        return self.data / "functions"

    @property
    def logs(self) -> Path:
        """The directory of the logs of runs, one directory for each pipeline."""
        return self.data / "logs"

    @property
    def share_hosts(self) -> Path:
        """The directory of the hosts of shares."""
        return self.data / "share-hosts"

    @property
    def url(self) -> str:
        """The address of the server, for a browser on the same machine."""
        scheme = "https" if self.certificate else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"
