"""Errors of HTTP clients as Transient and Permanent."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from penstock.connectors.http.config import HttpRetry
from penstock.sdk import Permanent, Transient
from penstock.sdk.network.tls import certificate_hint


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Raises errors of aiohttp as Transient or Permanent."""
    import aiohttp

    try:
        yield
    except aiohttp.InvalidURL as error:
        raise Permanent(
            f'"{error.url}" is not a valid URL', code="invalid-url", hint="Correct the option url."
        ) from None
    except aiohttp.ClientConnectorCertificateError as error:
        raise Permanent(
            f"TLS verification of {urlsplit(url).hostname} failed: {error}",
            code="tls",
            hint=certificate_hint(str(error)),
        ) from None
    except aiohttp.WSServerHandshakeError as error:
        raise status_error(url, error.status) from None
    except aiohttp.ClientConnectorError as error:
        raise unreachable(url, _reason(error.os_error)) from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unreachable(url, str(error) or "timeout") from None


def _reason(error: OSError) -> str:
    """Returns the text of the operating system. asyncio replaces the text by the address."""
    code = error.errno
    if isinstance(error, socket.gaierror | ssl.SSLError) or code is None or code <= 0:
        return error.strerror or str(error) or "the connection is closed"
    return os.strerror(code)


def unreachable(url: str, reason: str) -> Transient:
    """Returns a Transient error for connection failures and timeouts."""
    parts = urlsplit(url)
    return Transient(
        f"could not reach {parts.scheme}://{parts.netloc.rpartition('@')[2]}: {reason}",
        code="unreachable",
        hint="Check that the server is running and that the URL is correct.",
    )


def status_error(
    url: str, status: int, text: str = "", retry: HttpRetry | None = None
) -> Transient | Permanent:
    """Returns an error for a response with an error status.

    The error is Transient if `retry` (by default, HttpRetry's default) lists the status. `text` is
    the beginning of the response body.
    """
    response = f"{status}: {text}" if text else str(status)
    message = f"{urlsplit(url).hostname} responded with status {response}"
    code = f"http-{status}"
    if (retry or HttpRetry()).is_retryable(status):
        return Transient(message, code=code, hint="Check the log of the server.")
    if status in (401, 403):
        return Permanent(message, code=code, hint="Check the credentials of the option auth.")
    return Permanent(message, code=code, hint="Check the URL, the method and the headers.")


def message_too_large(limit: int, subject: str) -> Permanent:
    """Returns the error for a message that exceeds `max_message_size`."""
    return Permanent(
        f"{subject} has more than {limit:,} bytes",
        code="too-large",
        hint="Increase max_message_size.",
    )
