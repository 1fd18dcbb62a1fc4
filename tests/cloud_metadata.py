"""The services of AWS, Azure and Google Cloud by which a machine or a pod has an identity."""

from __future__ import annotations

import datetime as dt
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock.sdk.network import identity
from servers.certificates import Authority

ACCESS_KEY, SECRET_KEY, SESSION = "MADEUPKEY", "made-up/secret", "made-up-session"
AZURE_PATHS = ("/metadata/identity/oauth2/token", "/app-service")
AZURE_RESOURCES = ("https://ossrdbms-aad.database.windows.net", "https://storage.azure.com")
GOOGLE_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
GOOGLE_IDENTITY_PATH = "/computeMetadata/v1/instance/service-accounts/default/identity"
TENANT, ASSERTION = "made-up-tenant", "made-up-assertion"
EXCHANGE = {
    "grant_type": "client_credentials",
    "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    "client_assertion": ASSERTION,
}
OBJECTS = "/bucket"


class Metadata(ThreadingHTTPServer):
    """The services. `status` is that of the responses, and `seconds` the life of tokens.

    Other paths are objects, of which `authorizations` has the credentials of the requests. With a
    certificate the services have TLS.
    """

    daemon_threads = True

    def __init__(self, certificate: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"
        self.status, self.seconds, self.count = 200, 3600, 0
        self.requests: list[str] = []
        self.authorizations: list[str] = []

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def exchange(self, path: str, form: dict[str, str]) -> dict[str, Any] | None:
        """Returns the token of Microsoft Entra for that of a service account; None for others."""
        self.count += 1
        known = {f"{resource}/.default" for resource in AZURE_RESOURCES}
        is_valid = (
            path == f"/{TENANT}/oauth2/v2.0/token"
            and form.pop("scope", None) in known
            and form.items() >= EXCHANGE.items()
        )
        if not is_valid:
            return None
        token = f"made-up-token-{self.count}-{form.get('client_id')}"
        return {"access_token": token, "expires_in": self.seconds, "token_type": "Bearer"}

    def answer(self, path: str, headers: Any) -> dict[str, Any] | None:
        """Returns the content of a response; None for a request of another protocol."""
        parts = urlsplit(path)
        query = {name: value for name, (value,) in parse_qs(parts.query).items()}
        self.count += 1
        token = f"made-up-token-{self.count}"
        if parts.path in AZURE_PATHS:
            mark = (
                ("Metadata", "true") if parts.path == AZURE_PATHS[0] else ("X-IDENTITY-HEADER", "h")
            )
            known = query.get("resource") in AZURE_RESOURCES
            if headers.get(mark[0]) != mark[1] or not known or "api-version" not in query:
                return None
            client = query.get("client_id", "system")
            expires = str(int(time.time()) + self.seconds)
            return {"access_token": f"{token}-{client}", "expires_on": expires}
        if parts.path == GOOGLE_PATH and headers.get("Metadata-Flavor") == "Google":
            return {"access_token": token, "expires_in": self.seconds, "token_type": "Bearer"}
        if parts.path == GOOGLE_IDENTITY_PATH and headers.get("Metadata-Flavor") == "Google":
            return {"text": f"{token}-{query['audience']}"}
        if parts.path == "/aws":
            expires_at = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
            return {
                "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Token": SESSION,
                "Expiration": f"{expires_at:%Y-%m-%dT%H:%M:%SZ}",
            }  # fmt: skip
        return None


class Handler(BaseHTTPRequestHandler):
    server: Metadata

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        if self.path.startswith(OBJECTS):
            self.server.authorizations.append(self.headers.get("Authorization", ""))
            return self._send(200, b"made-up content")
        found = self.server.answer(self.path, self.headers)
        return self._answer(found)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.server.requests.append(self.path)
        content = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: value for name, (value,) in parse_qs(content).items()}
        self._answer(self.server.exchange(self.path, form))

    def _answer(self, found: dict[str, Any] | None) -> None:
        content = json.dumps(found or {"error": "made-up reason"})
        text = (found or {}).get("text", content)
        self._send(400 if found is None else self.server.status, text.encode())

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        self.send_header("ETag", '"made-up"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def served(certificate: Path | None = None) -> Iterator[Metadata]:
    """Yields running services."""
    with Metadata(certificate) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    with served() as server:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION",
                     "IDENTITY_ENDPOINT", "AZURE_FEDERATED_TOKEN_FILE"):  # fmt: skip
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.url}/aws")
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", server.url)
        monkeypatch.setenv("GCE_METADATA_HOST", server.url.removeprefix("http://"))
        monkeypatch.setattr(identity, "_tokens", {})
        yield server


@pytest.fixture
def entra(
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Metadata]:
    """Yields Microsoft Entra for this process as a pod of AKS, with TLS."""
    authority, token_file = Authority(tmp_path), tmp_path / "token"
    token_file.write_text(f"{ASSERTION}\n")
    with served(authority.issue("entra")) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.root))
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", f"{server.url}/")
        monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(token_file))
        monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
        monkeypatch.setenv("AZURE_CLIENT_ID", "of-pod")
        yield server
        assert not metadata.requests
