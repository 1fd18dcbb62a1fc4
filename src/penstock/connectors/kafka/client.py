"""The clients of one cluster: made where they are used, each with its notes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.kafka import msk
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.faults import Notes, fault, said, silent, told
from penstock.core.errors import ConnectError, MissingExtra, OptionError, Transient

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")

ANSWER_SECONDS = 25.0
"""How long an answer is waited for."""
REFUSED_SECONDS = 5.0
"""The same while no broker takes a connection."""
_STEP = 1.0
PAUSE = 0.05
"""Between one try and the next."""
_PASSING = {
    "_TRANSPORT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT", "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR", "UNKNOWN_TOPIC_ID", "UNSTABLE_OFFSET_COMMIT", "UNKNOWN_LEADER_EPOCH",
    "FENCED_LEADER_EPOCH",
}  # fmt: skip
"""What is over in a moment, as while a leader is elected."""


def require() -> None:
    """Raises MissingExtra if the client library is not installed."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise MissingExtra.of("kafka", "confluent-kafka") from None


def examine(config: ConnectionConfig) -> None:
    """Raises UserError if the library is missing or does not know a property. Contacts nobody."""
    require()
    if config.signs:
        msk.require()
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    settings = {**config.client_properties(), **config.given()}
    network = ("bootstrap.servers", "security.protocol")
    try:
        AdminClient({name: value for name, value in settings.items() if name not in network})
    except KafkaException as raised:
        reason = said(raised.args[0])
        raise OptionError.of(
            "properties",
            *(name for name in config.properties if f'"{name}"' in reason),
            message=f"librdkafka refuses properties: {reason}",
            code="invalid-property",
            hint="librdkafka's CONFIGURATION.md lists what there is",
        ) from raised


def consumer(config: ConnectionConfig, properties: dict[str, Any]) -> tuple[Consumer, Notes]:
    """A consumer that commits nothing by itself."""
    require()
    from confluent_kafka import Consumer

    config.need_files()
    notes = Notes(config.address)
    own = {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "allow.auto.create.topics": False,
    }
    settings = {**config.client_properties(), **properties, **config.given(), **own}
    with told("configure a Kafka consumer", notes):
        return Consumer({**settings, **_called(config, notes)}), notes


def producer(config: ConnectionConfig, properties: dict[str, Any]) -> tuple[Producer, Notes]:
    """A producer."""
    require()
    from confluent_kafka import Producer

    config.need_files()
    notes = Notes(config.address)
    settings = {**config.client_properties(), **properties, **config.given()}
    with told("configure a Kafka producer", notes):
        return Producer({**settings, **_called(config, notes)}), notes


def _called(config: ConnectionConfig, notes: Notes) -> dict[str, Any]:
    """What a client calls: with its complaints, and for tokens if they are made here.

    Raises as `Signer` does, because a client without a token waits, and does not say why.
    """
    if not config.signs:
        return {"error_cb": notes.add}
    assert config.sasl is not None
    msk.require()
    sign = msk.Signer(config.sasl)
    sign()

    def token(_config: str) -> tuple[str, float]:
        try:
            made = sign()
        except ConnectError as error:
            notes.no_token = error
            raise
        notes.no_token = None
        return made

    return {"error_cb": notes.add, "oauth_cb": token}


class Admin:
    """Asks a cluster about itself. Keep it while it is asked."""

    def __init__(self, config: ConnectionConfig) -> None:
        require()
        config.need_files()
        self.notes = Notes(config.address)
        self._settings = {**config.client_properties(), **config.given()}
        self._settings |= _called(config, self.notes)
        self._client: AdminClient | None = self._made()

    @property
    def client(self) -> AdminClient:
        """The client that asks; after a failure another one, with connections of its own."""
        if self._client is None:
            self._client = self._made()
        return self._client

    def ask(self, doing: str, call: Callable[[float], T]) -> T:
        """`call(timeout)` until it is answered, as by `answered`."""
        client = self.client

        def asked(timeout: float) -> T:
            try:
                return call(timeout)
            finally:
                client.poll(0)

        try:
            return answered(doing, asked, self.notes)
        except Transient:
            self._client = None
            raise

    def _made(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        with told("configure a Kafka client", self.notes):
            return AdminClient(self._settings)


def answered(doing: str, call: Callable[[float], T], notes: Notes) -> T:
    """`call(timeout)` until it is answered. Raises Transient or Permanent.

    A cluster that refuses us, or takes no connection, is told at once.
    """
    from confluent_kafka import KafkaException

    began = time.monotonic()
    while True:
        try:
            answer = call(_STEP)
            notes.clear()
            return answer
        except (KafkaException, TimeoutError) as raised:
            notes.raise_refused(doing)
            late = time.monotonic() - began > (REFUSED_SECONDS if notes.down else ANSWER_SECONDS)
            if isinstance(raised, KafkaException):
                error = raised.args[0]
                if late or not (error.retriable() or error.name() in _PASSING):
                    raise fault(error, doing, notes) from raised
            elif late:
                raise silent(doing, notes) from raised
            time.sleep(PAUSE)
