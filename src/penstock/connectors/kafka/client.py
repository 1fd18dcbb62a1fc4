"""Clients of a Kafka cluster."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.kafka import msk
from penstock.connectors.kafka.config import ConnectionConfig
from penstock.connectors.kafka.errors import (
    ErrorTracker,
    reason,
    translate_error,
    translate_errors,
    unreachable,
)
from penstock.connectors.kafka.properties import client_properties
from penstock.core.errors import ConnectError, MissingExtra, OptionError, Transient
from penstock.sdk import report_retry

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")

RESPONSE_TIMEOUT = 25.0
"""The longest time to wait for a response, in seconds."""
DISCONNECTED_TIMEOUT = 5.0
"""The longest time to wait for a response while no broker accepts a connection."""
RETRY_INTERVAL = 0.05
"""The time between attempts, in seconds."""
_ATTEMPT_TIMEOUT = 1.0
_TEMPORARY = {
    "_TRANSPORT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT", "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR", "UNKNOWN_TOPIC_ID", "UNSTABLE_OFFSET_COMMIT", "UNKNOWN_LEADER_EPOCH",
    "FENCED_LEADER_EPOCH",
}  # fmt: skip
"""Errors during a leader election or a restart of a broker."""


def require_library() -> None:
    """Raises MissingExtra if the client library is not installed."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise MissingExtra.of("kafka", "confluent-kafka") from None


def check_properties(config: ConnectionConfig) -> None:
    """Raises UserError if a library is missing or a property is invalid. Opens no connection."""
    require_library()
    if config.uses_msk_iam:
        msk.require_library()
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    settings = {**client_properties(config), **config.user_properties()}
    network = ("bootstrap.servers", "security.protocol")
    try:
        AdminClient({name: value for name, value in settings.items() if name not in network})
    except KafkaException as exception:
        message = reason(exception.args[0])
        raise OptionError.of(
            "properties",
            *(name for name in config.properties if f'"{name}"' in message),
            message=f"librdkafka rejected properties: {message}",
            code="invalid-property",
            hint="See CONFIGURATION.md of librdkafka for valid properties.",
        ) from exception


def create_consumer(
    config: ConnectionConfig, properties: dict[str, Any]
) -> tuple[Consumer, ErrorTracker]:
    """Returns a consumer without automatic commits, and the tracker of its errors."""
    require_library()
    from confluent_kafka import Consumer

    config.check_files()
    tracker = ErrorTracker(config.address)
    fixed = {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "allow.auto.create.topics": False,
    }
    settings = {**client_properties(config), **properties, **config.user_properties(), **fixed}
    with translate_errors("configure a Kafka consumer", tracker):
        return Consumer({**settings, **_callbacks(config, tracker)}), tracker


def create_producer(
    config: ConnectionConfig, properties: dict[str, Any]
) -> tuple[Producer, ErrorTracker]:
    """Returns a producer and the tracker of its errors."""
    require_library()
    from confluent_kafka import Producer

    config.check_files()
    tracker = ErrorTracker(config.address)
    settings = {**client_properties(config), **properties, **config.user_properties()}
    with translate_errors("configure a Kafka producer", tracker):
        return Producer({**settings, **_callbacks(config, tracker)}), tracker


class _CollectionPause:
    """Pauses garbage collection in a callback on a thread of librdkafka.

    A collection in the callback could free another client: librdkafka then aborts the process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entered = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if self._entered == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0 and self._was_enabled:
                gc.enable()


_collection_paused = _CollectionPause()


def _callbacks(config: ConnectionConfig, tracker: ErrorTracker) -> dict[str, Any]:
    """Returns the callbacks for errors and tokens.

    Requests a first token and raises the errors of `TokenSigner`: a client without a token waits
    and reports no error.
    """
    if not config.uses_msk_iam:
        return {"error_cb": tracker.add}
    assert config.auth is not None
    msk.require_library()
    sign = msk.TokenSigner(config.auth)
    sign()

    def token(_config: str) -> tuple[str, float]:
        with _collection_paused:
            try:
                signed_token = sign()
            except ConnectError as error:
                tracker.token_error = error
                raise
            tracker.token_error = None
            return signed_token

    return {"error_cb": tracker.add, "oauth_cb": token}


class Admin:
    """An admin client, replaced after a failure. Raises Transient and Permanent."""

    def __init__(self, config: ConnectionConfig) -> None:
        require_library()
        config.check_files()
        self._tracker = ErrorTracker(config.address)
        self._settings = {**client_properties(config), **config.user_properties()}
        self._settings |= _callbacks(config, self._tracker)
        self._client: AdminClient | None = self._create()

    @property
    def client(self) -> AdminClient:
        """The client; after a failure a new one with new connections."""
        if self._client is None:
            self._client = self._create()
        return self._client

    def request(self, action: str, call: Callable[[float], T]) -> T:
        """Returns the result of `call(timeout)`, retried as by `request`."""
        client = self.client

        def call_and_poll(timeout: float) -> T:
            try:
                return call(timeout)
            finally:
                client.poll(0)

        try:
            return request(action, call_and_poll, self._tracker)
        except Transient:
            self._client = None
            raise

    def topics(self, action: str) -> list[str]:
        """Returns the names of all topics, including topics without a leader."""
        metadata = self.request(action, lambda timeout: self.client.list_topics(timeout=timeout))
        deleted = "UNKNOWN_TOPIC_OR_PART"
        return [
            name
            for name, topic in metadata.topics.items()
            if not (topic.error and topic.error.name() == deleted)
        ]

    def _create(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        with translate_errors("configure a Kafka client", self._tracker):
            return AdminClient(self._settings)


def request(action: str, call: Callable[[float], T], tracker: ErrorTracker) -> T:
    """Returns the result of `call(timeout)`, retried until it succeeds or the timeout passes.

    Raises Transient or Permanent. Permanent errors of the connection are raised immediately.
    """
    from confluent_kafka import KafkaException

    start = time.monotonic()
    while True:
        try:
            result = call(_ATTEMPT_TIMEOUT)
            tracker.clear()
            return result
        except (KafkaException, TimeoutError) as exception:
            tracker.raise_permanent(action)
            timeout = DISCONNECTED_TIMEOUT if tracker.disconnected else RESPONSE_TIMEOUT
            late = time.monotonic() - start > timeout
            if isinstance(exception, KafkaException):
                error = exception.args[0]
                if late or not (error.retriable() or error.name() in _TEMPORARY):
                    raise translate_error(error, action, tracker) from exception
            elif late:
                raise unreachable(action, tracker) from exception
            if tracker.disconnected:
                report_retry(unreachable(action, tracker))
            time.sleep(RETRY_INTERVAL)
