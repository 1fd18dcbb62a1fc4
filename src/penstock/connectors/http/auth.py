"""Who a request is from: a user with a password, or the bearer of a token."""

from __future__ import annotations

import base64
import hmac
from typing import Self

from pydantic import model_validator

from penstock.sdk import Config, Secret


class Auth(Config):
    """A user with a password (basic), or a token (bearer)."""

    username: str | None = None
    """The user, for basic authentication."""
    password: Secret | None = None
    """The user's password."""
    token: Secret | None = None
    """The token, for bearer authentication."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        basic = self.username is not None and self.password is not None
        if basic == (self.token is not None) or (self.username is None) != (self.password is None):
            raise ValueError("give username and password, or token")
        return self

    @property
    def scheme(self) -> str:
        """The scheme that the server asks for."""
        return "Basic" if self.token is None else "Bearer"

    @property
    def header(self) -> str:
        """The value of the header `Authorization`."""
        if self.token is not None:
            return f"Bearer {self.token.reveal()}"
        assert self.password is not None
        login = f"{self.username}:{self.password.reveal()}"
        return f"Basic {base64.b64encode(login.encode()).decode()}"

    def admits(self, header: str) -> bool:
        """Whether a request with this header may pass; the time it takes tells nothing."""
        given, _, proof = header.partition(" ")
        expected = self.header.partition(" ")[2]
        same = hmac.compare_digest(proof.strip().encode(), expected.encode())
        return given.lower() == self.scheme.lower() and same
