"""Errors of the Pulsar client as Transient and Permanent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.connectors.pulsar.config import ConnectionConfig
from penstock.core.errors import PenstockError, Permanent, Transient

_AUTHENTICATION = {"AuthenticationError", "AuthorizationError", "ErrorGettingAuthenticationData"}
_UNREACHABLE = {"Timeout", "TimeOut", "ConnectError", "NotConnected", "ReadError", "AlreadyClosed"}
_PERMANENT = {
    "TopicNotFound": "Check the name of the topic and that its namespace exists.",
    "InvalidTopicName": "Use a topic of the form NAME or persistent://TENANT/NAMESPACE/NAME.",
    "SubscriptionNotFound": "Allow the automatic creation of subscriptions in the broker.",
    "TopicTerminated": "Use another topic: a terminated topic accepts no messages.",
    "IncompatibleSchema": "Check the schema of the topic and its compatibility policy.",
    "NotAllowedError": "Check the configuration of the broker.",
    "OperationNotSupported": "Check the type of the subscription and of the topic.",
    "InvalidConfiguration": "Check the options.",
    "UnsupportedVersionError": "Upgrade the broker.",
}
_BUSY = {
    "ConsumerBusy": "Stop the other consumer, or set subscription_type: shared.",
    "ProducerBusy": "Stop the other producer, which has exclusive access to the topic.",
}


@contextmanager
def translate_errors(config: ConnectionConfig, action: str) -> Iterator[None]:
    """Raises errors of the client as Transient or Permanent."""
    import pulsar

    try:
        yield
    except pulsar.PulsarException as error:
        raise translate_error(config, action, type(error).__name__) from None


def translate_error(config: ConnectionConfig, action: str, name: str) -> PenstockError:
    """Returns the client's error of a name as Transient or Permanent."""
    if name in _AUTHENTICATION:
        return authentication_failed(config, f"cannot {action}")
    if name in _UNREACHABLE:
        return unreachable(config, f"could not {action}")
    if name in _PERMANENT:
        return Permanent(f"cannot {action}: {name}", hint=_PERMANENT[name])
    return Transient(
        f"could not {action}: {name}",
        hint=_BUSY.get(name, "Check the log of the broker."),
    )


def unreachable(config: ConnectionConfig, reason: object) -> Transient:
    """Returns the error of a connection that failed, was lost, or timed out."""
    return Transient(
        f"could not reach {config.broker}: {str(reason) or 'timeout'}",
        code="unreachable",
        hint="Check that the broker is running and that url is correct.",
    )


def authentication_failed(config: ConnectionConfig, reason: object) -> Permanent:
    """Returns the error of credentials that the broker rejected."""
    return Permanent(
        f"authentication to {config.broker} failed: {reason}",
        code="authentication",
        hint="Check auth, or tls.certificate and tls.key, and the permissions of the role.",
    )
