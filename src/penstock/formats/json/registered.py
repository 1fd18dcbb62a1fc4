"""JSON whose payloads begin with the id of their JSON Schema in a registry."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.formats.json import Json
from penstock.formats.json.schema import columns_of, json_schema
from penstock.sdk.kit.columns import reason
from penstock.sdk.kit.registry import Draft, Registered, RegistryFormat
from penstock.sdk.kit.registry.fit import need_fields
from penstock.sdk.kit.registry.format import Decode, Encoder
from penstock.sdk.kit.registry.frame import Origin


class RegisteredJson(RegistryFormat):
    """Reads and writes the JSON behind the frame as the format without a registry does."""

    kind = "JSON"

    @property
    def _plain(self) -> Json:
        return Json(self.config.model_copy(update={"registry": None}), self.context)

    def columns_of(self, schema: Registered) -> pa.Schema:
        others: dict[str, Any] = {}
        self._collect(schema, others)
        return columns_of(_parsed(schema), others, self.config.timestamps)

    def _collect(self, schema: Registered, others: dict[str, Any]) -> None:
        for name, other in self.registry.referenced(schema):
            if name not in others:
                others[name] = _parsed(other)
                self._collect(other, others)

    def decoder(self, origin: Origin, writer: Registered, reader: Registered | None) -> Decode:
        return self._plain.decode

    def encoder(self, columns: pa.Schema, schema: Registered | None) -> Encoder:
        text = json.dumps(json_schema(columns, self.config.timestamps))
        if schema is not None:
            text = schema.text
            closed = _parsed(schema).get("additionalProperties", True) is False
            need_fields(columns, self.columns_of(schema), "the JSON Schema", closed)
        return Encoder(self._plain.encode, Draft(self.kind, text))


def _parsed(schema: Registered) -> Any:
    try:
        return json.loads(schema.text)
    except ValueError as error:
        message = f"not a JSON Schema: {reason(error)}"
        raise PlanError(message, code="invalid-schema") from error
