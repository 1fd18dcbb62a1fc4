"""How a broker is reached, and what its refusals mean."""

from __future__ import annotations

import ssl
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from penstock.sdk import Config, Duration, Permanent, Secret, Transient
from penstock.sdk.kit.address import url_of
from penstock.sdk.kit.tls import Tls, tls_context

CONNECT_SECONDS = 10.0
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_LOGIN = frozenset([4, 5, 134, 135, 138, 140])
_BUSY = frozenset([3, 136, 137, 151, 159])


class ConnectionConfig(Config):
    url: Annotated[str, AfterValidator(url_of(*_PORTS))]
    """The broker, as `mqtt://host:port`, or `mqtts://host:port` for TLS."""
    username: str | None = None
    """The user."""
    password: Secret | None = None
    """The user's password."""
    tls: Tls = Tls()
    """Whom to trust where the URL begins with mqtts, and who we are."""
    version: Literal["3.1.1", "5"] = "5"
    """The version of MQTT."""
    keep_alive: Duration = Field(default=60.0, ge=1)
    """How long silence may last; then the connection is made anew."""
    qos: Literal[0, 1, 2] = 1
    """The quality of service: 0 may lose messages, 1 and 2 do not."""

    @model_validator(mode="after")
    def _login(self) -> Self:
        if self.password is not None and self.username is None:
            raise ValueError("password needs username, too")
        return self

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or _PORTS[parts.scheme]

    def context(self) -> ssl.SSLContext | None:
        """For TLS; None without. Raises Permanent if a certificate cannot be used."""
        return tls_context(self.tls) if self.url.startswith("mqtts") else None

    def unreachable(self, error: BaseException | str) -> Transient | Permanent:
        """There is no connection, or none any more."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return Permanent(
                f"the certificate of {self.host} is not trusted: {error.verify_message}",
                code="tls",
                hint="tls: {ca: FILE} names those to trust",
            )
        why = str(error) or "no answer in time"
        return Transient(
            f"could not reach the MQTT broker {self.host}:{self.port}: {why}",
            code="unreachable",
            hint="is the broker running, and is the url right?",
        )

    def refused(self, code: int, said: str) -> Transient | Permanent:
        """The broker took the connection and said no."""
        message = f"the MQTT broker {self.host}:{self.port} refuses the connection: {said}"
        if code in _BUSY:
            return Transient(message, code="busy", hint="the broker may say yes later")
        login = code in _LOGIN
        hint = "look at username and password" if login else "look at version, and client_id"
        return Permanent(message, code="login" if login else "refused", hint=hint)
