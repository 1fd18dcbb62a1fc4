"""The transform `encode`: encodes columns as a column of payloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa

from penstock.core.errors import OptionError, raise_all
from penstock.sdk import Config, Failure
from penstock.sdk.columns.checks import check_columns
from penstock.sdk.columns.names import fold
from penstock.sdk.schema_registry import RegistryFormat
from penstock.sdk.transform import PayloadTransform
from penstock.transforms.payloads import check_format

_OF_TEXT = ("json", "csv", "text")
"""The formats whose payloads are text."""


class EncodeConfig(Config):
    column: str
    """The column of the payloads, which is added as the last one."""
    format: str | dict[str, Any]
    """The format of the payloads: a name, or a map of `type` and options."""
    columns: list[str] = []
    """The columns to encode, by default all."""
    keep: bool = False
    """Keep the encoded columns in the output."""
    column_type: Literal["STRING", "BINARY"] | None = None
    """The type of the payloads, by default STRING for `json`, `csv` and `text`, and BINARY for
    other formats and with a schema registry."""


class Encode(PayloadTransform[EncodeConfig]):
    """Encodes columns of a row as one column of payloads.

    The columns that are not encoded are kept, and so is the operation column of changes. A row that
    cannot be encoded becomes a dead letter.

    Parallel by partition.

    ```yaml
    type: encode
    from: orders
    columns: [customer, items]
    column: body
    format: json
    ```
    """

    deterministic = True

    def validate(self) -> None:
        super().validate()
        check_format(self)

    def output(self, schema: pa.Schema) -> pa.Schema:
        raise_all(check_columns(self.config.columns, schema, "columns"))
        kept = self._kept(schema)
        if fold(self.config.column) in {fold(field.name) for field in kept}:
            raise OptionError.of(
                "column",
                message=f'the output has the column "{self.config.column}" of the input, too',
                code="duplicate-column",
                hint="Set column to another name.",
            )
        return pa.schema([*kept, pa.field(self.config.column, self._type())])

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | Failure]:
        assert self.format is not None
        schema = self.output(batch.schema)
        encoded = self.format.encode(batch.select(self._encoded(batch.schema)))
        kept = batch.select(schema.names[:-1])
        if encoded.index is not None:
            kept = kept.take(encoded.index)
        payloads = encoded.payloads.cast(schema.types[-1])
        yield pa.RecordBatch.from_arrays([*kept.columns, payloads], schema=schema)
        yield from encoded.failures

    def _type(self) -> pa.DataType:
        is_text = self.config.format in _OF_TEXT and not isinstance(self.format, RegistryFormat)
        type_ = self.config.column_type or ("STRING" if is_text else "BINARY")
        return pa.string() if type_ == "STRING" else pa.binary()

    def _encoded(self, schema: pa.Schema) -> list[str]:
        operation = None if self.changes is None else self.changes.column
        return self.config.columns or [name for name in schema.names if name != operation]

    def _kept(self, schema: pa.Schema) -> list[pa.Field]:
        encoded = () if self.config.keep else self._encoded(schema)
        return [field for field in schema if field.name not in encoded]
