"""Errors of the NATS client as Transient and Permanent."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.connectors.nats.config import ConnectionConfig
from penstock.sdk import Permanent, Transient
from penstock.sdk.network.tls import certificate_hint

_LOGIN_WORDS = ("authorization", "authentication", "credentials", "expired", "revoked", "nkeys")
_SERVER_ERROR = 500


@contextmanager
def translate_errors(
    config: ConnectionConfig, action: str, server_errors: list[Exception] | None = None
) -> Iterator[None]:
    """Raises errors of the client as Transient or Permanent.

    `action` is the failed action, for messages. `server_errors` are asynchronous errors of the
    server, which name the cause where the client's error does not.
    """
    import nats.errors
    import nats.js.errors
    from nkeys import NkeysError

    try:
        yield
    except nats.js.errors.APIError as error:
        raise jetstream_error(action, error.code, error.description) from None
    except ssl.SSLCertVerificationError as error:
        raise Permanent(
            f"TLS verification of {config.server_names} failed: {error.verify_message}",
            code="tls",
            hint=certificate_hint(error.verify_message),
        ) from None
    except (nats.errors.Error, NkeysError, OSError, TimeoutError) as error:
        text = f"{error} {' '.join(map(str, server_errors or ()))}".casefold()
        if any(word in text for word in _LOGIN_WORDS):
            raise Permanent(
                f"authentication to {config.server_names} failed: {error}",
                code="authentication",
                hint="Check the credentials of auth.",
            ) from None
        raise connection_error(config, (server_errors or [error])[0]) from None


def connection_error(config: ConnectionConfig, reason: object) -> Transient:
    """Returns the error of a connection that failed, was lost or timed out."""
    return Transient(
        f"could not reach {config.server_names}: {str(reason) or 'timed out'}",
        code="unreachable",
        hint="Check that the server is running, and the option url.",
    )


def jetstream_error(
    action: str, code: int | None, description: str | None
) -> Transient | Permanent:
    """Returns the error of a request that JetStream rejected."""
    if code is None or code >= _SERVER_ERROR:
        return Transient(
            f"could not {action}: {description or 'no response from JetStream'}",
            hint="Check that JetStream is enabled, has free storage and has a cluster leader.",
        )
    return Permanent(
        f"cannot {action}: {description}",
        hint="Check that the stream or bucket exists.",
    )
