"""Listeners: sources and sinks that accept connections or datagrams at the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from penstock.core.errors import PenstockError, PlanError, UserError
from penstock.core.location import Location
from penstock.plan.model import Plan
from penstock.plan.options import components
from penstock.sdk import Config
from penstock.sdk.network.address import host_and_port

_OPTION = "listen"
_ANY_PORT = "*"


@dataclass(frozen=True)
class Listener:
    """A node that listens. `port` is None if the address has no fixed one, such as a file."""

    label: str
    address: str
    host: str
    port: int | None
    protocol: str
    where: Location

    @property
    def name(self) -> str:
        """The name of the port in a container and in a Service."""
        return f"{self.protocol.lower()}-{self.port}"

    @property
    def is_reachable(self) -> bool:
        """Whether the address is one of every pod, with a port that does not change."""
        return self.port is not None and not _is_local(self.host)


def listeners(plan: Plan) -> list[Listener]:
    """Returns the listeners of a plan, in the order of its nodes."""
    return [
        _listener(node.label, address, component.config, plan.pipeline.source_map.value(place))
        for node, component, route in components(plan)
        for place in [(*route, _OPTION)]
        if isinstance(address := getattr(component.config, _OPTION, None), str)
    ]


def open_ports(found: list[Listener], reserved: dict[str, int]) -> list[Listener]:
    """Returns the reachable listeners, one of each port. Raises UserError for a reserved port."""
    for each in found:
        for use, port in reserved.items():
            if (each.port, each.protocol) == (port, "TCP"):
                raise UserError(
                    f"{each.label}: the pod needs the port {port} itself ({use})",
                    code="invalid-option", where=each.where,
                    hint=f"Choose another port than {', '.join(map(str, reserved.values()))}.",
                )  # fmt: skip
    return list({each.name: each for each in found if each.is_reachable}.values())


def address_warnings(found: list[Listener]) -> Iterator[PenstockError]:
    """Yields a warning for each listener that other pods do not reach."""
    for each in found:
        if not each.is_reachable:
            scheme = "tcp://" if "://" in each.address else ""
            yield PlanError(
                f"{each.label}: other pods do not reach {each.address}",
                code="local-address", where=each.where,
                hint=f"Write {_OPTION}: {scheme}0.0.0.0:{each.port or 'PORT'}.",
            )  # fmt: skip


def _listener(label: str, address: str, config: Config, where: Location) -> Listener:
    host, port = _host_and_port(address)
    return Listener(label, address, host, port or None, getattr(config, "transport", "TCP"), where)


def _host_and_port(address: str) -> tuple[str, int | None]:
    """Returns the host and the port of `host:port` or of an endpoint of ZeroMQ."""
    parts = urlsplit(address) if "://" in address else None
    if parts is not None and parts.scheme != "tcp":
        return "", None
    text = parts.netloc if parts is not None else address
    if text.endswith(f":{_ANY_PORT}"):
        return text.removesuffix(f":{_ANY_PORT}"), None
    try:
        return host_and_port(text)
    except ValueError:
        return text, None


def _is_local(host: str) -> bool:
    """Returns whether a host is one of a single machine: no name, and not all interfaces."""
    try:
        return not ip_address(host).is_unspecified
    except ValueError:
        return host == "localhost"
