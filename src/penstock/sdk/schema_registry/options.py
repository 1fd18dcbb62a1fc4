"""Options of a schema registry."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from penstock.core.secret import Secret, revealed
from penstock.core.units import PositiveDuration
from penstock.sdk.config import Config
from penstock.sdk.network.address import url_validator
from penstock.sdk.network.auth import Auth
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls
from penstock.sdk.schema_registry.wire_format import MAX_ID

RETRIES = 2
"""Number of retries at each URL."""


SchemaId = Annotated[int, Field(ge=1, le=MAX_ID)]


class RegistryAuth(Auth):
    """A user with a password, an API key with its secret, or a bearer token."""

    alternatives = (("username", "password"), ("token",))

    username: str | None = None
    """The user name, or the API key."""
    password: Secret | None = None
    """The password, or the secret of the API key."""
    token: Secret | None = None
    """The bearer token."""


class RegistryOptions(Config):
    """A schema registry, such as Confluent Schema Registry, Karapace or Apicurio.

    Each payload starts with a zero byte and the ID of its schema.
    """

    url: str | list[str]
    """The URL of the API. Of several URLs the first reachable URL is used."""
    subject: str | None = None
    """The subject of the schema. `TOPIC-value` by default if the node has one topic."""
    version: int | Literal["latest"] = "latest"
    """The version of the subject: for the columns of a source, and for a sink with
    `register: false`."""
    registers: bool = Field(default=True, alias="register")
    """Register the schema of a sink. Otherwise the subject's schema is used and must fit."""
    replace_ids: dict[SchemaId, SchemaId] = {}
    """Schema IDs that a source replaces, as in `{12: 15}`: payloads with the ID 12 are read by
    schema 15. Replacements are not chained."""
    compatibility: (
        Literal[
            "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL",
            "FULL_TRANSITIVE",
        ]
        | None
    ) = None  # fmt: skip
    """The compatibility level of the subject, set when a sink starts."""
    auth: RegistryAuth | None = None
    """The credentials."""
    tls: TlsOption = None
    """TLS settings. By default, the URL's scheme decides."""
    timeout: PositiveDuration = 10.0
    """The timeout of a request. A request is attempted three times."""

    @field_validator("url")
    @classmethod
    def _check_urls(cls, url: str | list[str]) -> str | list[str]:
        urls = [url] if isinstance(url, str) else url
        for address in urls:
            url_validator("http", "https", user="auth")(address)
            if "," in address:
                raise ValueError("expected a list of URLs")
        if not urls:
            raise ValueError("expected at least one URL")
        return url

    @field_validator("replace_ids")
    @classmethod
    def _check_replacements(cls, ids: dict[int, int]) -> dict[int, int]:
        for id_, other in ids.items():
            if id_ == other:
                raise ValueError(f"expected another ID as the replacement of {id_}")
        return ids

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        resolve_tls(self.tls, self._https)
        return self

    @property
    def _https(self) -> bool:
        return self.address.startswith("https:")

    @property
    def address(self) -> str:
        """The URLs, separated by commas."""
        return self.url if isinstance(self.url, str) else ",".join(self.url)

    def properties(self) -> dict[str, Any]:
        """Returns settings of Confluent's client. Raises Permanent if a TLS file is missing."""
        tls = resolve_tls(self.tls, self._https) or Tls()
        tls.check_files()
        settings: dict[str, Any] = {
            "url": self.address,
            "timeout": self.timeout,
            "max.retries": RETRIES,
            "retries.wait.ms": 200,
            "retries.max.wait.ms": 1000,
            "ssl.ca.location": tls.ca if tls.verify else False,
            "ssl.certificate.location": tls.certificate,
            "ssl.key.location": tls.key,
            "ssl.key.password": revealed(tls.key_password),
        }
        auth = self.auth
        if auth is not None and auth.username is not None:
            settings["basic.auth.user.info"] = f"{auth.username}:{revealed(auth.password)}"
        if auth is not None and auth.token is not None:
            settings["bearer.auth.credentials.source"] = "STATIC_TOKEN"
            settings["bearer.auth.token"] = revealed(auth.token)
            settings["bearer.auth.logical.cluster"] = ""
        return {name: value for name, value in settings.items() if value is not None}
