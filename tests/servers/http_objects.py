"""Buckets of servers other than S3, by plain requests."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any
from urllib.request import Request, urlopen

from servers.gate import Gate
from servers.server import Server


class ObjectServer(Server):
    """A server of objects. `gate` is the way that the code under test takes."""

    def start(self) -> None:
        """Starts it."""
        super().start()
        self.gate = Gate(self.port)

    def close(self) -> None:
        """Ends it, with the gate."""
        if gate := getattr(self, "gate", None):
            gate.stop()
        super().close()

    @property
    @abstractmethod
    def storage(self) -> dict[str, Any]:
        """The option `storage` that reaches it."""

    @property
    @abstractmethod
    def secret(self) -> str:
        """A text that no message may have."""

    @property
    @abstractmethod
    def wrong_auth(self) -> dict[str, Any]:
        """The option `auth` with credentials that it rejects."""

    @property
    @abstractmethod
    def direct(self) -> dict[str, Any]:
        """The option `storage` that reaches it past the gate."""

    @abstractmethod
    def new_bucket(self) -> HttpBucket:
        """An empty bucket."""

    def ask(
        self, method: str, path: str, content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:  # fmt: skip
        """Sends a request past the gate, and returns the content of the answer."""
        url = f"http://127.0.0.1:{self.port}{path}"
        request = Request(url, content, dict(headers or {}), method=method)
        with urlopen(request, timeout=30) as answer:
            return bytes(answer.read())


class HttpBucket:
    """A bucket, by another client than Penstock's."""

    def __init__(self, server: ObjectServer, name: str, url: str) -> None:
        self.server, self.name, self.url = server, name, url

    @abstractmethod
    def put(self, key: str, content: bytes) -> None:
        """Writes an object."""

    @abstractmethod
    def get(self, key: str) -> bytes:
        """The content of an object."""

    @abstractmethod
    def keys(self, prefix: str) -> list[str]:
        """The keys of all objects."""

    def names(self, prefix: str = "") -> list[str]:
        """The names of all objects but directories' and hidden ones, in order."""
        return sorted(k for k in self.keys(prefix) if not k.endswith("/") and "/." not in f"/{k}")


def new_name() -> str:
    """Returns an unused name of a bucket."""
    return f"test-{uuid.uuid4().hex[:12]}"
