"""Errors of TCP connections as Transient and Permanent."""

from __future__ import annotations

import ssl

from penstock.connectors.tcp.config import ConnectionConfig
from penstock.sdk import DecodeError, Permanent, Transient
from penstock.sdk.network.tls import certificate_hint


def open_error(config: ConnectionConfig, error: OSError) -> Transient | Permanent:
    """Returns the error for an address that cannot be listened on or connected to."""
    if config.listen is not None:
        return Transient(
            f"could not listen on {config.listen}: {error.strerror}",
            code="listen",
            hint="Stop the program that uses the address, or choose another port.",
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return Permanent(
            f"TLS verification of {config.connect} failed: {error.verify_message}",
            code="tls",
            hint=certificate_hint(error.verify_message),
        )
    return Transient(
        f"could not reach {config.connect}: {error.strerror or str(error) or 'timeout'}",
        code="unreachable",
        hint="Check that a program listens at the address. Set tls if the program requires TLS.",
    )


def connection_lost(config: ConnectionConfig, reason: str) -> Transient:
    """Returns the error for a connection that failed after it was established."""
    return Transient(
        f"the connection to {config.connect} was lost: {reason}",
        code="connection-lost",
        hint="Check that the program at the other end is running.",
    )


def incomplete_message(host: str) -> Transient:
    """Returns the error for a message that is incomplete after `idle_timeout`."""
    return Transient(
        f"closed the connection to {host}: a message was incomplete for too long",
        code="cut-off",
        hint="Set framing to the message format of the program at the other end, or increase "
        "idle_timeout.",
    )


def framing_error(error: DecodeError, host: str) -> Transient:
    """Returns the error for data that does not match `framing`."""
    return Transient(
        f"closed the connection to {host}: {error.message}",
        code="out-of-step",
        hint="Set framing to the message format of the program at the other end.",
    )
