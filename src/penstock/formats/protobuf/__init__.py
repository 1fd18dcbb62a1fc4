"""Protocol Buffers: one message per record; length-delimited messages in files."""

from __future__ import annotations

from penstock.formats.protobuf.plain import PlainProtobuf, ProtobufConfig
from penstock.sdk.component import Component, Context

__all__ = ["Protobuf", "ProtobufConfig"]


class Protobuf(PlainProtobuf):
    """Protocol Buffers: one message per payload; length-delimited messages in files (`.pb`).

    ```yaml
    format: {type: protobuf, schema_file: shop.proto, message: shop.Order}
    ```

    Fields are columns, by name: `int32` INT, `int64` BIGINT, `uint32` BIGINT, `uint64`
    DECIMAL(20, 0), `bytes` BINARY, an enum STRING with its name (or its number, if it has no
    name), `repeated` ARRAY, messages and groups STRUCT, `google.protobuf.Timestamp` TIMESTAMP,
    `google.type.Date` DATE. `google.protobuf.Duration` and `google.type.TimeOfDay` are declared as
    STRING, which has ISO 8601 text, or, as other times, as STRUCT of their fields: such as
    `STRUCT<seconds: BIGINT, nanos: INT>` for times with nanoseconds. proto2, proto3 and editions
    are read. Only the fields of declared columns, and the declared fields within them, are decoded.
    A recursive message, such as `google.protobuf.Struct`, is no column: declare other columns, some
    levels of its fields, or set `as_json`.

    A field without presence (proto3 without `optional`) is never null: an absent field has its
    default, and a null is not written. Other absent fields are null. An empty payload is a message
    of defaults. Unknown fields are ignored. Known fields of another wire type are ignored too, as
    in any Protobuf library: a payload of another message may be decoded without an error. Text that
    is not UTF-8 and truncated payloads are errors. An invalid length ends a file with one error.
    The position is the number of the message.

    With `registry` a payload is decoded as the configured message. Without `schema_file` and
    without declared columns it is decoded as the message of the registry schema pinned by the first
    run: the message named by `message`, or the first message. Declared columns are matched with the
    fields of the writer schema by name. A payload of another message is an error, unless
    `type_column` is set. A sink registers `schema_file`, which must not import files other than
    those of `google/protobuf`.
    """

    @classmethod
    def create(
        cls, config: ProtobufConfig, context: Context | None = None
    ) -> Component[ProtobufConfig]:
        if config.registry is None:
            return cls(config, context)
        from penstock.formats.protobuf.registered import RegisteredProtobuf

        return RegisteredProtobuf(config, context)
