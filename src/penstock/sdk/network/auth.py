"""Credentials: the `auth` option of connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import model_validator

from penstock.core.secret import Secret
from penstock.sdk.config import Config


class Auth(Config):
    """Base of credentials. A subclass declares the sets of options that form complete credentials.

    Exactly one of `alternatives` must be set, completely. Other options are optional; `requires`
    names the option that another one depends on.
    """

    alternatives: ClassVar[tuple[tuple[str, ...], ...]]
    requires: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        present = {name for name in type(self).model_fields if getattr(self, name) is not None}
        used = [names for names in self.alternatives if present & set(names)]
        if len(used) != 1 or not set(used[0]) <= present:
            raise ValueError(f"expected {self._choices()}")
        for option, other in self.requires.items():
            if option in present and other not in present:
                raise ValueError(f"{option} requires {other}")
        return self

    @classmethod
    def _choices(cls) -> str:
        return ", or ".join(" and ".join(names) for names in cls.alternatives)


class PasswordAuth(Auth):
    """A user name and a password."""

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (("username", "password"),)

    username: str | None = None
    """The user name."""
    password: Secret | None = None
    """The password."""


class AwsAuth(Auth):
    """An access key of AWS or of a service with the same protocol.

    Without `auth` the credentials come from the default credential chain of the AWS SDK.
    """

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (("access_key", "secret_key"),)
    requires = {"session_token": "access_key"}

    access_key: str | None = None
    """The access key ID."""
    secret_key: Secret | None = None
    """The secret access key."""
    session_token: Secret | None = None
    """The session token of temporary credentials."""
