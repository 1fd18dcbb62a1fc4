"""The options of what is reached at a URL."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from penstock.connectors.http.auth import Auth
from penstock.sdk import Config, Duration, Secret
from penstock.sdk.kit.address import url_of
from penstock.sdk.kit.tls import Tls

AUTH = "auth: {username: ..., password: ...}"
HttpUrl = Annotated[str, AfterValidator(url_of("http", "https", user=AUTH))]
"""Where a server is asked."""


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
