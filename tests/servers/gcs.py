"""Google Cloud Storage by fake-gcs-server, with a service account."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from servers.go import build
from servers.http_objects import HttpBucket, ObjectServer, new_name
from servers.install import installed

VERSION = "1.56.1"
_PROGRAM = Path(__file__).with_name("gcs.go")
_MODULE = f"module gcs\n\ngo 1.26\n\nrequire github.com/fsouza/fake-gcs-server v{VERSION}\n"
_BUILD = sha256(_PROGRAM.read_bytes() + _MODULE.encode()).hexdigest()[:12]
"""The digest of the program, which is built once per machine and content."""
ACCOUNT = "tests@made-up.iam.gserviceaccount.com"


class Gcs(ObjectServer):
    """The server, for the service account of `account_file`. It keeps nothing."""

    name = "gcs"
    title = f"Google Cloud Storage by fake-gcs-server {VERSION}"

    def __init__(self, port: int | None = None) -> None:
        self._program = installed(f"gcs-{VERSION}-{_BUILD}", _install) / "gcs"
        super().__init__(port)
        self.account_file = self.write_account("account", self._key)

    def command(self) -> Sequence[str]:
        """With the public key of the service account."""
        public = self.directory.path / "public.pem"
        public.write_bytes(
            self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        return [str(self._program), f"127.0.0.1:{self.port}", str(public)]

    def ready(self) -> None:
        """Asks for the buckets."""
        self.ask_json("GET", "/storage/v1/b?project=tests")

    @property
    def storage(self) -> dict[str, Any]:
        return self._storage(self.gate.port)

    @property
    def wrong_auth(self) -> dict[str, Any]:
        return {"service_account": self.write_account("other")}

    @property
    def direct(self) -> dict[str, Any]:
        return self._storage(self.port)

    @property
    def secret(self) -> str:
        return str(json.loads(Path(self.account_file).read_text())["private_key"][60:90])

    def new_bucket(self) -> GcsBucket:
        name = new_name()
        self.ask_json("POST", "/storage/v1/b?project=tests", json.dumps({"name": name}).encode())
        return GcsBucket(self, name, f"gs://{name}")

    def ask_json(self, method: str, path: str, content: bytes | None = None) -> bytes:
        """Sends a request of the JSON API."""
        return self.ask(method, path, content, {"Authorization": f"Bearer {self._token}"})

    def write_account(self, name: str, key: RSAPrivateKey | None = None) -> str:
        """Returns the file of a service account, without a key of one that the server rejects."""
        key = key or generate_private_key(65537, 2048)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        account = {
            "type": "service_account", "client_email": ACCOUNT, "private_key_id": "made-up",
            "private_key": text,
        }  # fmt: skip
        path = self.directory.path / f"{name}.json"
        path.write_text(json.dumps(account))
        return str(path)

    def _storage(self, port: int) -> dict[str, Any]:
        auth = {"service_account": self.account_file}
        return {"endpoint_url": f"http://127.0.0.1:{port}", "auth": auth}

    @cached_property
    def _key(self) -> RSAPrivateKey:
        return generate_private_key(65537, 2048)

    @cached_property
    def _token(self) -> str:
        parts = ({"alg": "RS256", "typ": "JWT"}, {"iss": ACCOUNT, "exp": int(time.time()) + 3600})
        signed = b".".join(_encode(json.dumps(part).encode()) for part in parts)
        signature = self._key.sign(signed, PKCS1v15(), hashes.SHA256())
        return b".".join((signed, _encode(signature))).decode()


class GcsBucket(HttpBucket):
    """A bucket, by the JSON API."""

    server: Gcs

    def put(self, key: str, content: bytes) -> None:
        query = urlencode({"uploadType": "media", "name": key})
        self.server.ask_json("POST", f"/upload/storage/v1/b/{self.name}/o?{query}", content)

    def get(self, key: str) -> bytes:
        path = f"/storage/v1/b/{self.name}/o/{quote(key, safe='')}?alt=media"
        return self.server.ask_json("GET", path)

    def keys(self, prefix: str) -> list[str]:
        query = urlencode({"prefix": prefix, "maxResults": 100_000})
        found = json.loads(self.server.ask_json("GET", f"/storage/v1/b/{self.name}/o?{query}"))
        return [each["name"] for each in found.get("items", ())]


def _encode(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def _install(part: Path) -> None:
    """Builds the program."""
    source = part / "source"
    source.mkdir()
    (source / "go.mod").write_text(_MODULE)
    shutil.copy(_PROGRAM, source / "main.go")
    build(source, part, ".")


@pytest.fixture(scope="session")
def gcs() -> Iterator[Gcs]:
    """One server for all tests that ask for it; each has buckets of its own."""
    with Gcs() as server:
        yield server
