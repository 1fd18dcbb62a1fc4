"""FerretDB: the protocol of MongoDB on SQLite."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from servers.go import build, fetch_module
from servers.install import installed
from servers.server import Server

VERSION = "1.24.2"
USER, PASSWORD, DATABASE = "made-up-user", "made-up-password", "shop"
_MODULE = "github.com/FerretDB/FerretDB"


class FerretDb(Server):
    """The server at `url`, for USER with PASSWORD. With a certificate it requires TLS.

    It has no change streams, no transactions, no validation of documents, no Decimal128 and no NaN.
    """

    name = "ferretdb"
    title = f"FerretDB {VERSION} on SQLite, in place of MongoDB"

    def __init__(self, port: int | None = None, certificate: Path | None = None) -> None:
        self._program = installed(f"ferretdb-{VERSION}", _install) / "ferretdb"
        self._certificate = certificate
        super().__init__(port)

    def command(self) -> Sequence[str]:
        """With all data in its directory."""
        data, address = self.directory.path, f"127.0.0.1:{self.port}"
        listen = [f"--listen-addr={address}"]
        if self._certificate is not None:
            files = (f"--listen-tls-{kind}-file={self._certificate}" for kind in ("cert", "key"))
            listen = ["--listen-addr=", f"--listen-tls={address}", *files]
        return [
            str(self._program), "--handler=sqlite", f"--sqlite-url=file:{data}/", *listen,
            f"--state-dir={data}", "--debug-addr=-", "--telemetry=disable", "--log-level=warn",
            "--test-enable-new-auth", "--setup-database=admin", f"--setup-username={USER}",
            f"--setup-password={PASSWORD}",
        ]  # fmt: skip

    def ready(self) -> None:
        """Asks for the collections."""
        with closing(self.client(5)) as client:
            client[DATABASE].list_collection_names()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"mongodb://127.0.0.1:{self.port}/{DATABASE}"

    @property
    def login(self) -> dict[str, Any]:
        """The options that reach it."""
        return {"url": self.url, "auth": {"username": USER, "password": PASSWORD}}

    def new_collection(self) -> str:
        """Returns an unused name."""
        return f"c{uuid.uuid4().hex[:12]}"

    def client(self, seconds: float = 30) -> Any:
        """Returns a client of the tests' own."""
        import pymongo

        more = {} if self._certificate is None else {"tls": True, "tlsInsecure": True}
        return pymongo.MongoClient(
            "127.0.0.1", self.port, username=USER, password=PASSWORD, tz_aware=True,
            uuidRepresentation="standard", serverSelectionTimeoutMS=round(seconds * 1000), **more,
        )  # fmt: skip

    def insert(self, collection: str, *documents: Any) -> None:
        """Inserts documents."""
        with closing(self.client()) as client:
            client[DATABASE][collection].insert_many(documents)

    def documents(self, collection: str) -> list[dict[str, Any]]:
        """Returns the documents in the order of their `_id`."""
        with closing(self.client()) as client:
            return list(client[DATABASE][collection].find().sort("_id", 1))


def _install(part: Path) -> None:
    """Builds the program. The module has an empty version file, with which it does not start."""
    source = fetch_module(_MODULE, f"v{VERSION}", part)
    (source / "build" / "version" / "version.txt").write_text(f"v{VERSION}\n")
    build(source, part, "-tags=ferretdb_no_postgresql", "./cmd/ferretdb")


@pytest.fixture(scope="session")
def ferretdb() -> Iterator[FerretDb]:
    """One server for all tests that ask for it; each has collections of its own."""
    with FerretDb() as server:
        yield server
