"""Options of the UDP source and sink, and address lookup."""

from __future__ import annotations

import ipaddress
import socket
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from penstock.sdk import ByteSize, Config, ReceivingConfig, Transient
from penstock.sdk.messages.framing import Framing
from penstock.sdk.network.address import Address, host_and_port

MAX_DATAGRAM_BYTES = 65_507
"""The maximum payload of a UDP datagram."""


def _validate_ipv4(text: str) -> str:
    ipaddress.IPv4Address(text)
    return text


def _validate_multicast(text: str) -> str:
    if not ipaddress.IPv4Address(text).is_multicast:
        raise ValueError("expected a multicast address, from 224.0.0.0 to 239.255.255.255")
    return text


class DatagramConfig(Config):
    framing: Literal["datagram"] | Framing = "datagram"
    """The messages of a datagram: one message (`datagram`), or several as `lines`, with
    `{delimiter: TEXT}`, with a length prefix in bytes (`{length: 4}`, and `order: little`) or in
    decimal digits (`{digits: 10}`)."""
    interface: Annotated[str, AfterValidator(_validate_ipv4)] = "0.0.0.0"
    """The IPv4 address of the network interface for multicast. With 0.0.0.0 the operating system
    selects the interface."""


class UdpSourceConfig(DatagramConfig, ReceivingConfig):
    transport: ClassVar[str] = "UDP"
    """The protocol of the port, as Kubernetes names it."""
    listen: Address
    """The address to listen on, as `host:port`. The host 0.0.0.0 stands for all interfaces."""
    multicast_group: Annotated[str, AfterValidator(_validate_multicast)] | None = None
    """The IPv4 multicast group to join."""
    max_message_size: ByteSize = Field(default=MAX_DATAGRAM_BYTES, ge=1)
    """The maximum size of a message. Larger messages are discarded and counted as lost."""
    buffer: ByteSize = Field(default=4 << 20, ge=1)
    """The size of the socket's receive buffer (SO_RCVBUF). The operating system may limit it."""

    @model_validator(mode="after")
    def _check_multicast_address(self) -> Self:
        if self.multicast_group is not None and "[" in self.listen:
            raise ValueError("multicast_group requires an IPv4 address in listen")
        return self


class UdpSinkConfig(DatagramConfig):
    connect: Address
    """The address to send to, as `host:port`. The host may be a multicast group."""
    max_datagram_size: ByteSize = Field(default=1400, ge=1, le=MAX_DATAGRAM_BYTES)
    """The maximum size of a datagram that holds several messages."""
    hops: int = Field(default=1, ge=0, le=255)
    """The time to live (TTL) of multicast datagrams; 0 stays on this machine."""


def resolve_address(address: str) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Returns the address family and the numeric address. Raises Transient for unknown hosts."""
    host, port = host_and_port(address)
    try:
        family, _, _, _, numeric = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    except socket.gaierror as error:
        raise Transient(
            f"could not resolve {host}: {error.strerror}",
            code="unreachable",
            hint="Check the host name.",
        ) from None
    return family, (str(numeric[0]), port)
