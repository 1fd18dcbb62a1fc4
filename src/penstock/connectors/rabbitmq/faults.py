"""What goes wrong, in our words."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.connectors.rabbitmq.connection import ConnectionConfig
from penstock.sdk import Permanent, Transient

_PASSING = ("is down or inaccessible", "delivery acknowledgement on channel", "RESOURCE_LOCKED")
_UNOPENED = "Connection.OpenOk"
"""In what the client says where the broker closes the connection instead of opening it."""
_ADVICE: dict[str, tuple[str, str | None]] = {
    "ACCESS_REFUSED": ("not-authorized", "rabbitmqctl list_permissions tells rights"),
    "NOT_FOUND": ("not-found", "is the name right, and the virtual host? `declare` makes it"),
    "PRECONDITION_FAILED": ("precondition", "it is there, and is another than expected"),
}  # fmt: skip


@contextmanager
def told(config: ConnectionConfig, doing: str) -> Iterator[None]:
    """Raises as Transient or Permanent what the client raises."""
    from aio_pika.exceptions import CONNECTION_EXCEPTIONS

    try:
        yield
    except CONNECTION_EXCEPTIONS as error:
        raise fault(error, config, doing) from error


def fault(
    error: BaseException | None, config: ConnectionConfig, doing: str
) -> Transient | Permanent:
    """What an error of the client's means; None where it lost the connection without one."""
    from aio_pika import exceptions

    login = (exceptions.AuthenticationError, exceptions.ProbableAuthenticationError)
    if isinstance(error, login):
        return Permanent(
            f'the RabbitMQ broker {config.address} does not let the user "{config.username}" in',
            code="login",
            hint="look at username and password; guest may only connect from the broker's machine",
        )
    if isinstance(error, exceptions.AMQPChannelError):
        return _refused(said(error), doing)
    return _unreachable(error, config)


def said(error: BaseException) -> str:
    """The broker's own words."""
    return str(error.args[-1]) if error.args else ""


def _refused(words: str, doing: str) -> Transient | Permanent:
    """The broker said no to one thing, and closed the channel."""
    if any(each in words for each in _PASSING):
        hint = "the broker may say yes later"
        return Transient(f"could not {doing}: {words}", code="busy", hint=hint)
    word = words.partition(" ")[0]
    code, advice = _ADVICE.get(word, ("refused", None))
    return Permanent(f"cannot {doing}: {words}", code=code, hint=advice)


def _unreachable(error: BaseException | None, config: ConnectionConfig) -> Transient | Permanent:
    """There is no connection, or none any more."""
    cause = error.__cause__ if error is not None else None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Permanent(
            f"the certificate of {config.address} is not trusted: {cause.verify_message}",
            code="tls",
            hint="tls: {ca: FILE} names those to trust",
        )
    words = "the connection was lost" if error is None else said(error) or "no answer in time"
    if "NOT_ALLOWED" in words or _UNOPENED in words:
        return Permanent(
            f"the RabbitMQ broker {config.address} refuses the virtual host "
            f'"{config.virtual_host}" to the user "{config.username}"',
            code="virtual-host",
            hint="look at virtual_host; rabbitmqctl list_permissions tells rights",
        )
    return Transient(
        f"could not reach the RabbitMQ broker {config.address}: {words}",
        code="unreachable",
        hint="is the broker running, and is the url right?",
    )
