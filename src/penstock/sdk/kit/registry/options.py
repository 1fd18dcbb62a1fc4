"""How a registry is reached, and what is asked of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from penstock.core.secret import Secret, revealed
from penstock.core.units import Duration
from penstock.sdk.config import Config
from penstock.sdk.kit.address import url_of
from penstock.sdk.kit.registry.frame import LARGEST
from penstock.sdk.kit.tls import Tls

RETRIES = 2
"""How often a question is asked again, at each URL."""


SchemaId = Annotated[int, Field(ge=1, le=LARGEST)]


class RegistryOptions(Config):
    """The registry that knows the schemas of payloads, such as Confluent's, Karapace or Apicurio.

    Each payload then begins with a zero byte and the id of its schema.
    """

    url: str | list[str]
    """Where its API is; of several URLs the first that answers is taken."""
    subject: str | None = None
    """The name under which the schema is kept; `TOPIC-value` where the node has one topic."""
    version: int | Literal["latest"] = "latest"
    """Which version of the subject gives a source its columns, and is written with
    `register: false`."""
    registers: bool = Field(default=True, alias="register")
    """Whether a sink registers its schema; otherwise that of the subject is used, and must fit."""
    replace_ids: dict[SchemaId, SchemaId] = {}
    """Ids in payloads that a source reads as others, as in `{12: 15}`: payloads that name schema
    12 were written by schema 15. Each is replaced once."""
    compatibility: (
        Literal[
            "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL",
            "FULL_TRANSITIVE",
        ]
        | None
    ) = None  # fmt: skip
    """What later versions of the subject must be compatible with; a sink sets it at its start."""
    username: str | None = None
    """The user, or the key of an API."""
    password: Secret | None = None
    """The user's password, or the secret of the key."""
    token: Secret | None = None
    """A bearer token, instead of a user."""
    tls: Tls | bool = True
    """Whom to trust where the URL begins with https, and who we are."""
    timeout: Duration = Field(default=10.0, gt=0)
    """How long an answer may take; questions are asked three times."""

    @field_validator("url")
    @classmethod
    def _urls(cls, url: str | list[str]) -> str | list[str]:
        urls = [url] if isinstance(url, str) else url
        for each in urls:
            url_of("http", "https")(each)
            if "," in each:
                raise ValueError("give several URLs as a list")
        if not urls:
            raise ValueError("give at least one URL")
        return url

    @field_validator("replace_ids")
    @classmethod
    def _others(cls, ids: dict[int, int]) -> dict[int, int]:
        for id_, other in ids.items():
            if id_ == other:
                raise ValueError(f"{id_} is replaced by itself: give the id that is meant")
        return ids

    @model_validator(mode="after")
    def _who(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password need each other")
        if self.token is not None and self.username is not None:
            raise ValueError("give either a token, or username and password")
        return self

    @property
    def address(self) -> str:
        """The URLs as one text."""
        return self.url if isinstance(self.url, str) else ",".join(self.url)

    def properties(self) -> dict[str, Any]:
        """As Confluent's client wants them. Raises Permanent if a file of `tls` is not there."""
        tls = self.tls if isinstance(self.tls, Tls) else Tls()
        tls.need_files()
        found: dict[str, Any] = {
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
        if self.username is not None:
            found["basic.auth.user.info"] = f"{self.username}:{revealed(self.password)}"
        if self.token is not None:
            found["bearer.auth.credentials.source"] = "STATIC_TOKEN"
            found["bearer.auth.token"] = revealed(self.token)
            found["bearer.auth.logical.cluster"] = ""
        return {name: value for name, value in found.items() if value is not None}
