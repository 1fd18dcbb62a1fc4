"""The listeners of a Kafka broker that require a password, TLS or both."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from servers.certificates import Authority

if TYPE_CHECKING:
    from servers.kafka import Kafka

Protocol = Literal["ssl", "sasl_plaintext", "sasl_ssl"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

USER = "tests"
PASSWORD = "right"
SESSION_SECONDS = 5
"""The broker ends a connection with a token that is not renewed within this time."""
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_LOGINS: dict[Mechanism, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    f'unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="{PASSWORD}";',
}
SCRAM_USERS = [
    word
    for mechanism in _LOGINS
    if mechanism.startswith("SCRAM")
    for word in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
]
"""Arguments for the tool that formats a broker's data."""


class Listener:
    """A broker as clients of one protocol see it; all else is the broker's.

    One user may log in by any mechanism, where the protocol has a login. With `ssl` alone a client
    needs a certificate of the broker's authority. A token of OAUTHBEARER is not signed; its scope
    stands for the password.
    """

    def __init__(self, broker: Kafka, protocol: Protocol, port: int) -> None:
        self.broker, self.protocol, self.port = broker, protocol, port

    def __getattr__(self, name: str) -> Any:
        return getattr(self.broker, name)

    @property
    def address(self) -> str:
        """Host and port, as in `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @cached_property
    def certificate(self) -> Path:
        """The key and the certificate of a client."""
        return self.broker.authority.issue("client")

    def client(self, mechanism: Mechanism = "PLAIN", password: str = PASSWORD) -> dict[str, Any]:
        """The properties of librdkafka that let a client in; another password does not."""
        properties = {"bootstrap.servers": self.address, "security.protocol": self.protocol}
        if self.protocol.endswith("ssl"):
            properties["ssl.ca.location"] = str(self.broker.authority.root)
        if self.protocol == "ssl":
            certificate = str(self.certificate)
            return properties | {
                "ssl.certificate.location": certificate,
                "ssl.key.location": certificate,
            }
        if mechanism == "OAUTHBEARER":
            return properties | {
                "sasl.mechanism": mechanism,
                "enable.sasl.oauthbearer.unsecure.jwt": True,
                "sasl.oauthbearer.config": f"principal={USER} scope={password}",
            }
        return properties | {
            "sasl.mechanism": mechanism,
            "sasl.username": USER,
            "sasl.password": password,
        }


def properties(authority: Authority) -> dict[str, Any]:
    """The properties of a broker with a listener of each protocol."""
    given: dict[str, Any] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.issue("broker"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.root,
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms": 1000 * SESSION_SECONDS,
    }
    for protocol in ("sasl_plaintext", "sasl_ssl"):
        listener = f"listener.name.{protocol}"
        given[f"{listener}.sasl.enabled.mechanisms"] = ",".join(_LOGINS)
        for mechanism, login in _LOGINS.items():
            given[f"{listener}.{mechanism.lower()}.sasl.jaas.config"] = login
    return given
