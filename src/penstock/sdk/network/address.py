"""Options for addresses: `host:port`, and URLs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def host_and_port(address: str) -> tuple[str, int]:
    """Splits `host:port`, and removes the brackets of an IPv6 address."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _check_address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError("expected host:port, such as 0.0.0.0:8080")
    return text


Address = Annotated[str, AfterValidator(_check_address)]
"""A host and a port, as `host:port`."""


def url_validator(*schemes: str, user: str = "auth") -> Callable[[str], str]:
    """Returns a validator of URLs with one of these schemes, a host and no user.

    `user` names the options for the user in messages.
    """
    expected = " or ".join(f"{scheme}://HOST" for scheme in schemes)

    def check_url(text: str) -> str:
        parts = urlsplit(text)
        if parts.scheme not in schemes or not parts.hostname:
            raise ValueError(f"expected {expected}[:PORT]")
        if parts.username is not None:
            raise ValueError(f"expected the user in {user}, not in the URL")
        try:
            parts.port  # noqa: B018
        except ValueError:
            raise ValueError("expected a port up to 65535") from None
        return text

    return check_url
