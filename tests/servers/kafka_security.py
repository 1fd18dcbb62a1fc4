"""How a Kafka broker of the tests tells its clients apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from servers.certificates import Authority

Protocol = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

USER = "tests"
PASSWORD = "right"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_LOGINS: dict[Mechanism, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    f'unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="{PASSWORD}";',
}


class Security:
    """One user, who may log in by any mechanism; certificates by an authority of its own.

    A token of OAUTHBEARER is not signed; its scope stands for the password.
    """

    def __init__(self, protocol: Protocol, directory: Path) -> None:
        self.protocol = protocol
        self.authority = Authority(directory) if protocol.endswith("ssl") else None

    def broker(self) -> dict[str, Any]:
        """Properties of a broker that asks for it."""
        properties: dict[str, Any] = {}
        if self.authority is not None:
            properties |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": self.authority.issue("broker"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.authority.root,
                "ssl.client.auth": "requested",
            }
        if self.protocol.startswith("sasl"):
            listener = f"listener.name.{self.protocol}"
            properties[f"{listener}.sasl.enabled.mechanisms"] = ",".join(_LOGINS)
            for mechanism, login in _LOGINS.items():
                properties[f"{listener}.{mechanism.lower()}.sasl.jaas.config"] = login
        return properties

    def format(self) -> list[str]:
        """Arguments for the tool that formats the broker's data."""
        if not self.protocol.startswith("sasl"):
            return []
        user = f"[name={USER},password={PASSWORD}]"
        scram = [each for each in _LOGINS if each.startswith("SCRAM")]
        return [word for each in scram for word in ("--add-scram", f"{each}={user}")]

    def client(self, mechanism: Mechanism, password: str) -> dict[str, Any]:
        """Properties of librdkafka for a client that logs in."""
        properties: dict[str, Any] = {"security.protocol": self.protocol}
        if self.authority is not None:
            properties["ssl.ca.location"] = str(self.authority.root)
        if not self.protocol.startswith("sasl"):
            return properties
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
