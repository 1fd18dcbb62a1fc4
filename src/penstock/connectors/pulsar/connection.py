"""How a broker is reached, and who we are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from penstock.connectors.pulsar.greeting import greet
from penstock.connectors.pulsar.login import Login
from penstock.core.errors import Permanent
from penstock.core.secret import revealed
from penstock.sdk import Config, Duration, Secret, UserPath
from penstock.sdk.kit.tls import Tls

if TYPE_CHECKING:
    from pulsar import Authentication, Client

ENCRYPTED = "pulsar+ssl"
_SCHEMES = {"pulsar": 6650, ENCRYPTED: 6651}


class OAuth2(Config):
    """Client credentials, for which an issuer gives tokens."""

    issuer_url: str
    """Where tokens are issued."""
    key_file: UserPath | None = None
    """A JSON file with `client_id` and `client_secret`."""
    client_id: str | None = None
    """Who we are, instead of `key_file`."""
    client_secret: Secret | None = None
    """What proves it."""
    audience: str | None = None
    """Whom the tokens are for."""
    scope: str | None = None
    """What the tokens allow."""

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.client_id is None) != (self.client_secret is None):
            raise ValueError("client_id and client_secret need each other")
        if (self.key_file is None) == (self.client_id is None):
            raise ValueError("give either key_file, or client_id and client_secret")
        return self


class ConnectionConfig(Config):
    url: str
    """The broker, as `pulsar://host:port`, or several as `pulsar://one:6650,other:6650`;
    `pulsar+ssl://` encrypts."""
    token: Secret | None = None
    """A token, as a JWT."""
    username: str | None = None
    """The user, where brokers ask for names and passwords."""
    password: Secret | None = None
    """The user's password."""
    oauth2: OAuth2 | None = None
    """An issuer of tokens."""
    tls: Tls = Tls()
    """Whom to trust, for `pulsar+ssl://`; a certificate of our own is who we are."""
    listener_name: str | None = None
    """Which of the addresses that brokers advertise is reached from here."""
    timeout: Duration = Field(default=10.0, ge=1)
    """How long the broker may take to answer."""

    @field_validator("url")
    @classmethod
    def _url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.netloc:
            raise ValueError("expected pulsar://HOST or pulsar+ssl://HOST, with :PORT")
        if "@" in parts.netloc:
            raise ValueError("write the user as the options username and password")
        for each in parts.netloc.split(","):
            urlsplit(f"//{each}").port  # noqa: B018  raises ValueError
        return url

    @model_validator(mode="after")
    def _login(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password need each other")
        if sum(way is not None for way in (self.token, self.username, self.oauth2)) > 1:
            raise ValueError("give one of token, username and oauth2")
        if self.tls != Tls() and not self.encrypted:
            raise ValueError(f"tls is for {ENCRYPTED}://")
        if self.tls.key_password is not None:
            raise ValueError("the client cannot use a key with a password")
        return self

    @property
    def encrypted(self) -> bool:
        return urlsplit(self.url).scheme == ENCRYPTED

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Each broker's host and port."""
        parts = urlsplit(self.url)
        split = [urlsplit(f"//{each}") for each in parts.netloc.split(",")]
        return [(each.hostname or "", each.port or _SCHEMES[parts.scheme]) for each in split]

    @property
    def shown(self) -> str:
        """The broker, for messages."""
        return f"the Pulsar broker {urlsplit(self.url).netloc}"

    @property
    def login(self) -> Login | None:
        """What we say of ourselves in the greeting; None where that is not known."""
        if self.oauth2 is not None:
            return None
        if self.token is not None:
            return Login("token", self.token.reveal())
        if self.username is not None:
            return Login("basic", f"{self.username}:{revealed(self.password)}")
        return Login("tls" if self.tls.certificate else "none")


def connected(config: ConnectionConfig) -> Client:
    """A client of a broker that has greeted us. Raises Transient or Permanent.

    The library itself would take a refusal for a broker that is slow.
    """
    import pulsar

    greet(config)
    tls = config.tls
    return pulsar.Client(
        config.url, authentication=_authentication(config),
        operation_timeout_seconds=max(1, round(config.timeout)),
        connection_timeout_ms=round(config.timeout * 1000),
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
        stats_interval_in_seconds=0, listener_name=config.listener_name,
        tls_trust_certs_file_path=tls.ca, tls_allow_insecure_connection=not tls.verify,
        tls_validate_hostname=tls.verify and tls.verify_hostname,
        tls_private_key_file_path=tls.key, tls_certificate_file_path=tls.certificate,
    )  # fmt: skip


def _authentication(config: ConnectionConfig) -> Authentication | None:
    import pulsar

    if config.token is not None:
        return pulsar.AuthenticationToken(config.token.reveal())
    if config.username is not None:
        return pulsar.AuthenticationBasic(config.username, revealed(config.password))
    if config.oauth2 is not None:
        return pulsar.AuthenticationOauth2(json.dumps(_issued(config.oauth2)))
    if config.tls.certificate is not None:
        return pulsar.AuthenticationTLS(config.tls.certificate, config.tls.key)
    return None


def _issued(oauth2: OAuth2) -> dict[str, Any]:
    if oauth2.key_file is not None and not Path(oauth2.key_file).is_file():
        raise Permanent(
            f"cannot read the file of oauth2: key_file: there is no {oauth2.key_file}",
            code="login",
            hint="a relative path begins at the pipeline file; every machine needs the file",
        )
    given = {
        "issuer_url": oauth2.issuer_url,
        "private_key": oauth2.key_file,
        "client_id": oauth2.client_id,
        "client_secret": revealed(oauth2.client_secret),
        "audience": oauth2.audience,
        "scope": oauth2.scope,
    }
    return {name: value for name, value in given.items() if value is not None}
