"""How a cluster is reached: brokers, TLS, SASL, and librdkafka's own properties."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, field_validator, model_validator

from penstock.core.secret import revealed
from penstock.sdk import Config, Secret
from penstock.sdk.kit.accesskeys import need_whole
from penstock.sdk.kit.tls import Tls


def tls_properties(tls: Tls) -> dict[str, Any]:
    """As librdkafka's properties."""
    found: dict[str, Any] = {
        "ssl.ca.location": tls.ca,
        "ssl.certificate.location": tls.certificate,
        "ssl.key.location": tls.key,
        "ssl.key.password": revealed(tls.key_password),
    }
    found = {name: value for name, value in found.items() if value is not None}
    if not tls.verify:
        found["enable.ssl.certificate.verification"] = False
    if not tls.verify_hostname:
        found["ssl.endpoint.identification.algorithm"] = "none"
    return found


class Sasl(Config):
    """Who the client is."""

    mechanism: Literal[
        "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"
    ] = "PLAIN"  # fmt: skip
    """How the client proves it. OAUTHBEARER asks `token_url` for a token; AWS_MSK_IAM makes one
    with keys of Amazon's, which needs `penstock[aws]`."""
    username: str | None = None
    """The user, or the client id of OAUTHBEARER."""
    password: Secret | None = None
    """The user's password, or the client secret of OAUTHBEARER."""
    token_url: str | None = None
    """Where OAUTHBEARER gets its tokens, by the client credentials grant of OpenID Connect."""
    scope: str | None = None
    """The scope to ask for with OAUTHBEARER."""
    extensions: dict[str, str] = {}
    """Extensions that brokers want with OAUTHBEARER, such as `logicalCluster`."""
    region: str | None = None
    """The region of AWS_MSK_IAM, as in `eu-west-1`."""
    access_key: str | None = None
    """The id of the access key of AWS_MSK_IAM; without it credentials are found as Amazon's own
    tools do."""
    secret_key: Secret | None = None
    """The secret that belongs to the access key."""
    session_token: Secret | None = None
    """The token of temporary credentials."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        need_whole(self.access_key, self.secret_key, self.session_token)
        self._need_own("OAUTHBEARER", "token_url", "scope", "extensions")
        self._need_own("AWS_MSK_IAM", "region", "access_key")
        if self.mechanism == "AWS_MSK_IAM":
            if not self.region:
                raise ValueError("AWS_MSK_IAM needs the region of the cluster, as in eu-west-1")
            if self.username is not None or self.password is not None:
                raise ValueError("AWS_MSK_IAM takes access_key and secret_key, or finds them")
        elif self.username is None or self.password is None:
            if self.mechanism != "OAUTHBEARER":
                raise ValueError(f"{self.mechanism} needs username and password")
            if self.token_url is not None:
                raise ValueError(
                    "token_url needs username and password: the client's id and secret"
                )
        return self

    def _need_own(self, mechanism: str, *options: str) -> None:
        """Raises ValueError for an option of another mechanism."""
        for name in options:
            if getattr(self, name) and self.mechanism != mechanism:
                raise ValueError(f"{name} is for mechanism: {mechanism}")

    def properties(self) -> dict[str, Any]:
        """As librdkafka's properties."""
        password = revealed(self.password)
        if self.mechanism == "AWS_MSK_IAM":
            return {"sasl.mechanism": "OAUTHBEARER"}
        found: dict[str, Any] = {"sasl.mechanism": self.mechanism}
        if self.mechanism != "OAUTHBEARER":
            return {**found, "sasl.username": self.username, "sasl.password": password}
        if self.token_url is not None:
            found |= {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": self.token_url,
                "sasl.oauthbearer.client.id": self.username,
                "sasl.oauthbearer.client.secret": password,
            }
        if self.scope is not None:
            found["sasl.oauthbearer.scope"] = self.scope
        if self.extensions:
            told = ",".join(f"{name}={value}" for name, value in self.extensions.items())
            found["sasl.oauthbearer.extensions"] = told
        return found


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Property = Annotated[Secret, BeforeValidator(_as_text)]
"""A value that may be a secret, and so is never printed."""

OURS = {
    "bootstrap.servers": "brokers",
    "metadata.broker.list": "brokers",
    "group.id": "group",
    "isolation.level": "isolation",
    "auto.offset.reset": "reset",
    "compression.type": "compression",
    "compression.codec": "compression",
    "partitioner": "partitioner",
    "transactional.id": "transactional_id",
    "transaction.timeout.ms": "transaction_timeout",
}
"""Properties that are options of their own."""
FIXED = ("enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof")


class ConnectionConfig(Config):
    brokers: str | list[str]
    """One or more brokers to begin with, as `host:port`; the others are found through them."""
    tls: Tls | bool = False
    """`true` encrypts the connection; a map also says whom to trust, and who we are."""
    sasl: Sasl | None = None
    """How to log in: with a user's password, or with a token."""
    properties: dict[str, Property] = {}
    """Any other property of librdkafka, by its own name, such as `client.id`."""

    @field_validator("brokers")
    @classmethod
    def _some(cls, brokers: str | list[str]) -> str | list[str]:
        if not brokers or not all(brokers):
            raise ValueError("give at least one broker, as host:port")
        return brokers

    @field_validator("properties")
    @classmethod
    def _not_ours(cls, properties: dict[str, Secret]) -> dict[str, Secret]:
        for name in properties:
            if OURS.get(name) in cls.model_fields:
                raise ValueError(f"write {name} as the option {OURS[name]}, beside properties")
            if name in OURS:
                raise ValueError(f"{name} has no use here")
            if name in FIXED:
                raise ValueError(
                    f"{name} cannot be set: positions are kept in the pipeline's state"
                )
        return properties

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if self.signs and not self.tls:
            raise ValueError("AWS_MSK_IAM needs tls: true, so that nobody sees the tokens")
        return self

    @property
    def signs(self) -> bool:
        """Whether tokens are made here."""
        return self.sasl is not None and self.sasl.mechanism == "AWS_MSK_IAM"

    @property
    def address(self) -> str:
        """The brokers as one text, for messages."""
        return self.brokers if isinstance(self.brokers, str) else ",".join(self.brokers)

    def need_files(self) -> None:
        """Raises Permanent if a file of `tls` is not there."""
        if isinstance(self.tls, Tls):
            self.tls.need_files()

    def client_properties(self) -> dict[str, Any]:
        """What every client of the cluster is configured with."""
        tls = self.tls if isinstance(self.tls, Tls) else Tls()
        security = f"{'SASL_' * bool(self.sasl)}{'SSL' if self.tls else 'PLAINTEXT'}"
        return {
            "bootstrap.servers": self.address,
            "security.protocol": security,
            "client.id": "penstock",
            "log_level": 0,
            **(tls_properties(tls) if self.tls else {}),
            **(self.sasl.properties() if self.sasl else {}),
        }

    def given(self) -> dict[str, str]:
        """The user's own properties, which go before ours."""
        return {name: value.reveal() for name, value in self.properties.items()}
