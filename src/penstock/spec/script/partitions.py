"""`PARTITIONED BY`: columns, and transforms of columns as in Iceberg."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.tokens import Text
from penstock.spec.tree.nodes import File

_TIMES = {"year": "%Y", "month": "%Y/%m", "day": "%Y/%m/%d", "hour": "%Y/%m/%d/%H"}
_WITH_NUMBER = ("bucket", "truncate")
_TRANSFORMS = ("identity", *_WITH_NUMBER, *_TIMES, "void")


@dataclass(frozen=True)
class Partition:
    """A column, or a transform of the column: `day(at)`, `bucket(id, 16)`."""

    column: Text
    transform: Text | None = None
    number: Text | None = None

    def partition_by(self, file: File, connector: str) -> Text | None:
        """Returns the partition as an option of a sink; None for one without values.

        Raises SpecError at a transform that the sink does not have.
        """
        if connector != "iceberg" or self.transform is None:
            return self.directory_column(file)
        name = self.transform.value.lower()
        if name == "void":
            return None
        if name == "identity":
            return self.column
        number = f"{self.number.value}, " if self.number is not None else ""
        return Text(f"{name}({number}{self.column.value})", self.transform.start, self.column.end)

    def directory_column(self, file: File) -> Text:
        """Returns the column whose values are directories. Raises SpecError at other transforms."""
        if self.transform is None or self.transform.value.lower() == "identity":
            return self.column
        name = self.transform.value.lower()
        hint = "write identity(column), or remove the transform"
        if name in _TIMES:
            hint = (
                f"set 'partition_time.column' = '{self.column.value}' and "
                f"'partition_time.pattern' = '{_TIMES[name]}'"
            )
        raise SpecError(
            f"the transform {name} is one of Iceberg tables: directories have values of columns",
            code="unsupported-option",
            where=file.location(self.transform.start, self.transform.end),
            hint=hint,
        )


def read_partitions(reader: TokenReader) -> list[Partition]:
    """Reads columns and transforms between parentheses. Raises SpecError."""
    return reader.items(lambda: _read_partition(reader))


def _read_partition(reader: TokenReader) -> Partition:
    name = reader.name("the name of a column")
    if not reader.accept("("):
        return Partition(name)
    transform = name.value.lower()
    if transform not in _TRANSFORMS:
        raise SpecError(
            f'unknown transform "{name.value}"',
            code="invalid-sql",
            where=reader.location(name),
            hint=did_you_mean(transform, _TRANSFORMS),
        )
    column = reader.name("the name of a column")
    number = None
    if transform in _WITH_NUMBER:
        reader.expect(",")
        if not reader.is_number():
            raise reader.error("a number")
        number = reader.any()
    reader.expect(")")
    return Partition(column, name, number)
