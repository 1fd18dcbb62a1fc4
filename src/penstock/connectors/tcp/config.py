"""Options of the TCP source and sink."""

from __future__ import annotations

import ssl
from typing import Self

from pydantic import Field, model_validator

from penstock.sdk import ByteSize, Config, PositiveDuration, ReceivingConfig
from penstock.sdk.messages.framing import Framing
from penstock.sdk.network.address import Address, host_and_port
from penstock.sdk.network.connection_limits import ConnectionLimits
from penstock.sdk.network.tls import TlsOption, resolve_tls


class ConnectionConfig(Config):
    listen: Address | None = None
    """The address to listen on, as `host:port`. The host 0.0.0.0 stands for all interfaces."""
    connect: Address | None = None
    """The address to connect to, as `host:port`, instead of `listen`."""
    framing: Framing = "lines"
    """The boundary of messages: `lines`, `{delimiter: TEXT}`, `{length: 4}` for a length prefix of
    four bytes (with `order: little` in little-endian order), or `{digits: 10}` for a length prefix
    of ten decimal digits."""
    tls: TlsOption = None
    """Use TLS. With `listen`, `tls.certificate` and `tls.key` are required, and with `tls.ca`
    clients must present a certificate. With `connect`, `true` verifies the server with the CA
    certificates of the system."""
    timeout: PositiveDuration = 10.0
    """The maximum duration of a connect, including the TLS handshake."""

    @model_validator(mode="after")
    def _check_address_and_certificate(self) -> Self:
        if (self.listen is None) == (self.connect is None):
            raise ValueError("expected either listen or connect")
        tls = resolve_tls(self.tls)
        if self.listen is not None and tls is not None and tls.certificate is None:
            raise ValueError("tls requires certificate and key with listen")
        return self

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The host and the port of the address."""
        return host_and_port(self.listen or self.connect or "")

    def ssl_context(self) -> ssl.SSLContext | None:
        """Returns the SSL context of connections; None without TLS.

        Raises Permanent if a certificate file is unusable.
        """
        tls = resolve_tls(self.tls)
        if tls is None:
            return None
        return tls.context() if self.listen is None else tls.server_context()


class TcpSourceConfig(ConnectionConfig, ConnectionLimits, ReceivingConfig):
    max_message_size: ByteSize = Field(default=16 << 20, ge=1)
    """The maximum size of a message, and never more than half of the journal. Larger messages are
    discarded and counted as lost."""
    idle_timeout: PositiveDuration = 300.0
    """The maximum time for which a message may be incomplete. After that time the connection is
    closed, and the message counts as lost. A connection between messages may be idle."""


class TcpSinkConfig(ConnectionConfig, ConnectionLimits):
    write_timeout: PositiveDuration = 60.0
    """The maximum time for which the peer may read nothing. After that time the write fails; with
    `listen` the subscriber is disconnected."""
    min_subscribers: int = Field(default=0, ge=0)
    """With `listen`, the number of subscribers that must be connected before a batch is sent."""
