"""The transform `flatten`: makes columns of the fields of structs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from penstock.core.errors import OptionError, raise_all
from penstock.core.names import quote_name
from penstock.sdk import ColumnLineage, Config, DataFrameTransform, Relation
from penstock.sql.keyed_rows import KeyedRows
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FlattenConfig(Config):
    columns: list[str] = []
    """The columns of type STRUCT to flatten, by default all."""
    separator: str = "_"
    """The text between the names of a column and of its field."""
    depth: int | None = Field(default=None, ge=1)
    """The maximum number of levels of structs, by default all. Structs below remain."""


class Flatten(DataFrameTransform[FlattenConfig]):
    """Makes columns of the fields of structs, at the place of each struct.

    The column of the field `city` of `address` is `address_city`. The fields of a null are nulls.
    Arrays and maps remain: use `unnest` for their elements.

    Parallel by partition.

    ```yaml
    type: flatten
    from: orders
    columns: [address]
    depth: 1
    ```
    """

    def relation(self) -> Relation:
        lineage = FlattenedColumns(tuple(self.config.columns))
        return Relation(incremental=True, lineage=lineage)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        (frame,) = inputs.values()
        require(self, frame, "columns", self.config.columns)
        chosen = {name.lower(): index for index, name in enumerate(self.config.columns)}
        fields = list(frame.schema.fields)
        raise_all(
            OptionError.of(
                "columns", chosen[field.name.lower()], code="wrong-type",
                message=f'expected a STRUCT, and column "{field.name}" is '
                f"{field.dataType.simpleString().upper()}",
                hint="Use unnest for the elements of an ARRAY or a MAP.",
            )
            for field in fields
            if field.name.lower() in chosen and not isinstance(field.dataType, StructType)
        )  # fmt: skip
        selected = []
        for field in fields:
            path = [field.name]
            if isinstance(field.dataType, StructType) and (
                not chosen or field.name.lower() in chosen
            ):
                paths = self._paths(path, field.dataType, self.config.depth)
                selected += [f.col(_quoted(each)).alias(self._name(each)) for each in paths]
            else:
                selected.append(f.col(_quoted(path)))
        return frame.select(*selected)

    def _paths(self, path: Sequence[str], struct: Any, depth: int | None) -> Iterator[list[str]]:
        """Yields the paths of the fields of a struct, down to `depth` levels."""
        from pyspark.sql.types import StructType

        for field in struct.fields:
            inner = [*path, field.name]
            if isinstance(field.dataType, StructType) and depth != 1:
                rest = None if depth is None else depth - 1
                yield from self._paths(inner, field.dataType, rest)
            else:
                yield inner

    def _name(self, path: Sequence[str]) -> str:
        return self.config.separator.join(path)


@dataclass(frozen=True)
class FlattenedColumns(ColumnLineage):
    """The columns of a single input with those of fields in place of structs.

    Without `structs` the structs are unknown.
    """

    structs: tuple[str, ...]

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        return replace(rows.without(self.structs), columns=None)


def _quoted(path: Sequence[str]) -> str:
    return ".".join(map(quote_name, path))
