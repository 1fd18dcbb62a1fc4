"""Avro: one datum per record; object containers as files."""

from __future__ import annotations

from penstock.formats.avro.plain import AvroConfig, PlainAvro
from penstock.sdk.component import Component, Context

__all__ = ["Avro", "AvroConfig"]


class Avro(PlainAvro):
    """Avro: one binary datum per payload, object containers as files (`.avro`).

    ```yaml
    format: {type: avro, schema_file: schemas/order.avsc}
    ```

    The schema is a record; its fields are the columns. Payloads other than containers need a
    schema. Without one, rows are written with a schema derived from their columns. `long` is
    BIGINT, `bytes` and `fixed` are BINARY, `enum` is STRING. Logical types are decimals, dates and
    times (`timestamp-millis`, `-micros` and `-nanos` are TIMESTAMP, `local-timestamp-*`
    TIMESTAMP_NTZ). A plain `long` is a timestamp only with the option `timestamps`, also for
    writing. `[null, T]` is a nullable T. Other unions and recursive types are no columns; declare
    the columns without them, with some levels of a recursive record, or with STRING or VARIANT:
    these have the JSON text of a union, record, array or map, and STRING the text of a string. A
    map has an Avro type if its keys are STRING. Only declared columns are decoded. If their types
    differ from the schema, values are converted without loss, as in the format `parquet`, and
    missing columns are null; otherwise the record fails. A schema that is a union of records has
    the columns of all its records, and `type_column` has the name of each record. Values of
    recursive types have at most about 100 levels. Trailing bytes after a datum are an error. A
    corrupt block of a file fails the remaining rows of the block, a corrupt block of a payload the
    whole payload. The position in a file is the number of the row. Rules: the Avro 1.12
    specification.

    Blocks with the codecs `null`, `deflate`, `bzip2`, `xz`, `zstandard` and `snappy` are read, in
    bounded memory: a value of a file, and the content of a payload, has at most 64 MiB. Content
    beyond 1,000 times its compressed size, of files larger than 64 MB, is one error, which ends the
    file. A payload has at most 1,000,000 records.

    With `registry` the schema of each payload is fetched by its ID. The reader schema is `schema`,
    or without one and without declared columns the registry schema pinned by the first run: later
    fields are ignored, missing fields have their defaults, as Avro defines them. Declared columns
    are matched with the writer schema by name. A sink registers `schema`, or a schema derived from
    the columns.
    """

    @classmethod
    def create(cls, config: AvroConfig, context: Context | None = None) -> Component[AvroConfig]:
        if config.framing == "container":
            from penstock.formats.avro.contained import ContainedAvro

            return ContainedAvro(config, context)
        if config.registry is None:
            return cls(config, context)
        from penstock.formats.avro.registered import RegisteredAvro

        return RegisteredAvro(config, context)
