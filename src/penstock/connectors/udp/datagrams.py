"""What source and sink share: what a datagram holds, and multicast."""

from __future__ import annotations

import ipaddress
import socket
from typing import Annotated, Literal

from pydantic import AfterValidator

from penstock.sdk import Config, Transient
from penstock.sdk.kit.address import host_and_port
from penstock.sdk.kit.framing import Framing

LARGEST = 65_507
"""The most bytes of a datagram."""


def _address(text: str) -> str:
    ipaddress.IPv4Address(text)
    return text


class DatagramConfig(Config):
    framing: Literal["datagram"] | Framing = "datagram"
    """What is in a datagram: one message (`datagram`), or several as `lines`, with a
    `{delimiter: TEXT}`, or with the length before each, in bytes (`{length: 4}`, and
    `order: little`) or in decimal digits (`{digits: 10}`)."""
    interface: Annotated[str, AfterValidator(_address)] = "0.0.0.0"
    """Our own address in the network that multicast goes through; the system chooses one for
    0.0.0.0."""


def resolved(address: str) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """The family and the numbers of an address. Raises Transient if its name is not known."""
    host, port = host_and_port(address)
    try:
        family, _, _, _, found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    except socket.gaierror as error:
        raise Transient(
            f"could not find {host}: {error.strerror}", code="unreachable", hint="is it right?"
        ) from None
    return family, (str(found[0]), port)
