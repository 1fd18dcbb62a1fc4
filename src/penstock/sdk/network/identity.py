"""Tokens of the identity that a machine has in its cloud, as passwords of databases.

Source: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.html
"""

from __future__ import annotations

import threading
import time
from typing import Literal, Self

from pydantic import model_validator

from penstock.core.errors import MissingExtra, Permanent
from penstock.core.known_secrets import remember_secret
from penstock.core.secret import revealed
from penstock.sdk.network.auth import PasswordAuth
from penstock.sdk.network.identity_tokens import (
    Token,
    azure_token,
    google_token,
    rejected,
    unavailable,
)

_AZURE_RESOURCE = "https://ossrdbms-aad.database.windows.net"
_MARGIN_SECONDS = 300.0
"""A token is replaced when it expires within this time."""
_AWS_SECONDS = 900.0

_tokens: dict[tuple[str | int | None, ...], Token] = {}
_lock = threading.Lock()


class IdentityAuth(PasswordAuth):
    """A user name and a password, or a token of the identity of the machine as the password."""

    alternatives = (("username", "password"), ("username", "identity"))

    identity: Literal["aws", "azure", "google"] | None = None
    """The cloud whose tokens are sent in place of a password: those of the IAM role of AWS, of the
    managed identity or the workload identity of Azure, or of the service account of Google Cloud
    that the machine has. AWS requires the extra `aws`."""
    region: str | None = None
    """The region of the database, with `identity: aws`. By default that of the environment."""
    client_id: str | None = None
    """The client ID of a user-assigned identity, with `identity: azure`. By default the identity of
    the machine or, with workload identity, that of the service account."""

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        is_complete = self.username is not None and (self.password is None) != (
            self.identity is None
        )
        if not is_complete:
            raise ValueError(f"expected {self._choices()}")
        for option, identity in (("region", "aws"), ("client_id", "azure")):
            if getattr(self, option) is not None and self.identity != identity:
                raise ValueError(f"{option} requires identity: {identity}")
        return self

    def password_for(self, host: str, port: int) -> str | None:
        """Returns the password, or a token for the user of a database at an address.

        Raises Transient or Permanent without a token, and MissingExtra.
        """
        if self.identity is None:
            return revealed(self.password)
        key = (self.identity, host, port, self.username, self.region, self.client_id)
        with _lock:
            token = _tokens.get(key)
            if token is None or token.expires - time.time() < _MARGIN_SECONDS:
                token = _tokens[key] = self._new_token(host, port)
                remember_secret(token.text)
        return token.text

    def _new_token(self, host: str, port: int) -> Token:
        if self.identity == "aws":
            return _aws_token(host, port, str(self.username), self.region)
        if self.identity == "azure":
            return azure_token(_AZURE_RESOURCE, self.client_id)
        return google_token()


def _aws_token(host: str, port: int, user: str, region: str | None) -> Token:
    """Returns a request to log in that is signed with the credentials of the default chain."""
    try:
        from botocore.exceptions import BotoCoreError, CredentialRetrievalError
        from botocore.session import Session
    except ImportError:
        raise MissingExtra.of("aws", "boto3") from None
    session = Session()
    region = region or session.get_config_variable("region")
    if region is None:
        raise Permanent(
            f"no region for a token of AWS for {host}", code="authentication",
            hint="Set auth.region, or the environment variable AWS_REGION.",
        )  # fmt: skip
    expires = time.time() + _AWS_SECONDS
    try:
        client = session.create_client("rds", region_name=region)
        text = client.generate_db_auth_token(DBHostname=host, Port=port, DBUsername=user)
    except CredentialRetrievalError as error:
        raise unavailable("aws", str(error)) from None
    except BotoCoreError as error:
        raise rejected("aws", str(error)) from None
    return Token(text, expires)
