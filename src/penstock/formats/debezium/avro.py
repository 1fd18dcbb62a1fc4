"""Change events of Debezium as Avro."""

from __future__ import annotations

import copy
from typing import Any, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.core.errors import PlanError
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.debezium.format import ChangeEvents
from penstock.formats.debezium.unavailable import Unavailable
from penstock.sdk import Component, Context, Format
from penstock.sdk.config import UserFile
from penstock.sdk.encoding.time_options import TimeOptions
from penstock.sdk.schema_registry import RegistryOptions

_UNCHANGED = ("registry", "timestamps", "nanoseconds")
"""The options that are those of the format `avro`."""


class DebeziumAvroConfig(TimeOptions):
    """Options of `debezium_avro`."""

    datum: dict[str, Any] | list[Any] | str | None = Field(default=None, alias="schema")
    """The Avro schema of an event, as JSON text or as YAML."""
    schema_file: UserFile | None = None
    """The file of the Avro schema of an event (`.avsc`)."""
    registry: RegistryOptions | None = None
    """A schema registry: each payload starts with the ID of its schema."""
    before: Literal["partial", "complete"] = "partial"
    """Whether the row before each update and delete has all columns. If rows are `complete`, a
    condition drops those that do not meet it. If they are `partial`, it deletes such rows, which
    may have met the condition before."""
    unavailable: Unavailable = "reject"
    """For a value that PostgreSQL did not send, because an update left it unchanged (TOAST), and
    that is not in the row before: a bad record, or `null`."""
    time_column: str | None = None
    """A TIMESTAMP column with the time of the event, `ts_ms`."""

    @model_validator(mode="after")
    def _check_schema(self) -> Self:
        if self.datum is not None and self.schema_file is not None:
            raise ValueError("schema and schema_file are mutually exclusive")
        return self


class DebeziumAvro(ChangeEvents, Format[DebeziumAvroConfig]):
    """Change events of Debezium as Avro, one per payload.

    ```yaml
    format: {type: debezium_avro, registry: {url: "http://localhost:8081"}}
    ```

    Events are those of `debezium_json`, encoded as in the format `avro`: with the schema of
    `registry`, `schema` or `schema_file`. The names of Kafka Connect in the schema, such as
    `io.debezium.time.MicroTimestamp`, have the units of times. Undeclared columns are the fields of
    the record `after`. A sink writes with this schema, or with a schema derived from its columns.
    """

    def __init__(self, config: DebeziumAvroConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        unchanged = {name: getattr(config, name) for name in _UNCHANGED}
        options = {"schema": config.datum, "schema_file": config.schema_file}
        inner = AvroConfig.model_validate(options).model_copy(update=unchanged)
        created: Component[Any] = Avro.create(inner, context)
        assert isinstance(created, Format)
        self.inner = created

    def validate(self) -> None:
        self.inner.validate()

    def check(self) -> None:
        self.inner.check()

    def declared_schema(self) -> pa.Schema | None:
        event = self.inner.declared_schema()
        return None if event is None else self._rows_of(event)

    def infer_schema(self, payloads: pa.BinaryArray) -> pa.Schema | None:
        event = self.inner.infer_schema(payloads)
        return None if event is None else self._rows_of(event)

    def offline(self) -> DebeziumAvro:
        copied = copy.copy(self)
        copied.inner = self.inner.offline()
        return copied

    def _rows_of(self, event: pa.Schema) -> pa.Schema:
        """Returns the columns of the rows of events. Raises PlanError for another schema."""
        images = [name for name in ("before", "after") if name in event.names]
        if len(images) < 2 or not all(pa.types.is_struct(event.field(n).type) for n in images):
            raise PlanError(
                "expected the schema of a change event, with the records before and after",
                code="no-change",
                hint="Set format to avro for records that are not events of Debezium.",
            )
        after = pa.schema(list(event.field("after").type), event.metadata)
        return self.columns_of(after).with_roles()
