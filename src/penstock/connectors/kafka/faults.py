"""What librdkafka reports, as errors that a user can act on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.core.errors import ConnectError, Permanent, Transient

_WHO = "username and password, or the keys and what IAM allows them"
_REFUSED = {
    "_AUTHENTICATION": ("authentication", f"check sasl: mechanism, {_WHO}"),
    "SASL_AUTHENTICATION_FAILED": ("authentication", f"check sasl: {_WHO}"),
    "UNSUPPORTED_SASL_MECHANISM": ("authentication", "check sasl: mechanism"),
    "_SSL": (
        "tls",
        "check tls: ca must have signed the brokers' certificate, and they may want yours",
    ),
    "TOPIC_AUTHORIZATION_FAILED": ("authorization", "the user has no right to the topic"),
    "GROUP_AUTHORIZATION_FAILED": ("authorization", "the user has no right to the group"),
    "CLUSTER_AUTHORIZATION_FAILED": ("authorization", "the user has no right to the cluster"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "authorization", "the user has no right to the transactional id",
    ),
    "UNKNOWN_TOPIC_OR_PART": ("unknown-topic", None),
    "_UNKNOWN_TOPIC": ("unknown-topic", None),
    "_UNKNOWN_PARTITION": ("unknown-partition", None),
    "TOPIC_EXCEPTION": ("invalid-topic", "a name has letters, digits and . _ -"),
    "_INVALID_ARG": ("invalid-property", None),
    "INVALID_CONFIG": ("invalid-property", None),
    "UNSUPPORTED_FEATURE": ("not-a-broker", "is the port that of a broker?"),
    "_UNSUPPORTED_FEATURE": ("not-a-broker", "is the port that of a broker?"),
    "INVALID_RECORD": ("invalid-record", "a compacted topic takes only records with a key"),
    "MSG_SIZE_TOO_LARGE": ("too-large", "the topic's max.message.bytes says how much it takes"),
    "INVALID_TIMESTAMP": (
        "invalid-timestamp", "the topic's message.timestamp.after.max.ms says how far ahead",
    ),
    "POLICY_VIOLATION": ("refused", None),
    "INVALID_REPLICATION_FACTOR": ("refused", "there are fewer brokers than that"),
}  # fmt: skip
"""Errors that another try does not help: our code and advice."""

_UNREACHABLE = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "_TIMED_OUT_QUEUE"}
_FAST = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE"}
_NOISE = re.compile(
    r"^(?:\S+?://)?\S*?/(?:bootstrap|\d+): |\s*\(after \d+ms in state [A-Z_0-9 ]+\)"
)


class Notes:
    """What a client has complained of beside its answers: give `add` as its `error_cb`.

    A call that fails mostly says no more than that it timed out; the reason has been told here.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.no_token: ConnectError | None = None
        """Why the client has no new token: then a cluster that refuses us is not to blame."""
        self.refused: Any = None
        self.last: Any = None
        self.down = False

    def add(self, error: Any) -> None:
        """Takes one KafkaError."""
        name = _name(error)
        if name in _REFUSED:
            self.refused = error
        elif name in _UNREACHABLE and not (name == "_ALL_BROKERS_DOWN" and self.last):
            self.last = error
        self.down = self.down or name in _FAST

    def clear(self) -> None:
        """Forgets: the system has answered."""
        self.refused = self.last = None
        self.down = False

    def raise_refused(self, doing: str) -> None:
        """Raises Permanent if the cluster has refused us; the reason, if we had no token."""
        if self.refused is not None:
            raise fault(self.refused, doing, self)


def fault(error: Any, doing: str, notes: Notes) -> ConnectError:
    """A KafkaError as ours; `doing` is `read topic "clicks"`."""
    if _name(error) not in _REFUSED and notes.refused is not None:
        error = notes.refused
    name = _name(error)
    if name in _REFUSED and notes.no_token is not None:
        return notes.no_token
    if name in _REFUSED:
        code, hint = _REFUSED[name]
        return Permanent(
            f"cannot {doing}: {said(error)}", code=code, hint=hint, detail=f"at {notes.address}"
        )
    if name in _UNREACHABLE:
        return silent(doing, notes)
    code = name.strip("_").lower().replace("_", "-")
    return Transient(f"could not {doing}: {said(error)}", code=code)


def _name(error: Any) -> str:
    """The error's name; a broker that ends the handshake over TLS is said to be out of reach."""
    return "_SSL" if "SSL alert" in (error.str() or "") else str(error.name())


def silent(doing: str, notes: Notes) -> Transient:
    """The error of a cluster that does not answer."""
    return Transient(
        f"could not {doing}: no answer from Kafka at {notes.address}",
        code="unreachable",
        hint="is it running, and are brokers, tls and sasl right?",
        detail=said(notes.last) if notes.last is not None else None,
    )


def said(error: Any) -> str:
    """librdkafka's words, without the names it gives to its own threads."""
    text = _NOISE.sub("", str(error.str() or ""))
    return text.removeprefix("Local: ").removeprefix("Broker: ").strip() or str(error.name())


@contextmanager
def told(doing: str, notes: Notes) -> Iterator[None]:
    """Turns the exceptions of the client library into ours."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as raised:
        raise fault(raised.args[0], doing, notes) from raised
