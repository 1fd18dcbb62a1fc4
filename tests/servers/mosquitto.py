"""Eclipse Mosquitto, an MQTT broker."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from servers.install import program
from servers.server import Server, free_port

USER, PASSWORD = "made-up-user", "made-up-password"
_SETTINGS = """
listener {port} 127.0.0.1
user root
persistence true
persistence_location {data}/
max_queued_messages 0
max_inflight_messages 0
allow_anonymous false
log_type error
log_type warning
log_type notice
log_type information
log_type subscribe
password_file {data}/passwords
acl_file {data}/rights
"""
_SAVES_IN = 10.0
_ANSWERS_IN = 30.0
_TLS = """
listener {port} 127.0.0.1
certfile {certificate}
keyfile {certificate}
"""
_RIGHTS = f"""
user {USER}
topic readwrite allowed/#
topic read forbidden/#
"""


class Mosquitto(Server):
    """The broker at `url`, for USER with PASSWORD, who may do all below `allowed/`.

    With a certificate it also listens at `tls_port`. It acknowledges messages before they are
    on disk, so it receives a signal to write before it is killed.
    """

    name = "mosquitto"
    title = "Eclipse Mosquitto 2.0 (Debian 12)"

    def __init__(self, port: int | None = None, certificate: Path | None = None) -> None:
        super().__init__(port)
        self._certificate = certificate
        self.tls_port = free_port()

    def command(self) -> Sequence[str]:
        """With its settings, a user and the user's rights."""
        data = self.directory.path
        settings, passwords = data / "mosquitto.conf", data / "passwords"
        text = _SETTINGS.format(port=self.port, data=data)
        if self._certificate is not None:
            text += _TLS.format(port=self.tls_port, certificate=self._certificate)
        settings.write_text(text)
        (data / "rights").write_text(_RIGHTS)
        broker = program("mosquitto", "mosquitto")
        if not passwords.exists():
            password = [program("mosquitto_passwd", "mosquitto"), "-b", "-c", str(passwords)]
            subprocess.run([*password, USER, PASSWORD], check=True, capture_output=True)
        return [broker, "-c", str(settings)]

    def ready(self) -> None:
        """Publishes as the user."""
        self.publish("allowed/nothing", [b""])

    def kill(self) -> None:
        """Ends it as a power cut would, after it has written what it keeps."""
        written = self.directory.path / "mosquitto.db"
        written.unlink(missing_ok=True)
        os.kill(self.process.pid, signal.SIGUSR1)
        until = time.monotonic() + _SAVES_IN
        while not written.exists() and time.monotonic() < until:
            time.sleep(0.01)
        super().kill()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def login(self) -> dict[str, Any]:
        """The options that reach it."""
        return {"url": self.url, "auth": {"username": USER, "password": PASSWORD}}

    def new_topic(self) -> str:
        """Returns an unused topic."""
        return f"allowed/{uuid.uuid4().hex[:12]}"

    def client(self, name: str = "", clean: bool = True) -> Any:
        """A client of the tests' own, which the broker has let in.

        Who leaves before that may take with it what the broker has not read yet.
        """
        from paho.mqtt import client as paho

        client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, name or f"tests-{uuid.uuid4().hex}",
            protocol=paho.MQTTv5, manual_ack=False,
        )  # fmt: skip
        client.username_pw_set(USER, PASSWORD)
        connected = threading.Event()
        client.on_connect = lambda *_: connected.set()
        client.connect("127.0.0.1", self.port, clean_start=clean)
        client.loop_start()
        if not connected.wait(_ANSWERS_IN):
            client.loop_stop()
            raise TimeoutError("the broker does not answer")
        return client

    def publish(self, topic: str, payloads: list[bytes], qos: int = 1, **options: Any) -> None:
        """Publishes messages; returns when the broker has them."""
        client = self.client()
        try:
            for message in [client.publish(topic, each, qos, **options) for each in payloads]:
                message.wait_for_publish(30)
                assert message.is_published()
        finally:
            client.disconnect()
            client.loop_stop()


class Subscriber:
    """Keeps what is published to a topic."""

    def __init__(self, broker: Mosquitto, topic: str) -> None:
        self.messages: list[Any] = []
        self._broker, self._topic = broker, topic
        self._name = f"tests-{uuid.uuid4().hex}"
        self._client: Any = None

    def __enter__(self) -> Subscriber:
        from paho.mqtt import client as paho
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        client = paho.Client(paho.CallbackAPIVersion.VERSION2, self._name, protocol=paho.MQTTv5)
        client.username_pw_set(USER, PASSWORD)
        client.on_message = lambda client, data, message: self.messages.append(message)
        client.on_connect = lambda client, *_: client.subscribe(self._topic, qos=2)
        subscribed = threading.Event()
        client.on_subscribe = lambda *_: subscribed.set()
        keeps = Properties(PacketTypes.CONNECT)
        keeps.SessionExpiryInterval = 3600
        client.connect("127.0.0.1", self._broker.port, clean_start=False, properties=keeps)
        client.loop_start()
        self._client = client
        assert subscribed.wait(_ANSWERS_IN), "the broker does not take the subscription"
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        with suppress(AttributeError):  # paho has no thread left that ends at this moment
            self._client.loop_stop()


@pytest.fixture(scope="session")
def mosquitto() -> Iterator[Mosquitto]:
    """One broker for all tests that ask for it."""
    with Mosquitto() as broker:
        yield broker
