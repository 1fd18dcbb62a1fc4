"""Rows as documents, each encoded once. All rows without a document are found in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa

from penstock.connectors.mongodb.client import codec_options, from_json
from penstock.connectors.mongodb.config import ID
from penstock.core.errors import EncodeError, PlanError, RecordError
from penstock.core.text import shorten
from penstock.sdk.columns.conform import rebuild
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.type_names import is_list, sql_name

Convert = Callable[[Any], Any]
_DAY = 86_400_000
_MICROS = 1000


@dataclass(frozen=True)
class Encoding:
    """The types of BSON for columns. `names` are the fields of columns with other names."""

    names: Mapping[str, str] = field(default_factory=dict)
    object_ids: frozenset[str] = frozenset()
    decimals: Literal["decimal128", "string"] = "decimal128"
    microseconds: Literal["reject", "truncate"] = "reject"
    omits_nulls: bool = False

    def check(self, columns: pa.Schema) -> None:
        """Raises PlanError for a column without a type of BSON."""
        for each in columns:
            self._converter(each)

    def values(
        self, rows: pa.RecordBatch, errors: dict[int, RecordError]
    ) -> Mapping[str, Sequence[Any]]:
        """Returns the values of each field as BSON has them. `_id` is the first field.

        Adds the errors of rows without such a value to `errors`.
        """
        fields: dict[str, Sequence[Any]] = {}
        for column, each in zip(rows.columns, rows.schema, strict=True):
            name = self.names.get(each.name, each.name)
            fields[name] = self._column(column, each, errors)
        return {ID: fields.pop(ID), **fields} if ID in fields else fields

    def documents(
        self, fields: Mapping[str, Sequence[Any]], count: int
    ) -> Iterator[dict[str, Any]]:
        """Yields the document of each row."""
        if not fields:
            yield from ({} for _ in range(count))
            return
        for values in zip(*fields.values(), strict=True):
            pairs = zip(fields, values, strict=True)
            if self.omits_nulls:
                pairs = ((name, value) for name, value in pairs if value is not None)  # type: ignore[assignment]
            yield dict(pairs)

    def _column(
        self, column: pa.Array, each: pa.Field, errors: dict[int, RecordError]
    ) -> Sequence[Any]:
        values = _python_values(column, each, errors)
        convert = self._converter(each)
        if convert is None:
            return values
        converted = []
        for index, value in enumerate(values):
            try:
                converted.append(None if value is None else convert(value))
            except EncodeError as error:
                message = f'column "{each.name}": {error.message}'
                errors.setdefault(index, EncodeError(message, code=error.code, hint=error.hint))
                converted.append(None)
        return converted

    def _converter(self, each: pa.Field) -> Convert | None:
        """Returns the conversion of values that are not null; None for values as they are."""
        from bson import Int64
        from bson.datetime_ms import DatetimeMS

        type_ = each.type
        if is_json(each):
            return _parse_json
        if each.name in self.object_ids:
            return _object_id
        if pa.types.is_int64(type_):
            return Int64
        if pa.types.is_decimal(type_):
            return _decimal_text if self.decimals == "string" else _decimal128
        if pa.types.is_timestamp(type_):
            return self._time
        if pa.types.is_date(type_):
            return lambda days: DatetimeMS(days * _DAY)
        if is_list(type_):
            item = self._inner(each, type_.value_field)
            return lambda values: [None if v is None else item(v) for v in values]
        if pa.types.is_map(type_):
            return self._map(each)
        if pa.types.is_struct(type_):
            return self._struct(each)
        if _is_plain(type_):
            return None
        raise PlanError(
            f'column "{each.name}": MongoDB has no type for {sql_name(type_)}',
            code="unsupported-type",
            hint=f"Convert the column in a transform: CAST({each.name} AS STRING).",
        )

    def _inner(self, outer: pa.Field, inner: pa.Field) -> Convert:
        """Returns the conversion of values within a column, whose errors name the column."""
        without_ids = Encoding(
            decimals=self.decimals, microseconds=self.microseconds, omits_nulls=self.omits_nulls
        )
        convert = without_ids._converter(inner.with_name(outer.name))
        return convert if convert is not None else lambda value: value

    def _struct(self, each: pa.Field) -> Convert:
        parts = {part.name: self._inner(each, part) for part in each.type}

        def convert(value: Mapping[str, Any]) -> dict[str, Any]:
            found = {
                name: None if value[name] is None else part(value[name])
                for name, part in parts.items()
            }
            if self.omits_nulls:
                return {name: each for name, each in found.items() if each is not None}
            return found

        return convert

    def _map(self, each: pa.Field) -> Convert:
        if not pa.types.is_string(each.type.key_type):
            raise PlanError(
                f'column "{each.name}": the keys of a map are names of fields, and '
                f"{sql_name(each.type.key_type)} is not STRING",
                code="unsupported-type", hint="Convert the keys to STRING in a transform.",
            )  # fmt: skip
        item = self._inner(each, each.type.item_field)

        def convert(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
            found = {key: None if value is None else item(value) for key, value in pairs}
            if len(found) < len(pairs):
                raise EncodeError("a key of the map is duplicated", code="duplicated-map-key")
            if any("\0" in key for key in found):
                raise EncodeError("a key of the map has the character NUL", code="unencodable")
            return found

        return convert

    def _time(self, micros: int) -> Any:
        import bson.datetime_ms

        millis, rest = divmod(micros, _MICROS)
        if rest and self.microseconds == "reject":
            raise EncodeError(
                "the time has microseconds, and MongoDB stores milliseconds",
                code="invalid-timestamp", hint="Set microseconds: truncate.",
            )  # fmt: skip
        return bson.datetime_ms.DatetimeMS(millis)


def encode_document(document: Mapping[str, Any], max_size: int) -> bytes:
    """Returns a document as BSON. Raises EncodeError."""
    import bson

    try:
        content: bytes = bson.encode(document, codec_options=codec_options())
    except (bson.errors.BSONError, OverflowError, TypeError, ValueError, RecursionError) as error:
        message = shorten(" ".join(str(error).split()), 200)
        raise EncodeError(f"BSON does not have the row: {message}", code="unencodable") from None
    if len(content) > max_size:
        raise EncodeError(
            f"the document has {len(content)} bytes, and the server accepts {max_size}",
            code="too-large", hint="Leave out columns in a transform, or divide the row.",
        )  # fmt: skip
    return content


def _is_plain(type_: pa.DataType) -> bool:
    """Returns whether BSON has the values of a type as Python has them."""
    checks = (
        pa.types.is_boolean, pa.types.is_int8, pa.types.is_int16, pa.types.is_int32,
        pa.types.is_floating, pa.types.is_string, pa.types.is_large_string, pa.types.is_binary,
        pa.types.is_large_binary, pa.types.is_null,
    )  # fmt: skip
    return any(check(type_) for check in checks)


def _python_values(
    column: pa.Array, each: pa.Field, errors: dict[int, RecordError]
) -> Sequence[Any]:
    """Returns values of Python. Times are microseconds, and dates are days since 1970."""
    column = rebuild(column, _with_numbers(column.type), _numbers)
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = []
        for index, value in enumerate(column):
            try:
                values.append(value.as_py())
            except UnicodeDecodeError:
                message = f'column "{each.name}": the text is not UTF-8'
                errors.setdefault(index, EncodeError(message, code="not-utf8"))
                values.append(None)
    return values


def _numbers(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz))
    return array.cast(type_)


def _with_numbers(type_: pa.DataType) -> pa.DataType:
    """Returns a type with integers in place of times."""
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_struct(type_):
        return pa.struct([each.with_type(_with_numbers(each.type)) for each in type_])
    if is_list(type_):
        return pa.list_(type_.value_field.with_type(_with_numbers(type_.value_type)))
    if pa.types.is_map(type_):
        items = type_.item_field
        return pa.map_(type_.key_field, items.with_type(_with_numbers(items.type)))
    return type_


def _decimal_text(value: Decimal) -> str:
    return format(value, "f")


def _decimal128(value: Decimal) -> Any:
    import decimal

    from bson.decimal128 import Decimal128

    try:
        return Decimal128(value)
    except decimal.DecimalException:
        raise EncodeError(
            f"{value:f} has more than the 34 digits of a Decimal128",
            code="unencodable", hint="Set decimals: string.",
        ) from None  # fmt: skip


def _object_id(value: str) -> Any:
    from bson.errors import InvalidId
    from bson.objectid import ObjectId

    try:
        return ObjectId(value)
    except (InvalidId, TypeError):
        text = shorten(str(value), 50)
        raise EncodeError(
            f'"{text}" is not an ObjectId: expected 24 hexadecimal digits', code="wrong-type"
        ) from None


def _parse_json(text: str) -> Any:
    try:
        return from_json(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise EncodeError(f"not Extended JSON: {error}", code="not-json") from None
