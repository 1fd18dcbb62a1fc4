"""Errors of the MQTT clients as Transient and Permanent."""

from __future__ import annotations

import ssl

from penstock.connectors.mqtt.config import ConnectionConfig
from penstock.sdk import Permanent, Transient
from penstock.sdk.network.tls import certificate_hint

FAILURE = 0x80
"""The lowest reason code that reports a failure."""
_LOGIN_CODES = frozenset([4, 5, 134, 135, 138, 140])
_BUSY_CODES = frozenset([3, 136, 137, 151, 159])


def connection_error(config: ConnectionConfig, error: BaseException | str) -> Transient | Permanent:
    """Returns the error of a connection that failed or was lost."""
    broker = f"the MQTT broker {config.host}:{config.port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return Permanent(
            f"TLS verification of {broker} failed: {error.verify_message}",
            code="tls",
            hint=certificate_hint(error.verify_message),
        )
    return Transient(
        f"could not reach {broker}: {str(error) or 'timed out'}",
        code="unreachable",
        hint="Check that the broker is running, and the option url.",
    )


def closed_error(
    config: ConnectionConfig, topic: str, reason: str | None = None, code: int = 0
) -> Transient | Permanent:
    """Returns the error of a connection that ended after a message before its acknowledgement.

    `reason` and `code` are those of the broker, which sends them with MQTT 5 only.
    """
    broker = f"the MQTT broker {config.host}:{config.port}"
    user = config.auth.username if config.auth is not None else None
    rights = (
        f"that {f'the user {user}' if user else 'an anonymous client'} may publish to this topic"
    )
    if code in _LOGIN_CODES:
        return Permanent(
            f'{broker} closed the connection after a message to the topic "{topic}": {reason}',
            code="authorization",
            hint=f"Check {rights}.",
        )
    text = f": {reason}" if reason else ""
    return Transient(
        f'{broker} closed the connection after a message to the topic "{topic}"{text}',
        code="connection-lost",
        hint=f"Check {rights}, that the broker accepts messages of this size, and that the broker "
        "is running.",
    )


def connack_error(config: ConnectionConfig, code: int, reason: str) -> Transient | Permanent:
    """Returns the error of a connection that the broker rejected with a reason code."""
    broker = f"the MQTT broker {config.host}:{config.port}"
    if code in _BUSY_CODES:
        return Transient(
            f"{broker} rejected the connection: {reason}",
            code="busy",
            hint="Check the load and the quotas of the broker.",
        )
    if code in _LOGIN_CODES:
        return Permanent(
            f"authentication to {broker} failed: {reason}",
            code="authentication",
            hint="Check auth.username and auth.password.",
        )
    return Permanent(
        f"{broker} rejected the connection: {reason}",
        code="rejected",
        hint="Check version and client_id.",
    )
