"""Guard of the addresses that the tests of connections reach, in the process of a worker.

It resolves each name once, and rejects link-local addresses, those of metadata services, and those
of the machine of the server. Clients in Python get the addresses that were checked: a name cannot
have another address a moment later. A redirection to a rejected address fails, too. Clients in C
and Java resolve names again themselves; the names in their options are checked before.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from penstock.core.errors import Permanent

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
METADATA_NETWORKS = ("169.254.0.0/16", "fe80::/10")
"""The networks of metadata services, and of single links."""
METADATA = ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")
"""The addresses of metadata services of clouds that are not link-local."""
_HOST = re.compile(r"\[?([0-9A-Za-z_.:-]+?)\]?(?::(\d{1,5}))?")
_NAMED = re.compile(r"host|server|address|endpoint|broker|bootstrap|url|uri", re.IGNORECASE)
_LOCAL_SCHEMES = frozenset({"unix", "ipc", "inproc", "file"})


def check_address(address: str, rejected: Sequence[str]) -> None:
    """Raises Permanent for an address of a metadata service, and one in `rejected` networks."""
    found = _plain(ipaddress.ip_address(address.partition("%")[0]))
    networks = map(ipaddress.ip_network, rejected)
    if str(found) in METADATA or any(found in network for network in networks):
        raise Permanent(f"the address {address} is not permitted", code="forbidden-address")


class Guard:
    """The permitted addresses. Of the rejected ones those in `allowed` networks are permitted."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = [ipaddress.ip_network(each, strict=False) for each in allowed]
        self._pinned: dict[str, list[str]] = {}
        self.rejected: Permanent | None = None

    def permits(self, text: str) -> bool:
        """Returns whether an IP address may be reached."""
        address = _plain(ipaddress.ip_address(text.partition("%")[0]))
        if any(address in network for network in self._allowed):
            return True
        special = (
            address.is_loopback or address.is_link_local or address.is_unspecified
            or address.is_multicast or str(address) in METADATA
        )  # fmt: skip
        return not special and not _is_own(address)

    def resolve(self, host: str) -> list[str]:
        """Returns the addresses of a name, always the same ones. Raises Permanent if rejected."""
        name = host.lower().rstrip(".")
        if name not in self._pinned:
            found = _resolve(host, None, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
            for address in addresses:
                self.check(address, host)
            self._pinned[name] = addresses
        return self._pinned[name]

    def check(self, address: str, host: str = "") -> None:
        """Raises Permanent, and remembers it, for an address that may not be reached."""
        if self.permits(address):
            return
        shown = f"{host} ({address})" if host and host != address else address
        self.reject(f"the address {shown} is not permitted for tests of connections")

    def reject(self, message: str) -> None:
        """Raises Permanent, and remembers it: clients hide the errors of their connections."""
        self.rejected = Permanent(
            message, code="forbidden-address",
            hint="Ask a user with the right admin to test it, or start the server with "
            "--allow-network.",
        )  # fmt: skip
        raise self.rejected

    @contextmanager
    def active(self, options: Mapping[str, Any]) -> Iterator[None]:
        """Guards this process during the block. Raises Permanent for rejected names in options."""
        global _active
        names = list(hosts_of(options))
        for name in names:
            if name.startswith("/"):
                self.reject("sockets of the machine are not permitted for tests of connections")
            try:
                self.resolve(name)
            except OSError:
                continue  # the client reports an unknown name
        _install()
        _active = self
        pins = [self._pinned[each] for each in map(str.lower, names) if each in self._pinned]
        if len(pins) == 1:
            os.environ["PGHOSTADDR"] = pins[0][0]  # libpq connects to it, and verifies the name
        try:
            yield
        finally:
            _active = None
            os.environ.pop("PGHOSTADDR", None)
            if self.rejected is not None:
                raise self.rejected


def hosts_of(options: Any, name: str = "") -> Iterator[str]:
    """Yields the hosts in options: those of URLs, of `host:port`, and of options named so.

    A path stands for a socket of the machine.
    """
    if isinstance(options, Mapping):
        for key, value in options.items():
            yield from hosts_of(value, str(key))
    elif isinstance(options, list | tuple):
        for value in options:
            yield from hosts_of(value, name)
    elif isinstance(options, str):
        for part in options.split(","):
            yield from _hosts(part.strip(), name)


def _hosts(text: str, name: str) -> Iterator[str]:
    scheme, separator, rest = text.partition("://")
    if separator:
        scheme = scheme.rpartition(":")[2].lower()
        if scheme in _LOCAL_SCHEMES or scheme.endswith("+unix"):
            yield "/"
            return
        try:
            host = urlsplit(f"x://{rest}").hostname
        except ValueError:
            host = None
        if host:
            yield host
        return
    if text.startswith("/") and name in ("host", "hostname", "server"):
        yield "/"
    match = _HOST.fullmatch(text)
    if match is not None and (match[2] or _NAMED.search(name) or _is_address(text)):
        yield match[1]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _plain(address: Address) -> Address:
    """Returns the IPv4 address that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is None and address in ipaddress.ip_network("64:ff9b::/96"):
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return embedded or address
    return address


def _is_own(address: Address) -> bool:
    """Returns whether the machine has an address: only its own ones can be bound."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


_active: Guard | None = None
_installed = False
_resolve = socket.getaddrinfo


def _install() -> None:
    """Lets the guard see connections of Python, once: an audit hook cannot be removed."""
    global _installed
    if not _installed:
        _installed = True
        socket.getaddrinfo = _guarded_getaddrinfo
        sys.addaudithook(_audit)


def _guarded_getaddrinfo(host: Any, port: Any, *rest: Any, **named: Any) -> Any:
    guard = _active
    if guard is None or not host:
        return _resolve(host, port, *rest, **named)
    name = host.decode() if isinstance(host, bytes) else str(host)
    return [found for each in guard.resolve(name) for found in _resolve(each, port, *rest, **named)]


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _active is None or event not in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        return
    address = arguments[-1]
    if isinstance(address, tuple) and address and isinstance(address[0], str):
        if _is_address(address[0].partition("%")[0]):
            _active.check(address[0])
        else:
            _active.resolve(address[0])
    elif isinstance(address, str | bytes) and address:
        _active.reject("sockets of the machine are not permitted for tests of connections")
