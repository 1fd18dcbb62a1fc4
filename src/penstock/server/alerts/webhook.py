"""Messages by webhook: signed POST requests of JSON, which follow no redirection.

The header `Penstock-Signature` is `t=SECONDS,v1=HEX`: the HMAC-SHA256 of `SECONDS.BODY` with the
secret of the channel. The name is resolved once, and the connection has the address that was
checked: link-local addresses and those of metadata services are rejected.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import SplitResult, urlsplit

from penstock.core.errors import Permanent, Transient, UserError
from penstock.server.connections.guard import METADATA_NETWORKS, check_address
from penstock.server.store.alerts import Channel

SECONDS = 10.0


def checked_url(url: str) -> SplitResult:
    """Returns the parts of the URL of a webhook. Raises UserError."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        valid = False
    if not valid or parts.username is not None:
        raise UserError(
            "expected the URL of a webhook, such as https://example.com/alerts",
            code="invalid-request", hint="Put a password into secret, not into the URL.",
        )  # fmt: skip
    return parts


def sign(secret: str, body: bytes, seconds: int) -> str:
    """Returns the header of the signature of a body."""
    text = f"{seconds}.".encode() + body
    digest = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def send_webhook(channel: Channel, content: Mapping[str, Any]) -> None:
    """Sends a message. Raises Transient, and Permanent for an answer that will not change."""
    parts = checked_url(channel.options["url"])
    body = json.dumps(content).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "penstock"}
    if channel.secret:
        headers["Penstock-Signature"] = sign(channel.secret, body, int(time.time()))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection = _connect(parts)
        try:
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        finally:
            connection.close()
    except (OSError, HTTPException) as error:
        raise Transient(
            f"the webhook {parts.hostname} does not answer: {error or type(error).__name__}",
            code="unreachable",
        ) from error  # fmt: skip
    if 200 <= status < 300:
        return
    message = f"the webhook {parts.hostname} answered with status {status}"
    if status in (408, 425, 429) or status >= 500:
        raise Transient(message, code=f"http-{status}")
    raise Permanent(message, code=f"http-{status}")


def _connect(parts: SplitResult) -> HTTPConnection:
    """Returns a connection to an address of the host that was checked."""
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    address = str(found[0][4][0])
    for each in found:
        check_address(str(each[4][0]), METADATA_NETWORKS)
    stream = socket.create_connection((address, port), SECONDS)
    connection = HTTPConnection(host, port, timeout=SECONDS)
    if parts.scheme == "https":
        try:
            stream = ssl.create_default_context().wrap_socket(stream, server_hostname=host)
        except OSError:
            stream.close()
            raise
    connection.sock = stream
    return connection
