"""Lookup tables of keys: values that a format decodes, and hashes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.client import connection, create_client
from penstock.connectors.redis.config import RedisSourceConfig
from penstock.connectors.redis.errors import row_error, translate_errors
from penstock.core.errors import OptionError, PlanError, raise_all
from penstock.core.names import written_name
from penstock.sdk import (
    Capability,
    Context,
    DecodeError,
    LookupSource,
    Read,
    bisect_failures,
)
from penstock.sdk.columns.conversion import TextConversion, cast
from penstock.sdk.columns.names import find_name
from penstock.sdk.columns.template import Template
from penstock.sdk.lookup import found_payloads

METADATA = pa.schema([("key", pa.string())])


class KeySource(LookupSource[RedisSourceConfig]):
    """Looks up values of keys (MGET), fields of hashes (HGET), or hashes as rows (HGETALL)."""

    capabilities = frozenset({Capability.LOOKUP_BY_KEY})
    parallelism = "the tasks of the stream"
    acknowledges = None
    extra = "redis"
    client_modules = ("redis",)

    def __init__(self, config: RedisSourceConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        self._has_rows = config.hash is not None and "field" not in config.model_fields_set
        added = Capability.ROWS if self._has_rows else Capability.BYTES
        self.capabilities = self.capabilities | {added}

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def prepare_lookup(self) -> None:
        if not self.primary_key:
            raise PlanError(
                "a lookup table of Redis is read by key, and no primary key is declared",
                code="missing-option",
                hint="Set primary_key: [COLUMN], in SQL NAME TEXT METADATA FROM 'key' PRIMARY KEY.",
            )

    def validate(self) -> None:
        super().validate()
        raise_all(self._template_errors())

    def _template_errors(self) -> Iterator[OptionError | PlanError]:
        columns = [*(self.columns or ())]
        columns += [
            METADATA.field(name).with_name(column)
            for column, name in self.metadata_columns.items()
            if name in METADATA.names
        ]
        for option, template in self._templates().items():
            if self.columns is not None and option in self.config.model_fields_set:
                yield from template.check(pa.schema(columns), option)
        used = {name for template in self._templates().values() for name in template.columns}
        wrong = sorted(used ^ {*self.primary_key})
        if wrong and self.primary_key:
            option = "hash" if self.config.hash is not None else "key"
            yield OptionError.of(
                *((option,) if option in self.config.model_fields_set else ("primary_key",)),
                message=f"expected the columns of the primary key, "
                f"{', '.join(self.primary_key)}, found {', '.join(sorted(used)) or 'none'}",
                code="wrong-key",
                hint="Write each column of the primary key in braces, as in "
                f'"{written_name(self.context.node)}:{{{self.primary_key[0]}}}".',
            )
        if self._has_rows:
            for field in columns:
                if pa.types.is_nested(field.type):
                    yield PlanError(
                        f'column "{field.name}" is nested, and the fields of a hash are texts',
                        code="wrong-type", hint="Declare the column as STRING.",
                    )  # fmt: skip

    def _templates(self) -> dict[str, Template]:
        config = self.config
        if config.hash is None:
            return (
                {"key": config.key or Template(f"{{{self.primary_key[0]}}}")}
                if (config.key or self.primary_key)
                else {}
            )
        return {"hash": config.hash} if self._has_rows else {
            "hash": config.hash, "field": Template(config.field),
        }  # fmt: skip

    def check(self) -> None:
        with connection(self.config) as client:
            client.ping()

    def open(self) -> Any:
        return create_client(self.config)

    def lookup(self, client: Any, keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        names = [str(name) for name in self._rendered("hash" if self.config.hash else "key", keys)]
        if self._has_rows:
            return self._hashes(client, names, keys, read)
        with translate_errors(self.config):
            if self.config.hash is not None:
                fields = self._rendered("field", keys)
                commands = [
                    ("HGET", name, field) for name, field in zip(names, fields, strict=True)
                ]
                values = self._execute(client, commands, names, read)
            elif self.config.cluster:
                values = client.mget_nonatomic(names)
            else:
                values = client.mget(names)
        found = [(value, names[i], i) for i, value in enumerate(values) if value is not None]
        return found_payloads(found, read.metadata)

    def _hashes(
        self, client: Any, names: list[str], keys: pa.RecordBatch, read: Read
    ) -> pa.RecordBatch:
        """Returns hashes as rows. A field that does not fit its column makes a bad row."""
        with translate_errors(self.config):
            commands = [("HGETALL", name) for name in names]
            hashes = self._execute(client, commands, names, read)
        assert self.columns is not None
        schema = self.columns
        numbers = [number for number, fields in enumerate(hashes) if fields]

        def convert(start: int, stop: int) -> pa.RecordBatch:
            part = numbers[start:stop]
            return pa.RecordBatch.from_arrays(
                [self._column(f, keys, [(n, hashes[n]) for n in part]) for f in schema],
                schema=schema,
            )

        batches, kept = [], []
        for start, stop, result in bisect_failures(len(numbers), convert, _decode_error):
            if isinstance(result, pa.RecordBatch):
                batches.append(result)
                kept += numbers[start:stop]
            else:
                number = numbers[start]
                texts = {_text(k): _text(v) for k, v in hashes[number].items()}
                read.reject(json.dumps(texts).encode(), names[number], number, result)
        rows = pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema)
        for name in read.metadata:
            rows = rows.append_column(name, pa.array([names[n] for n in kept], pa.string()))
        return rows

    def _column(
        self, field: pa.Field, keys: pa.RecordBatch, hashes: list[tuple[int, Any]]
    ) -> pa.Array:
        if field.name in keys.schema.names:
            taken = keys.column(field.name).take(pa.array([n for n, _ in hashes], pa.int64()))
            return cast(taken, field.type)
        values = [_field_value(fields, field.name) for _, fields in hashes]
        if pa.types.is_binary(field.type):
            return pa.array(values, field.type)
        texts = pa.array([value and value.decode() for value in values], pa.string())
        return TextConversion()(texts, field.type)

    def _execute(
        self, client: Any, commands: list[tuple[Any, ...]], names: list[str], read: Read
    ) -> list[Any]:
        """Returns the response of each command; None for a key of another type, which is bad."""
        pipeline = client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        responses: list[Any] = list(pipeline.execute(raise_on_error=False))
        for number, response in enumerate(responses):
            if isinstance(response, Exception):
                error = row_error(response, self.config)
                read.reject(None, names[number], number, error)
                responses[number] = None
        return responses

    def _rendered(self, option: str, keys: pa.RecordBatch) -> list[str | None]:
        return self._templates()[option].render(keys)


def _field_value(fields: dict[bytes, bytes], column: str) -> bytes | None:
    """Returns the field of a hash for a column, see `sdk.columns.names`. Raises AmbiguousName."""
    value = fields.get(column.encode())
    if value is not None:
        return value
    names = list(fields)
    index = find_name(column, [_text(name) for name in names])
    return None if index < 0 else fields[names[index]]


def _decode_error(error: Exception) -> DecodeError:
    return DecodeError(str(error), code="wrong-type")


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
