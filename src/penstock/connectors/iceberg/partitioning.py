"""Partitions: columns, and transforms of columns, whose values are equal within a data file.

Source: https://iceberg.apache.org/spec/#partitioning
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import OptionError, PenstockError
from penstock.core.text import did_you_mean
from penstock.sdk.columns.checks import check_column
from penstock.sdk.lakes.grouping import group_rows

_TIMES = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
"""The unit of NumPy of each transform of times."""
_WIDTHS = ("bucket", "truncate")
_TERM = re.compile(r"(\w+)\(\s*(?:(\d+)\s*,\s*)?(.+?)\s*\)")


@dataclass(frozen=True)
class Term:
    """A column or a transform of a column, as `bucket(16, id)`."""

    column: str
    transform: str = "identity"
    width: int | None = None

    @classmethod
    def parse(cls, text: str, columns: Sequence[str]) -> Term:
        """Returns the term of a text. A name of a column comes first. Raises ValueError."""
        match = _TERM.fullmatch(text)
        if text in columns or match is None:
            return cls(text)
        name, width, column = match[1].lower(), match[2], match[3]
        name = name.removesuffix("s") if name.removesuffix("s") in _TIMES else name
        if name not in (*_TIMES, *_WIDTHS):
            known = did_you_mean(name, [*_TIMES, *_WIDTHS]) or ""
            raise ValueError(f"unknown transform {name}. {known}".strip())
        if (name in _WIDTHS) != (width is not None) or width == "0":
            raise ValueError(f"expected {name}({'NUMBER, ' if name in _WIDTHS else ''}COLUMN)")
        return cls(column, name, None if width is None else int(width))

    def __str__(self) -> str:
        """Returns the text of the transform in the specification of Iceberg."""
        return self.transform if self.width is None else f"{self.transform}[{self.width}]"

    @property
    def field_name(self) -> str:
        """The name of the partition field, as Iceberg's own libraries name it."""
        suffix = {"identity": "", "truncate": "_trunc"}.get(self.transform, f"_{self.transform}")
        return f"{self.column}{suffix}"


def check_partitions(texts: Sequence[str], columns: pa.Schema) -> list[PenstockError]:
    """Returns the errors of the option `partition_by`."""
    errors: list[PenstockError] = []
    terms = []
    for index, text in enumerate(texts):
        try:
            term = Term.parse(text, columns.names)
        except ValueError as error:
            errors.append(OptionError.of("partition_by", index, message=str(error)))
            continue
        expected = "Use another column, or cast the column in a transform."
        found = check_column(
            term.column, columns, "partition_by", index, accepts=_accepted(term), expected=expected
        )
        errors += found
        terms.append(term)
    if not errors and len({term.column for term in terms}) < len(terms):
        errors.append(OptionError.of("partition_by", message="a column occurs twice"))
    return errors


def _accepted(term: Term) -> Any:
    """Returns the function from a type to whether the transform accepts it."""
    from pyiceberg.transforms import parse_transform

    from penstock.connectors.iceberg.types import iceberg_schema

    def accepts(type_: pa.DataType) -> bool:
        if pa.types.is_nested(type_):
            return False
        (field,) = iceberg_schema(pa.schema([("c", type_)])).fields
        return bool(parse_transform(str(term)).can_transform(field.field_type))

    return accepts


def partition_spec(texts: Sequence[str], schema: Any) -> Any:
    """Returns the partitions of a new table."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import parse_transform

    names = [field.name for field in schema.fields]
    fields = []
    for number, term in enumerate((Term.parse(text, names) for text in texts), 1000):
        source = schema.find_field(term.column).field_id
        transform = parse_transform(str(term))
        fields.append(PartitionField(source, number, transform, _unused(term, names)))
    return PartitionSpec(*fields)


def _unused(term: Term, columns: Sequence[str]) -> str:
    """Returns the name of a partition field. Only that of a column itself can be a column's."""
    name = term.field_name
    while term.transform != "identity" and name in columns:
        name += "_"
    return name


def described(spec: Any, schema: Any) -> list[str]:
    """Returns the partitions of a table in the form of the option."""
    found = []
    for field in spec.fields:
        name, column = str(field.transform), schema.find_column_name(field.source_id)
        transform, _, width = name.rstrip("]").partition("[")
        text = f"{transform}({f'{width}, ' if width else ''}{column})"
        found.append(column if name == "identity" else text)
    return [text for text in found if not text.startswith("void(")]


@dataclass(frozen=True)
class Partitioning:
    """The division of rows with the columns of data files into partitions."""

    spec: Any
    schema: Any

    def groups(
        self, rows: pa.RecordBatch
    ) -> Iterator[tuple[tuple[Any, ...], npt.NDArray[np.int64] | None]]:
        """Yields the values of each partition with the indexes of its rows; None for all rows."""
        if not self.spec.fields:
            yield (), None
            return
        columns = [self._values(field, rows) for field in self.spec.fields]
        for indexes in group_rows(columns):
            yield tuple(column[int(indexes[0])].as_py() for column in columns), indexes

    def directory(self, values: Sequence[Any]) -> str:
        """Returns the directory of a partition."""
        from pyiceberg.typedef import Record

        return str(self.spec.partition_to_path(Record(*values), self.schema))

    def _values(self, field: Any, rows: pa.RecordBatch) -> pa.Array:
        name = self.schema.find_column_name(field.source_id)
        type_ = self.schema.find_type(field.source_id)
        path = name.split(".")
        if name in rows.schema.names:
            column = rows.column(name)
        elif path[0] in rows.schema.names:
            column = pc.struct_field(rows.column(path[0]), path[1:])
        else:
            column = pa.nulls(rows.num_rows)
        return transformed(internal(column), field.transform, type_)


def internal(column: pa.Array) -> pa.Array:
    """Returns values as partitions have them: times as numbers, UUIDs as bytes."""
    type_ = column.type
    if pa.types.is_date32(type_):
        return column.cast(pa.int32())
    if pa.types.is_temporal(type_):
        return column.cast(pa.int64())
    return column.storage if isinstance(type_, pa.BaseExtensionType) else column


def transformed(column: pa.Array, transform: Any, type_: Any) -> pa.Array:
    """Returns the values of a transform."""
    name = str(transform)
    if name == "identity" or pa.types.is_null(column.type):
        return column
    if name in _TIMES:
        return _time_numbers(column, _TIMES[name], str(type_))
    function = transform.transform(type_)
    encoded = pc.dictionary_encode(column)
    distinct = [function(value) for value in encoded.dictionary.to_pylist()]
    result = pa.int32() if name.startswith("bucket") else column.type
    return pa.array(distinct, None if name == "void" else result).take(encoded.indices)


def _time_numbers(column: pa.Array, unit: str, type_: str) -> pa.Array:
    """Returns the numbers of years, months, days or hours since 1970."""
    source = "D" if type_ == "date" else "ns" if type_.endswith("_ns") else "us"
    numbers = np.asarray(column.fill_null(0).cast(pa.int64()))
    found = numbers.astype(f"datetime64[{source}]").astype(f"datetime64[{unit}]").astype(np.int64)
    return pa.array(found.astype(np.int32), mask=np.asarray(column.is_null()))


def constants(file: Any, spec: Any) -> Mapping[int, Any]:
    """Returns the values of identity partitions of a data file, by the ID of their columns."""
    if spec is None:
        return {}
    return {
        field.source_id: file.partition[index]
        for index, field in enumerate(spec.fields)
        if str(field.transform) == "identity"
    }
