"""How two programs come together, and what it means when they do not."""

from __future__ import annotations

import socket
import ssl
import sys
from typing import Self

from pydantic import model_validator

from penstock.sdk import Config, DecodeError, Duration, Permanent, Transient
from penstock.sdk.kit.address import Address, host_and_port
from penstock.sdk.kit.framing import Framing
from penstock.sdk.kit.tls import Tls, tls_context

_ESTABLISHED = 1


class ConnectionConfig(Config):
    listen: Address | None = None
    """The address to listen at, as `host:port`; the host 0.0.0.0 is all of the machine's."""
    connect: Address | None = None
    """The address to connect to, as `host:port`, instead of listening."""
    framing: Framing = "lines"
    """Where messages end: `lines`, `{delimiter: TEXT}`, `{length: 4}` for that many bytes with the
    length before each message, and `order: little` if they are in that order, or `{digits: 10}`
    for that many decimal digits with it."""
    tls: Tls | bool = False
    """Encrypt. Who listens gives `certificate` and `key`, and with `ca` takes only those who have
    a certificate by it; who connects gives what the other side asks for, or just `true`."""
    timeout: Duration = 10.0
    """How long it may take to connect."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.listen is None) == (self.connect is None):
            raise ValueError("give either listen or connect")
        if self.listen is not None and self.tls and not self.certified:
            raise ValueError("who listens with tls needs its certificate and key")
        return self

    @property
    def certified(self) -> bool:
        """Whether we have a certificate of our own."""
        return isinstance(self.tls, Tls) and self.tls.certificate is not None

    @property
    def host_and_port(self) -> tuple[str, int]:
        return host_and_port(self.listen or self.connect or "")

    def context(self) -> ssl.SSLContext | None:
        """For TLS; None without. Raises Permanent if a certificate cannot be used."""
        if self.listen is not None and isinstance(self.tls, Tls):
            return self.tls.server_context()
        return tls_context(self.tls)

    def failed(self, error: OSError) -> Transient | Permanent:
        """There is no connection, or nobody can make one."""
        if self.listen is not None:
            return Transient(
                f"cannot listen at {self.listen}: {error.strerror}",
                code="listen",
                hint="another program may listen there already; give another port",
            )
        if isinstance(error, ssl.SSLCertVerificationError):
            return Permanent(
                f"the certificate of {self.connect} is not trusted: {error.verify_message}",
                code="tls",
                hint="tls: {ca: FILE} names those to trust",
            )
        why = error.strerror or str(error) or "no answer in time"
        return Transient(
            f"could not reach {self.connect}: {why}",
            code="unreachable",
            hint="does a program listen there, and with TLS if tls is set?",
        )

    def lost(self, why: str) -> Transient:
        """There was a connection."""
        return Transient(
            f"the connection to {self.connect} was lost: {why}",
            code="connection-lost",
            hint="the program there may have been stopped",
        )

    def out_of_step(self, error: DecodeError, host: str) -> Transient:
        """What came from there cannot be divided, and nothing that comes after it can."""
        return Transient(
            f"the connection with {host} was left: {error.message}",
            code="out-of-step",
            hint="does the program there frame messages as framing says?",
        )


def is_established(connection: socket.socket) -> bool:
    """Whether neither side has left (Linux)."""
    if sys.platform != "linux":
        return True
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _ESTABLISHED
