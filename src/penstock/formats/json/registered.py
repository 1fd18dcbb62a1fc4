"""JSON whose payloads start with the ID of their JSON Schema in a registry."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.formats.json.decimals import Forms
from penstock.formats.json.plain import PlainJson
from penstock.formats.json.schema import columns_of, json_schema
from penstock.sdk.columns.conform import error_text
from penstock.sdk.schema_registry import Draft, Registered, RegistryFormat
from penstock.sdk.schema_registry.compatibility import check_fields
from penstock.sdk.schema_registry.format import Decode, Encoder
from penstock.sdk.schema_registry.wire_format import Origin


class RegisteredJson(RegistryFormat):
    """JSON after a header, read and written as without a registry."""

    kind = "JSON"

    @property
    def _json(self) -> PlainJson:
        return PlainJson(self.config.model_copy(update={"registry": None}), self.context)

    def columns_of(self, schema: Registered) -> pa.Schema:
        references: dict[str, Any] = {}
        self._collect(schema, references)
        return columns_of(_parse(schema), references, self.config.timestamps)

    def _collect(self, schema: Registered, references: dict[str, Any]) -> None:
        for name, referenced in self.registry.get_references(schema):
            if name not in references:
                references[name] = _parse(referenced)
                self._collect(referenced, references)

    def decoder(self, origin: Origin, writer: Registered, reader: Registered | None) -> Decode:
        return self._json.decode

    def encoder(self, columns: pa.Schema, schema: Registered | None) -> Encoder:
        text = json.dumps(json_schema(columns, Forms(self.config.timestamps, self.config.decimals)))
        if schema is not None:
            text = schema.text
            closed = _parse(schema).get("additionalProperties", True) is False
            check_fields(columns, self.columns_of(schema), "the JSON Schema", closed)
        return Encoder(self._json.encode, Draft(self.kind, text))


def _parse(schema: Registered) -> Any:
    try:
        return json.loads(schema.text)
    except ValueError as error:
        message = f"not a JSON Schema: {error_text(error)}"
        raise PlanError(message, code="invalid-schema") from error
