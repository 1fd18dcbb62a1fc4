"""MySQL from a package of Debian, with libraries of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from servers.certificates import Authority
from servers.install import installed, program, run
from servers.mariadb import MariaDb

_SUITE, _PACKAGE = "sid", "mysql-server-core"
_LIBRARIES = Path("usr", "lib", "x86_64-linux-gnu")
_PARTS = (_LIBRARIES, Path("usr", "lib", "mysql"), Path("usr", "share", "mysql"),
          Path("usr", "sbin"))  # fmt: skip
_SETTINGS = {
    "innodb-use-native-aio": "0",
    "bind-address": "127.0.0.1",
    "log-bin": "bin",
    "binlog-row-metadata": "FULL",
    "server-id": "1",
    "gtid-mode": "ON",
    "enforce-gtid-consistency": "ON",
    "innodb-flush-log-at-trx-commit": "2",
    "innodb-buffer-pool-size": "32M",
    "innodb-redo-log-capacity": "16M",
    "performance-schema": "OFF",
    "mysqlx": "OFF",
    "secure-file-priv": "",
}
_APT = """\
Dir::State "{home}";
Dir::State::status "{home}/status";
Dir::Cache "{home}";
Dir::Etc::sourcelist "{home}/sources.list";
Dir::Etc::sourceparts "-";
Acquire::Languages "none";
Debug::NoLocking "1";
"""


class MySql(MariaDb):
    """The server, whose programs are in its directory, since its user may not read the cache."""

    name = "mysql"
    title = "MySQL 9 (Debian sid)"
    settings: Mapping[str, str] = {}

    def command(self) -> Sequence[str]:
        """Creates the data directory at the first start."""
        home, data = self.directory.path / "programs", self.directory.path / "data"
        user = "nobody" if os.getuid() == 0 else str(os.getuid())
        if not data.exists():
            package = installed("mysql-server-core", _install)
            for part in _PARTS:
                shutil.copytree(package / part, home / part, symlinks=True)
            shutil.chown(self.directory.path, user)
            self._certificate = Authority(self.directory.path).issue("server")
            shutil.chown(self._certificate, user)
            subprocess.run(
                [*_start(home), "--initialize-insecure", f"--user={user}", f"--datadir={data}",
                 "--innodb-use-native-aio=0"],
                check=True, capture_output=True, timeout=120,
            )  # fmt: skip
        settings = {
            **_SETTINGS, **self.settings, "port": str(self.port), "datadir": str(data),
            "socket": str(self.directory.path / "socket"), "user": user,
            "ssl-cert": str(self._certificate), "ssl-key": str(self._certificate),
        }  # fmt: skip
        return [*_start(home), *(f"--{name}={value}" for name, value in settings.items())]


def _start(home: Path) -> list[str]:
    """The command that starts the program with its own libraries."""
    libraries = home / _LIBRARIES
    private = home / "usr/lib/mysql/private"
    return [
        str(libraries / "ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{private}",
        str(home / "usr/sbin/mysqld"), "--no-defaults", f"--basedir={home}/usr",
        f"--lc-messages-dir={home}/usr/share/mysql", f"--plugin-dir={home}/usr/lib/mysql/plugin",
        f"--character-sets-dir={home}/usr/share/mysql/charsets",
    ]  # fmt: skip


def _install(part: Path) -> None:
    """Unpacks the package and all that it needs, from the mirror of the system."""
    targets = subprocess.run(
        [program("apt-get", "apt"), "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    site = next(line for line in targets.stdout.splitlines() if line.endswith("/debian"))
    home = part / "apt"
    for name in ("lists/partial", "archives/partial"):
        (home / name).mkdir(parents=True)
    (home / "status").touch()
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (home / "sources.list").write_text(f"deb [signed-by={keyring}] {site} {_SUITE} main\n")
    (home / "apt.conf").write_text(_APT.format(home=home))
    apt = ("env", f"APT_CONFIG={home / 'apt.conf'}", "apt-get", "-qy")
    run(*apt, "update")
    run(*apt, "--download-only", "--no-install-recommends", "install", _PACKAGE)
    for package in (home / "archives").glob("*.deb"):
        run("dpkg-deb", "-x", str(package), str(part))
    shutil.rmtree(home)
