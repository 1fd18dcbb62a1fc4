"""The columns of `CREATE TABLE`: types, constraints, generated and metadata columns, watermark."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.core.errors import SpecError
from penstock.core.names import quote_name
from penstock.spec.script.reader import TokenReader, spark_type
from penstock.spec.script.tokens import Text
from penstock.spec.script.watermark import Watermark, read_watermark

_AFTER_TYPE = ("NOT", "NULL", "PRIMARY", "GENERATED", "METADATA", "COMMENT", ",")


@dataclass(frozen=True)
class TableColumn:
    """A column. `type` is a type of Spark."""

    name: Text
    type: Text
    generated: Text | None = None
    """The expression of a generated column."""
    metadata: Text | None = None
    """The name of the metadata of a metadata column."""
    required: bool = False
    """Whether a record without a value is an error: NOT NULL."""

    @property
    def decoded_type(self) -> Text:
        """The type of Spark with which the format decodes the column."""
        suffix = " NOT NULL" if self.required else ""
        return self.type._replace(value=self.type.value + suffix)

    @property
    def conversion(self) -> str | None:
        """The expression that converts metadata to the type of the column, or None."""
        is_number = self.type.value.strip().upper() in ("BIGINT", "LONG")
        if self.metadata is None or self.metadata.value != "timestamp" or not is_number:
            return None
        return f"unix_millis({quote_name(self.name.value)})"


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, and its constraints."""

    columns: list[TableColumn] = field(default_factory=list)
    primary_key: list[Text] = field(default_factory=list)
    watermark: Watermark | None = None

    @property
    def physical(self) -> list[TableColumn]:
        """The columns that the format decodes."""
        return [column for column in self.columns if not (column.generated or column.metadata)]

    @property
    def has_generated(self) -> bool:
        """Whether a column is generated, or converted."""
        return any(column.generated or column.conversion for column in self.columns)


def read_columns(reader: TokenReader) -> TableColumns:
    """Reads columns and constraints between parentheses. Raises SpecError.

    Columns with errors are missing; the errors are those of the reader.
    """
    definition = _Definition(reader)
    reader.valid_items(definition.read_item)
    return TableColumns(definition.columns, definition.primary_key, definition.watermark)


class _Definition:
    """The columns and constraints read so far."""

    def __init__(self, reader: TokenReader) -> None:
        self._reader = reader
        self.columns: list[TableColumn] = []
        self.primary_key: list[Text] = []
        self.watermark: Watermark | None = None

    def read_item(self) -> None:
        """Reads a column, PRIMARY KEY (...) or WATERMARK FOR."""
        reader = self._reader
        if reader.at("PRIMARY", "KEY", "("):
            reader.expect("PRIMARY", "KEY")
            self.primary_key += reader.names("the name of a column")
        elif reader.at("WATERMARK", "FOR"):
            first = reader.name("WATERMARK")
            watermark = read_watermark(reader)
            if self.watermark is not None:
                raise SpecError(
                    "a table has at most one watermark",
                    code="duplicate-watermark",
                    where=reader.location(first),
                )
            self.watermark = watermark
        else:
            self._read_column()

    def _read_column(self) -> None:
        reader = self._reader
        name = reader.name("the name of a column")
        type_ = reader.type(_AFTER_TYPE)
        generated = metadata = None
        required = False
        while not reader.at(",") and not reader.at(")"):
            if reader.accept("PRIMARY", "KEY"):
                self.primary_key.append(name)
            elif reader.accept("GENERATED", "ALWAYS", "AS"):
                reader.expect("(")
                metadata = _metadata_call(reader)
                generated = None if metadata else reader.expression()
                reader.expect(")")
                reader.accept("STORED") or reader.accept("VIRTUAL")
            elif reader.accept("METADATA", "FROM"):
                metadata = reader.string("the name of the metadata, in quotes")
            elif reader.accept("COMMENT"):
                reader.string("a comment, in quotes")
            elif reader.accept("NOT", "NULL"):
                required = True
            elif not reader.accept("NULL"):
                raise reader.error("a constraint of the column, a comma or )")
        if any(column.name.value.lower() == name.value.lower() for column in self.columns):
            raise SpecError(
                f'duplicate column "{name.value}"',
                code="duplicate-column",
                where=reader.location(name),
                hint="rename or remove one of the columns",
            )
        self.columns.append(
            TableColumn(name, spark_type(reader, type_), generated, metadata, required)
        )


def _metadata_call(reader: TokenReader) -> Text | None:
    """Reads `metadata('name')`, an older form of METADATA FROM. Returns the name, or None."""
    if not reader.accept("METADATA", "("):
        return None
    name = reader.string("the name of the metadata, in quotes")
    reader.expect(")")
    return name
