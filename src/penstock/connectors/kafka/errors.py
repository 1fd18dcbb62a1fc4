"""Errors of librdkafka as Transient and Permanent."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from penstock.core.errors import ConnectError, Permanent, Transient
from penstock.core.text import did_you_mean, nearest

_PERMANENT = {
    "_AUTHENTICATION": (
        "authentication", "Check auth: the mechanism and the credentials, or the IAM permissions.",
    ),
    "SASL_AUTHENTICATION_FAILED": (
        "authentication", "Check auth: the credentials, or the IAM permissions.",
    ),
    "UNSUPPORTED_SASL_MECHANISM": ("authentication", "Check auth.mechanism."),
    "_SSL": (
        "tls", "Set tls.ca to the CA certificate file, and tls.certificate if the brokers require "
        "a client certificate. Use host names for which the certificates are issued.",
    ),
    "TOPIC_AUTHORIZATION_FAILED": ("authorization", "Grant the user access to the topic."),
    "GROUP_AUTHORIZATION_FAILED": ("authorization", "Grant the user access to the group."),
    "CLUSTER_AUTHORIZATION_FAILED": ("authorization", "Grant the user access to the cluster."),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "authorization", "Grant the user access to the transactional ID.",
    ),
    "UNKNOWN_TOPIC_OR_PART": ("unknown-topic", None),
    "_UNKNOWN_TOPIC": ("unknown-topic", None),
    "_UNKNOWN_PARTITION": ("unknown-partition", None),
    "TOPIC_EXCEPTION": ("invalid-topic", "Use a topic name of letters, digits and . _ -"),
    "_INVALID_ARG": ("invalid-property", None),
    "INVALID_CONFIG": ("invalid-property", None),
    "UNSUPPORTED_FEATURE": ("not-a-broker", "Check that the port is the port of a broker."),
    "_UNSUPPORTED_FEATURE": ("not-a-broker", "Check that the port is the port of a broker."),
    "INVALID_RECORD": ("invalid-record", "Set key: a compacted topic requires keys."),
    "MSG_SIZE_TOO_LARGE": ("too-large", "Increase max.message.bytes of the topic."),
    "INVALID_TIMESTAMP": (
        "invalid-timestamp", "Increase message.timestamp.after.max.ms of the topic.",
    ),
    "POLICY_VIOLATION": ("rejected", None),
    "INVALID_REPLICATION_FACTOR": (
        "rejected", "Set create.replication to at most the number of brokers.",
    ),
}  # fmt: skip
"""Code and hint of errors that a retry does not resolve, by the name of librdkafka's error."""

_UNREACHABLE = {
    "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE",
    "_DESTROY_BROKER",
}  # fmt: skip
_MISSING = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"}
_DISCONNECTED = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE"}
_LOST_CONNECTION = re.compile(r"failed: Local: (?:Broker transport failure|Timed out)")
_NOISE = re.compile(
    r"^(?:\S+?://)?\S*?/(?:bootstrap|\d+): |\s*\(after \d+ms in state [A-Z_0-9 ]+\)"
)


class ErrorTracker:
    """The errors that a client reports outside of calls; `add` is its `error_cb`.

    A failed call usually reports only a timeout. `add` receives the cause.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.token_error: ConnectError | None = None
        """The error of the last token; the cause of an authentication failure that follows."""
        self.permanent: Any = None
        self.last: Any = None
        self.disconnected = False
        self.partitions: Collection[str] | None = None
        """The partitions in use, as `topic [0]`; None for all. Errors of other partitions, which a
        consumer reports after earlier reads, are not recorded."""

    def add(self, error: Any) -> None:
        """Records a KafkaError."""
        name = _name(error)
        if name in _MISSING and self.partitions is not None:
            text = reason(error)
            if not any(text.startswith(f"{partition}:") for partition in self.partitions):
                return
        if name in _PERMANENT:
            self.permanent = error
        self.last = error
        self.disconnected = self.disconnected or name in _DISCONNECTED

    def clear(self) -> None:
        """Removes all errors after a successful response."""
        self.permanent = self.last = None
        self.disconnected = False

    def raise_permanent(self, action: str) -> None:
        """Raises the permanent error that the client reported, if any."""
        if self.permanent is not None:
            raise translate_error(self.permanent, action, self)


def translate_error(error: Any, action: str, tracker: ErrorTracker) -> ConnectError:
    """Returns a KafkaError as Transient or Permanent; `action` is `read topic "clicks"`."""
    if _name(error) not in _PERMANENT and tracker.permanent is not None:
        error = tracker.permanent
    name = _name(error)
    if name in _PERMANENT and tracker.token_error is not None:
        return tracker.token_error
    if name in _PERMANENT:
        code, hint = _PERMANENT[name]
        message = f"cannot {action}: {reason(error)}"
        return Permanent(message, code=code, hint=hint, detail=f"at {tracker.address}")
    if name in _UNREACHABLE:
        return unreachable(action, tracker)
    code = name.strip("_").lower().replace("_", "-")
    return Transient(f"could not {action}: {reason(error)}", code=code)


def _name(error: Any) -> str:
    """Returns the name of an error by its cause.

    librdkafka reports a TLS alert as a transport error, and a connection that is lost during the
    SASL handshake as an authentication error.
    """
    text = error.str() or ""
    if "SSL alert" in text:
        return "_SSL"
    return "_TRANSPORT" if _LOST_CONNECTION.search(text) else str(error.name())


def unreachable(action: str, tracker: ErrorTracker) -> Transient:
    """Returns the error of a cluster that does not respond."""
    return Transient(
        f"could not {action}: no response from Kafka at {tracker.address}",
        code="unreachable",
        hint="Check that the brokers are running and that brokers, tls and auth are correct.",
        detail=reason(tracker.last) if tracker.last is not None else None,
    )


def unknown_topic(name: str, existing: Collection[str], advice: str | None = None) -> Permanent:
    """Returns the error of a topic that does not exist."""
    topics = [topic for topic in existing if not topic.startswith("__")]
    similar = did_you_mean(name, topics) if advice is None or nearest(name, topics) else None
    hint = " ".join(filter(None, [similar, advice])) or "Create the topic."
    return Permanent(f'cannot find topic "{name}"', code="unknown-topic", hint=hint)


def reason(error: Any) -> str:
    """Returns the message of librdkafka without the names of its threads."""
    text = _NOISE.sub("", str(error.str() or ""))
    return text.removeprefix("Local: ").removeprefix("Broker: ").strip() or str(error.name())


@contextmanager
def translate_errors(action: str, tracker: ErrorTracker) -> Iterator[None]:
    """Raises exceptions of the client library as Transient or Permanent."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as exception:
        raise translate_error(exception.args[0], action, tracker) from exception
