"""Tokens of the identity that a machine has in its cloud, as passwords of databases.

Sources: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.html,
https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
and https://cloud.google.com/sql/docs/postgres/iam-authentication
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from pydantic import model_validator

from penstock.core.errors import MissingExtra, Permanent, Transient
from penstock.core.known_secrets import remember_secret
from penstock.core.secret import revealed
from penstock.sdk.network.auth import PasswordAuth

_AZURE_RESOURCE = "https://ossrdbms-aad.database.windows.net"
_TIMEOUT_SECONDS = 10.0
_MARGIN_SECONDS = 300.0
"""A token is replaced when it expires within this time."""
_AWS_SECONDS = 900.0
_TOO_MANY_REQUESTS, _SERVER_ERROR = 429, 500
_SHOWN = 200


class Token(NamedTuple):
    """A token, and the time in seconds since 1970 at which it expires."""

    text: str
    expires: float


_tokens: dict[tuple[str | int | None, ...], Token] = {}
_lock = threading.Lock()


class IdentityAuth(PasswordAuth):
    """A user name and a password, or a token of the identity of the machine as the password."""

    alternatives = (("username", "password"), ("username", "identity"))

    identity: Literal["aws", "azure", "google"] | None = None
    """The cloud whose tokens are sent in place of a password: those of the IAM role of AWS, of the
    managed identity of Azure, or of the service account of Google Cloud that the machine has. AWS
    requires the extra `aws`."""
    region: str | None = None
    """The region of the database, with `identity: aws`. By default that of the environment."""
    client_id: str | None = None
    """The client ID of a user-assigned identity, with `identity: azure`."""

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
        return _azure_token(self.client_id) if self.identity == "azure" else _google_token()


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
        raise _unavailable("aws", str(error)) from None
    except BotoCoreError as error:
        raise _rejected("aws", str(error)) from None
    return Token(text, expires)


def _azure_token(client_id: str | None) -> Token:
    """Returns a token from the endpoint of App Service, or of the machine."""
    query = {"resource": _AZURE_RESOURCE, **({"client_id": client_id} if client_id else {})}
    endpoint = os.environ.get("IDENTITY_ENDPOINT")
    if endpoint is not None:
        query["api-version"] = "2019-08-01"
        headers = {"X-IDENTITY-HEADER": os.environ.get("IDENTITY_HEADER", "")}
    else:
        host = os.environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://169.254.169.254")
        endpoint = f"{host.rstrip('/')}/metadata/identity/oauth2/token"
        query["api-version"] = "2018-02-01"
        headers = {"Metadata": "true"}
    return _requested("azure", f"{endpoint}?{urlencode(query)}", headers)


def _google_token() -> Token:
    """Returns a token from the metadata server, which is also that of a pod of GKE."""
    host = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    return _requested("google", url, {"Metadata-Flavor": "Google"})


def _requested(identity: str, url: str, headers: Mapping[str, str]) -> Token:
    """Returns the token in the response to a request, which no proxy receives."""
    request, now = Request(url, headers=dict(headers)), time.time()
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_TIMEOUT_SECONDS) as response:
            found: Any = json.load(response)
        expires = float(found.get("expires_on") or now + float(found["expires_in"]))
        return Token(str(found["access_token"]), expires)
    except HTTPError as error:
        reason = f"HTTP {error.code}: {error.read(_SHOWN).decode(errors='replace')}"
        if error.code == _TOO_MANY_REQUESTS or error.code >= _SERVER_ERROR:
            raise _unavailable(identity, reason) from None
        raise _rejected(identity, reason) from None
    except OSError as error:
        raise _unavailable(identity, str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _rejected(identity, "the response has no token") from None


def _unavailable(identity: str, reason: str) -> Transient:
    return Transient(
        f"could not obtain a token of the identity of this machine ({identity}): {reason}",
        code="unreachable",
        hint=f"Run the pipeline on a machine of the cloud {identity} that has an identity.",
    )


def _rejected(identity: str, reason: str) -> Permanent:
    return Permanent(
        f"cannot obtain a token of the identity of this machine ({identity}): {reason}",
        code="authentication",
        hint="Assign an identity to the machine, and permit it to log in to the database.",
    )
