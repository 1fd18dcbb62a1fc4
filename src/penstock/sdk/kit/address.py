"""Addresses as options: `host:port`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts; brackets around an IPv6 address are left out."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _valid(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError("expected host:port, such as 0.0.0.0:8080")
    return text


Address = Annotated[str, AfterValidator(_valid)]
"""A host and a port, as `host:port`."""
