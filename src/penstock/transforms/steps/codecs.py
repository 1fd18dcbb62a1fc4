"""Decoding and encoding of payloads, whose columns are known with each payload."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import DecodeError, OptionError, PlanError
from penstock.sdk import Context, Format, registry
from penstock.sdk.schema_registry.wire_format import split_header
from penstock.transforms.steps.codec_config import Codec
from penstock.transforms.steps.json_rows import decode_json, encode_json, rows_to_batch
from penstock.transforms.steps.paths import locate
from penstock.transforms.steps.sql_query import without_views


class PayloadCodec(ABC):
    """A format of payloads."""

    @abstractmethod
    def decode(self, payloads: Sequence[bytes | None]) -> pa.RecordBatch:
        """Returns the rows of payloads. Raises DecodeError."""

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        """Returns the payload of each row, by default as JSON. Raises EncodeError."""
        return encode_json(batch)

    def check(self) -> None:  # noqa: B027
        """Checks the definitions of the format. Raises UserError."""


class JsonCodec(PayloadCodec):
    """JSON objects, one a line."""

    def decode(self, payloads: Sequence[bytes | None]) -> pa.RecordBatch:
        return decode_json(payloads)


class DebeziumCodec(PayloadCodec):
    """Change events of Debezium: the row after the change, or before a delete, with its facts."""

    def decode(self, payloads: Sequence[bytes | None]) -> pa.RecordBatch:
        events = decode_json(payloads).to_pylist()
        return rows_to_batch([self._row(event) for event in events])

    def _row(self, event: dict[str, Any]) -> dict[str, Any]:
        if isinstance(event.get("payload"), dict) and "op" not in event:
            event = event["payload"]
        after, before = (_image(event.get(name)) for name in ("after", "before"))
        if event.get("op") is None or (after is None and before is None):
            raise DecodeError("the payload is not a change event of Debezium", code="no-change")
        source = event.get("source") or {}
        row = dict(after if after is not None else before or {})
        row |= {
            "op": event["op"],
            "ts_ms": event.get("ts_ms"),
            "source_db": source.get("db"),
            "source_table": source.get("table"),
        }
        for name, value in (("before", before), ("source", event.get("source"))):
            row[name] = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return row


def _image(value: Any) -> dict[str, Any] | None:
    """Returns a row of an event, which MongoDB's connector has as a JSON text."""
    if isinstance(value, str):
        value = json.loads(value)
    return value if isinstance(value, dict) else None


class FormatCodec(PayloadCodec):
    """A format of Penstock, whose columns come from definitions or from a schema registry."""

    def __init__(self, type_: str, options: Callable[[], dict[str, Any]], base: Path) -> None:
        self._type, self._options, self._base = type_, options, base
        self._format: Format[Any] | None = None

    @property
    def format(self) -> Format[Any]:
        if self._format is None:
            class_ = registry.find("format", self._type)
            config = class_.config_type(**self._options())
            format_ = class_.create(config, Context(base=self._base))
            assert isinstance(format_, Format)
            self._format = format_
        return self._format

    def check(self) -> None:
        self.format.validate()

    def decode(self, payloads: Sequence[bytes | None]) -> pa.RecordBatch:
        array = pa.array(payloads, pa.binary())
        columns = self.format.declared_schema() or self.format.infer_schema(array)
        if columns is None:
            raise DecodeError("the columns of the payload are not known", code="undecodable")
        decoded = self.format.decode(array, columns)
        for failure in decoded.failures:
            raise failure.error
        return without_views(decoded.rows)

    def encode(self, batch: pa.RecordBatch) -> list[bytes]:
        columns = self.format.declared_schema()
        if columns is not None:
            names = [name for name in columns.names if name in batch.schema.names]
            batch = batch.select(names)
            batch = pa.record_batch(
                [
                    batch.column(name).cast(columns.field(name).type)
                    if not pa.types.is_nested(columns.field(name).type)
                    else batch.column(name)
                    for name in names
                ],
                names=names,
            )
        encoded = self.format.encode(batch)
        for failure in encoded.failures:
            raise failure.error
        return [b"" if each is None else each for each in encoded.payloads.to_pylist()]


class RegistryCodec(PayloadCodec):
    """Records with the ID of a schema in a registry: Avro, Protobuf or JSON, by the schema."""

    def __init__(self, config: Codec, base: Path) -> None:
        registry_: dict[str, Any] = {"url": config.url}
        if config.auth is not None:
            registry_["auth"] = config.auth
        options: dict[str, dict[str, Any]] = {
            "protobuf": {"registry": registry_},
            "avro": {"registry": registry_},
            "json": {"registry": registry_},
        }
        if config.message:
            options["protobuf"]["message"] = config.message
        self._codecs = {
            name: FormatCodec(name, partial(dict, each), base) for name, each in options.items()
        }

    def decode(self, payloads: Sequence[bytes | None]) -> pa.RecordBatch:
        try:
            tables = [pa.Table.from_batches([self._decode_one(each)]) for each in payloads]
        except PlanError as error:
            raise DecodeError(error.message, code=error.code, hint=error.hint) from error
        merged = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
        rows: pa.RecordBatch = merged.to_batches()[0]
        return rows

    def _decode_one(self, payload: bytes | None) -> pa.RecordBatch:
        if payload is None:
            raise DecodeError("the payload is null", code="no-value")
        any_format: Any = self._codecs["avro"].format
        origin, _ = split_header(payload, messages=False)
        kind = any_format.registry.get_schema(origin.id).kind.lower()
        format_: Any = self._codecs.get(kind, self._codecs["json"]).format
        decoded = format_.decode(pa.array([payload], pa.binary()), format_.written_columns(payload))
        for failure in decoded.failures:
            raise failure.error
        return without_views(decoded.rows)


def make_codec(config: Codec, base: Path) -> PayloadCodec:
    """Returns the codec of these options; `base` is the directory of relative paths."""
    if config.type == "json":
        return JsonCodec()
    if config.type == "debezium_json":
        return DebeziumCodec()
    if config.type == "registry":
        return RegistryCodec(config, base)
    return FormatCodec("protobuf", partial(_protobuf_options, config, base), base)


def _protobuf_options(config: Codec, base: Path) -> dict[str, Any]:
    found = [file for path in config.files for file in _proto_files(path, base)]
    short = (config.message or "").rpartition(".")[2]
    pattern = re.compile(rf"\bmessage\s+{re.escape(short)}\b")
    for path in found:
        if pattern.search(path.read_text(encoding="utf-8")):
            includes = [*config.includes, *config.files]
            located = [locate(each, base) for each in includes]
            directories = [each for each in located if each.is_dir()]
            return {
                "schema_file": str(path), "message": config.message, "enums": "number",
                "include": list(dict.fromkeys([str(path.parent), *map(str, directories)])),
            }  # fmt: skip
    where = ", ".join(config.files)
    if found:
        raise OptionError.of(
            "message", message=f"no message {config.message} in {where}", code="missing-file",
            hint="write its package in front of its name, as in package.Message",
        )  # fmt: skip
    raise OptionError.of(
        "files", 0, message=f"no .proto file in {where}", code="missing-file",
        hint="write the path of a .proto file, or of a directory with such files",
    )  # fmt: skip


def _proto_files(name: str, base: Path) -> list[Path]:
    """Returns a file, or those of a directory, in the working directory or else in `base`."""
    for path in (Path(name).absolute(), base / name):
        found = sorted(path.glob("*.proto")) if path.is_dir() else [path] * path.is_file()
        if found:
            return found
    return []
