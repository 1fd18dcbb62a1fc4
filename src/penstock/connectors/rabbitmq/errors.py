"""Errors of the AMQP client as Transient and Permanent."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.connectors.rabbitmq.config import ConnectionConfig
from penstock.sdk import Permanent, Transient
from penstock.sdk.network.tls import certificate_hint

_TEMPORARY = ("is down or inaccessible", "delivery acknowledgement on channel", "RESOURCE_LOCKED")
_NOT_OPENED = "Connection.OpenOk"
"""Part of the client's error where the broker closes the connection instead of opening it."""
_CHANNEL_ERRORS: dict[str, tuple[str, str | None]] = {
    "ACCESS_REFUSED": (
        "authorization", "Check the permissions of the user: rabbitmqctl list_permissions.",
    ),
    "NOT_FOUND": ("not-found", "Check the name and virtual_host, or set create: true."),
    "PRECONDITION_FAILED": (
        "precondition", "Set the same properties as the existing queue or exchange has.",
    ),
}  # fmt: skip


@contextmanager
def translate_errors(config: ConnectionConfig, action: str) -> Iterator[None]:
    """Raises errors of the AMQP client as Transient or Permanent."""
    from aio_pika.exceptions import CONNECTION_EXCEPTIONS

    try:
        yield
    except CONNECTION_EXCEPTIONS as error:
        raise translate_error(error, config, action) from error


def translate_error(
    error: BaseException | None, config: ConnectionConfig, action: str
) -> Transient | Permanent:
    """Returns an error of the AMQP client as Transient or Permanent.

    None stands for a connection that was lost without an error.
    """
    from aio_pika import exceptions

    authentication = (exceptions.AuthenticationError, exceptions.ProbableAuthenticationError)
    if isinstance(error, authentication):
        return Permanent(
            f'authentication of user "{config.auth.username}" to the RabbitMQ broker '
            f"{config.address} failed",
            code="authentication",
            hint="Check auth. The user guest may only connect from the broker's machine.",
        )
    if isinstance(error, exceptions.AMQPChannelError):
        return _channel_error(reason(error), action)
    return _connection_error(error, config)


def reason(error: BaseException) -> str:
    """Returns the broker's message of an error."""
    return str(error.args[-1]) if error.args else ""


def _channel_error(message: str, action: str) -> Transient | Permanent:
    """Returns the error of an operation after which the broker closed the channel."""
    if any(part in message for part in _TEMPORARY):
        return Transient(
            f"could not {action}: {message}",
            code="busy",
            hint="Check the broker's log.",
        )
    code, hint = _CHANNEL_ERRORS.get(message.partition(" ")[0], ("rejected", None))
    return Permanent(f"cannot {action}: {message}", code=code, hint=hint)


def _connection_error(
    error: BaseException | None, config: ConnectionConfig
) -> Transient | Permanent:
    """Returns the error of a connection that could not be opened or was lost."""
    cause = error.__cause__ if error is not None else None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Permanent(
            f"TLS verification of {config.address} failed: {cause.verify_message}",
            code="tls",
            hint=certificate_hint(cause.verify_message),
        )
    message = "the connection was lost" if error is None else reason(error) or "timeout"
    if "NOT_ALLOWED" in message or _NOT_OPENED in message:
        return Permanent(
            f'user "{config.auth.username}" has no access to virtual host '
            f'"{config.virtual_host}" of the RabbitMQ broker {config.address}',
            code="authorization",
            hint="Check virtual_host and the permissions of the user: "
            "rabbitmqctl list_permissions.",
        )
    return Transient(
        f"could not reach the RabbitMQ broker {config.address}: {message}",
        code="unreachable",
        hint="Check that the broker is running and that url is correct.",
    )
