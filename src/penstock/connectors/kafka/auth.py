"""Options of SASL authentication."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from penstock.sdk import Secret
from penstock.sdk.network.auth import Auth

_PASSWORD = ("username", "password")
_OAUTH = ("token_url", "scope", "extensions")
_MSK = ("region", "access_key", "secret_key", "session_token")


class SaslAuth(Auth):
    """SASL authentication."""

    alternatives = (_PASSWORD,)

    mechanism: Literal[
        "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"
    ] = "PLAIN"  # fmt: skip
    """The SASL mechanism. OAUTHBEARER requests tokens from `token_url`; AWS_MSK_IAM signs tokens
    with AWS credentials."""
    username: str | None = None
    """The user name, or the client ID of OAUTHBEARER."""
    password: Secret | None = None
    """The password, or the client secret of OAUTHBEARER."""
    token_url: str | None = None
    """The token endpoint of OAUTHBEARER (OpenID Connect client credentials grant)."""
    scope: str | None = None
    """The scope of tokens of OAUTHBEARER."""
    extensions: dict[str, str] | None = None
    """The SASL extensions of OAUTHBEARER, such as `logicalCluster`."""
    region: str | None = None
    """The AWS region of AWS_MSK_IAM: `eu-west-1`."""
    access_key: str | None = None
    """The access key ID of AWS_MSK_IAM. By default the credentials come from the default
    credential chain of the AWS SDK."""
    secret_key: Secret | None = None
    """The secret access key of AWS_MSK_IAM."""
    session_token: Secret | None = None
    """The session token of temporary credentials of AWS_MSK_IAM."""

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        supported = {"OAUTHBEARER": (*_PASSWORD, *_OAUTH), "AWS_MSK_IAM": _MSK}
        names = {name for name in (*_PASSWORD, *_OAUTH, *_MSK) if getattr(self, name) is not None}
        unsupported = sorted(names - set(supported.get(self.mechanism, _PASSWORD)))
        if unsupported:
            raise ValueError(f"{unsupported[0]} is not supported by mechanism {self.mechanism}")
        if self.mechanism == "AWS_MSK_IAM":
            _require(self.mechanism, names, "region")
            if names & {"access_key", "secret_key", "session_token"}:
                _require(self.mechanism, names, "access_key", "secret_key")
        elif self.mechanism != "OAUTHBEARER" or names & {"token_url", *_PASSWORD}:
            _require(self.mechanism, names, *_PASSWORD)
        return self


def _require(mechanism: str, names: set[str], *required: str) -> None:
    if not set(required) <= names:
        raise ValueError(f"mechanism {mechanism} requires {' and '.join(required)}")
