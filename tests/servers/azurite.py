"""Blobs of Azure by Azurite, which checks signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import pytest

from servers.http_objects import HttpBucket, ObjectServer, new_name
from servers.install import installed, program, run

VERSION = "3.35.0"
ACCOUNT = "madeup"
_API = "2021-12-02"


class Azurite(ObjectServer):
    """The server, with one account. It keeps nothing."""

    name = "azurite"
    title = f"Blobs of Azure by Azurite {VERSION}"

    def __init__(self, port: int | None = None) -> None:
        home = installed(f"azurite-{VERSION}", _install)
        self._program = home / "node_modules/azurite/dist/src/blob/main.js"
        self.account_key = base64.b64encode(os.urandom(64)).decode()
        super().__init__(port)

    def command(self) -> Sequence[str]:
        """Only blobs, in memory."""
        return [
            program("node", "nodejs"), str(self._program), "--blobHost", "127.0.0.1", "--blobPort",
            str(self.port), "--inMemoryPersistence",
            "--silent", "--skipApiVersionCheck", "--disableTelemetry",
        ]  # fmt: skip

    def environment(self) -> Mapping[str, str]:
        """The account and its key."""
        return {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{self.account_key}"}

    def ready(self) -> None:
        """Asks for the containers."""
        self.ask_signed("GET", "", {"comp": "list"})

    @property
    def storage(self) -> dict[str, Any]:
        return self._storage(self.gate.port)

    @property
    def wrong_auth(self) -> dict[str, Any]:
        return {"account_key": base64.b64encode(b"other" * 10).decode()}

    @property
    def direct(self) -> dict[str, Any]:
        return self._storage(self.port)

    @property
    def secret(self) -> str:
        return self.account_key

    def new_bucket(self) -> Container:
        name = new_name()
        self.ask_signed("PUT", f"/{name}", {"restype": "container"})
        return Container(self, name, f"abfss://{name}@{ACCOUNT}.dfs.core.windows.net")

    def ask_signed(
        self, method: str, path: str, query: Mapping[str, str], content: bytes = b""
    ) -> bytes:
        """Sends a request with a shared access signature."""
        headers = {"x-ms-version": _API, "x-ms-blob-type": "BlockBlob"}
        url = f"/{ACCOUNT}{path}?{urlencode(query)}&{self.sas_token}"
        return self.ask(method, url, content, headers)

    @cached_property
    def sas_token(self) -> str:
        """A shared access signature of the account, for all requests."""
        return self.signed("rwdlacup")

    def signed(self, permissions: str) -> str:
        """Returns a shared access signature of the account for some permissions."""
        end = (datetime.now(UTC) + timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
        parts = [ACCOUNT, permissions, "b", "sco", "", end, "", "", _API, "", ""]
        key = base64.b64decode(self.account_key)
        digest = hmac.digest(key, "\n".join(parts).encode(), hashlib.sha256)
        signature = base64.b64encode(digest).decode()
        return urlencode(
            {"sv": _API, "ss": "b", "srt": "sco", "sp": permissions, "se": end, "sig": signature}
        )

    def _storage(self, port: int) -> dict[str, Any]:
        auth = {"account_key": self.account_key}
        return {"endpoint_url": f"http://127.0.0.1:{port}/{ACCOUNT}", "auth": auth}


class Container(HttpBucket):
    """A container, by requests with a shared access signature."""

    server: Azurite

    def put(self, key: str, content: bytes) -> None:
        self.server.ask_signed("PUT", f"/{self.name}/{quote(key)}", {}, content)

    def get(self, key: str) -> bytes:
        return self.server.ask_signed("GET", f"/{self.name}/{quote(key)}", {})

    def keys(self, prefix: str) -> list[str]:
        query = {"restype": "container", "comp": "list", "prefix": prefix}
        found = ElementTree.fromstring(self.server.ask_signed("GET", f"/{self.name}", query))
        return [each.text or "" for each in found.iterfind("Blobs/Blob/Name")]


def _install(part: Path) -> None:
    npm = program("npm", "npm")
    options = ("--loglevel=error", "--no-audit", "--no-fund")
    run(npm, "install", *options, f"azurite@{VERSION}", cwd=part)


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """One server for all tests that ask for it; each has containers of its own."""
    with Azurite() as server:
        yield server
