"""The transform `json_schema`: rows that are valid by a JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import OptionError, raise_all
from penstock.core.text import shorten
from penstock.sdk import Config, Failure, RecordError, Rejected, Transform, UserFile
from penstock.sdk.columns.checks import check_column
from penstock.sdk.columns.row_json import row_payload
from penstock.transforms.payloads import is_payload

_MOST = 5
"""The number of errors in the reason of a dead letter."""


class JsonSchemaConfig(Config):
    schema_file: UserFile
    """The file of the JSON Schema."""
    column: str | None = None
    """The column with the JSON text to validate. By default the row is validated, as JSON: times
    are ISO 8601 texts, decimals are texts, and BINARY is base64."""


class JsonSchema(Transform[JsonSchemaConfig]):
    """Keeps the rows that are valid by a JSON Schema.

    Another row becomes a dead letter (`rule-broken`) whose reason has the errors, each with its
    place in the document. With `on_error: drop` it is dropped, and with `on_error: fail` the run
    fails. A null is the JSON value null. References lead to parts of the same file.

    Parallel by partition. For conditions in SQL use `expect`, which is faster.

    ```yaml
    type: json_schema
    from: orders
    column: body
    schema_file: order.schema.json
    ```
    """

    extra = "json_schema"
    client_modules = ("jsonschema",)
    deterministic = True
    _validator: Any = None

    def validate(self) -> None:
        super().validate()
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for

        try:
            validator_for(self._schema).check_schema(self._schema)
        except SchemaError as error:
            raise self._wrong_file(f"{error.json_path}: {error.message}") from None
        except AttributeError:
            raise self._wrong_file("expected an object") from None

    def output(self, schema: pa.Schema) -> pa.Schema:
        if self.config.column is not None:
            raise_all(check_column(self.config.column, schema, "column", accepts=is_payload))
        return schema

    def open(self) -> None:
        from jsonschema.validators import validator_for
        from referencing import Registry

        # An empty registry reads no schema from other files or from the network.
        self._validator = validator_for(self._schema)(self._schema, registry=Registry())

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | Failure]:
        errors = {
            index: error
            for index in range(batch.num_rows)
            if (error := self._error(batch, index)) is not None
        }
        valid = [index for index in range(batch.num_rows) if index not in errors]
        yield batch.take(pa.array(valid, pa.int64()))
        yield from (Failure(index, error) for index, error in errors.items())

    @cached_property
    def _schema(self) -> Any:
        """The JSON Schema. It is read before the run, and sent to tasks."""
        try:
            return json.loads(Path(self.config.schema_file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise self._wrong_file(str(reason)) from None

    def _error(self, batch: pa.RecordBatch, index: int) -> RecordError | None:
        """Returns the error of a row; None for a valid one."""
        if self.config.column is None:
            text: Any = row_payload(batch, index)
        else:
            text = batch.column(self.config.column)[index].as_py()
        try:
            value = None if text is None else json.loads(text)
        except (ValueError, RecursionError) as error:
            return Rejected(f"not JSON: {error}", code="not-json")
        errors = [
            f"{error.json_path}: {shorten(error.message)}"
            for error in sorted(self._validator.iter_errors(value), key=lambda e: e.json_path)
        ]
        if not errors:
            return None
        more = f"; and {len(errors) - _MOST} more" if len(errors) > _MOST else ""
        return Rejected(
            f"the row breaks rules: {'; '.join(errors[:_MOST])}{more}", code="rule-broken"
        )

    def _wrong_file(self, problem: str) -> OptionError:
        return OptionError.of(
            "schema_file", message=f"expected a file with a JSON Schema: {problem}",
            code="invalid-schema", hint="Correct the path or the file.",
        )  # fmt: skip
