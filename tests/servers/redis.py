"""Redis: a server for users with rights, and a cluster of such servers."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from servers.install import program
from servers.server import Server, free_port

USER, PASSWORD = "made-up-user", "made-up-password"
_SETTINGS = """
bind 127.0.0.1
port {port}
dir {data}
save ""
appendonly yes
appendfsync always
proto-max-bulk-len 64mb
user default off
user {user} on >{password} allkeys allchannels +@all
user reader on >{password} ~* resetchannels +@read +ping
"""
_TLS = """
tls-port {port}
tls-cert-file {certificate}
tls-key-file {certificate}
tls-ca-cert-file {root}
tls-auth-clients optional
"""


class Redis(Server):
    """The server at `url`, for USER with PASSWORD; its data survive a kill.

    The user `reader` may only read keys. With a certificate and the file of those that are
    trusted it also listens at `tls_port`.
    """

    name = "redis"
    title = "Redis 7.0 (Debian 12)"
    more = ""

    def __init__(
        self, port: int | None = None, certificate: Path | None = None, root: Path | None = None
    ) -> None:
        super().__init__(port)
        self._certificate, self._root = certificate, root
        self.tls_port = free_port()

    def command(self) -> Sequence[str]:
        """With its settings and users."""
        data = self.directory.path
        text = _SETTINGS.format(port=self.port, data=data, user=USER, password=PASSWORD) + self.more
        if self._certificate is not None:
            text += _TLS.format(port=self.tls_port, certificate=self._certificate, root=self._root)
        settings = data / "redis.conf"
        settings.write_text(text)
        return [program("redis-server", "redis-server"), str(settings)]

    def ready(self) -> None:
        """Asks for a key as the user."""
        with self.client() as client:
            client.get("nothing")

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def login(self) -> dict[str, Any]:
        """The options of a connection with short timeouts."""
        auth = {"username": USER, "password": PASSWORD}
        return {"url": self.url, "auth": auth, "timeout": "3s"}

    def client(self) -> Any:
        """A client of the tests' own."""
        import redis

        return redis.Redis(port=self.port, username=USER, password=PASSWORD, socket_timeout=30)

    def new_key(self) -> str:
        """Returns an unused key."""
        return f"made-up:{uuid.uuid4().hex[:12]}"


class ClusterServer(Redis):
    """One server of a cluster; `address` is what the others know it by."""

    name = "redis-cluster"

    def __init__(self) -> None:
        super().__init__()
        bus = free_port()
        self.address = f"127.0.0.1:{self.port}@{bus}"
        self.more = f"cluster-enabled yes\ncluster-port {bus}\n"

    def ready(self) -> None:
        """Only asks whether it is there: alone it has no keys."""
        with self.client() as client:
            client.ping()

    @property
    def complete(self) -> bool:
        """Whether it knows of a server for each key."""
        with self.client() as client:
            return client.execute_command("CLUSTER INFO")["cluster_state"] == "ok"


class Cluster:
    """Three servers that share the keys; `url` is that of the first."""

    def __init__(self) -> None:
        self.servers = [ClusterServer() for _ in range(3)]

    def __enter__(self) -> Cluster:
        try:
            for server in self.servers:
                server.start()
            addresses = [server.address for server in self.servers]
            login = ["--user", USER, "--pass", PASSWORD, "--no-auth-warning"]
            subprocess.run(
                [program("redis-cli", "redis-tools"), *login, "--cluster", "create", *addresses,
                 "--cluster-yes"], check=True, capture_output=True, timeout=60,
            )  # fmt: skip
            until = time.monotonic() + 30
            while not all(server.complete for server in self.servers):
                assert time.monotonic() < until, "the servers do not agree"
                time.sleep(0.05)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.close()

    @property
    def login(self) -> dict[str, Any]:
        """The options of a connection with short timeouts."""
        return {**self.servers[0].login, "cluster": True}

    def client(self) -> Any:
        """A client of the tests' own."""
        import redis

        first = self.servers[0]
        return redis.RedisCluster("127.0.0.1", first.port, username=USER, password=PASSWORD)


@pytest.fixture(scope="session")
def redis() -> Iterator[Redis]:
    """One server for all tests that ask for it."""
    with Redis() as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[Cluster]:
    """One cluster for all tests that ask for it."""
    with Cluster() as cluster:
        yield cluster
