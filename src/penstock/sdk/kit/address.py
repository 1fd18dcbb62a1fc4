"""Addresses as options: `host:port`, and URLs of servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlsplit

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


def url_of(*schemes: str, user: str = "the options username and password") -> Callable[[str], str]:
    """A validator: the URL has one of these schemes and a host, and leaves the user to `user`."""
    expected = " or ".join(f"{scheme}://HOST" for scheme in schemes)

    def valid(text: str) -> str:
        parts = urlsplit(text)
        if parts.scheme not in schemes or not parts.hostname:
            raise ValueError(f"expected {expected}, with :PORT if it is another")
        if parts.username is not None:
            raise ValueError(f"write the user as {user}")
        try:
            parts.port  # noqa: B018
        except ValueError:
            raise ValueError("the port is a number up to 65535") from None
        return text

    return valid
