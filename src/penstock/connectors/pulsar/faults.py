"""The client's errors as Transient and Permanent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.connectors.pulsar.greeting import refused, unreachable
from penstock.core.errors import PenstockError, Permanent, Transient

if TYPE_CHECKING:
    from penstock.connectors.pulsar.connection import ConnectionConfig

_LOGIN = {"AuthenticationError", "AuthorizationError", "ErrorGettingAuthenticationData"}
_AWAY = {"Timeout", "TimeOut", "ConnectError", "NotConnected", "ReadError", "AlreadyClosed"}
_FOR_GOOD = {
    "TopicNotFound": "is its name right, and does its namespace exist?",
    "InvalidTopicName": "a topic is NAME, or persistent://TENANT/NAMESPACE/NAME",
    "SubscriptionNotFound": "brokers may be told not to make subscriptions",
    "TopicTerminated": "nothing can be written to it any more",
    "IncompatibleSchema": "the topic has a schema that others must not change",
    "NotAllowedError": "what does the broker's configuration allow?",
    "OperationNotSupported": "does the subscription's type, or the topic, allow that?",
    "InvalidConfiguration": "look at the options",
    "UnsupportedVersionError": "the broker is too old for that",
}
_BUSY = {
    "ConsumerBusy": "another consumer has the subscription; subscription_type: shared allows many",
    "ProducerBusy": "another producer has the topic for itself",
}


@contextmanager
def faults(config: ConnectionConfig, doing: str) -> Iterator[None]:
    """Turns what the client raises into Transient and Permanent."""
    import pulsar

    try:
        yield
    except pulsar.PulsarException as error:
        raise fault(config, doing, type(error).__name__) from None


def fault(config: ConnectionConfig, doing: str, name: str) -> PenstockError:
    """What the client's error of that name means."""
    if name in _LOGIN:
        return refused(config, f"we may not {doing}")
    if name in _AWAY:
        return unreachable(config, f"no answer to: {doing}")
    if name in _FOR_GOOD:
        return Permanent(f"cannot {doing}: {name}", code="pulsar", hint=_FOR_GOOD[name])
    return Transient(
        f"could not {doing}: {name}",
        code="pulsar",
        hint=_BUSY.get(name, "the broker's log may say more"),
    )
