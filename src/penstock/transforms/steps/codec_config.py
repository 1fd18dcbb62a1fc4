"""The formats of payloads in the transform `steps`."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from penstock.core.paths import LocatedPath
from penstock.sdk import Config
from penstock.sdk.schema_registry.options import RegistryAuth


class Codec(Config):
    """A format of payloads, whose columns are those of each payload."""

    type: Literal["json", "debezium_json", "protobuf", "registry"]
    """The format: JSON, change events of Debezium, Protobuf, or records with the ID of a schema in
    a schema registry (Avro or Protobuf)."""
    files: list[LocatedPath] = []
    """Files and directories with the definitions of Protobuf messages."""
    includes: list[LocatedPath] = []
    """Directories of imported definitions."""
    message: str | None = None
    """The name of the Protobuf message."""
    url: str | None = None
    """The URL of the schema registry."""
    auth: RegistryAuth | None = None
    """The credentials of the schema registry."""

    @model_validator(mode="after")
    def _check_required(self) -> Codec:
        if self.type == "protobuf" and (not self.files or self.message is None):
            raise ValueError("protobuf requires files and message")
        if self.type == "registry" and self.url is None:
            raise ValueError("registry requires url")
        return self
