"""The options of what is reached at a URL."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from penstock.connectors.http.auth import Auth
from penstock.sdk import Config, Duration, Secret
from penstock.sdk.kit.tls import Tls


def url_of(*schemes: str) -> Callable[[str], str]:
    """A validator: the URL has one of these schemes, and no password."""

    def valid(text: str) -> str:
        parts = urlsplit(text)
        if parts.scheme not in schemes or not parts.hostname:
            raise ValueError(f"expected {' or '.join(f'{each}://HOST/...' for each in schemes)}")
        if parts.username or parts.password:
            raise ValueError("write the user as auth: {username: ..., password: ...}")
        return text

    return valid


class EndpointConfig(Config):
    headers: dict[str, Secret] = {}
    """Headers of the request."""
    auth: Auth | None = None
    """Who we are."""
    tls: Tls | bool = True
    """Whom to trust where the URL is for TLS, and who we are."""
    timeout: Duration = 30.0
    """How long an answer may take."""

    def revealed_headers(self) -> dict[str, str]:
        """The headers, for the one call that needs them."""
        return {name: value.reveal() for name, value in self.headers.items()}
