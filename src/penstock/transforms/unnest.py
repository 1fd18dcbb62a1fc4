"""The transform `unnest`: makes a row of each element of an array or a map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.core.errors import OptionError
from penstock.core.names import quote_name
from penstock.sdk import ColumnLineage, Config, DataFrameTransform, Relation
from penstock.sql.keyed_rows import KeyedRows
from penstock.transforms.columns import require_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class UnnestConfig(Config):
    column: str
    """The column of type ARRAY or MAP. The columns of the elements take its place."""
    value_column: str | None = None
    """The column of the elements of an array, by default with the name of the array, or of the
    values of a map, by default `value`."""
    key_column: str = "key"
    """The column of the keys of a map."""
    position_column: str | None = None
    """A column to add with the position of each element, from 0."""
    outer: bool = False
    """Keep a row whose array or map is null or empty, with a null element. By default it has no
    row in the output."""


class Unnest(DataFrameTransform[UnnestConfig]):
    """Makes a row of each element of an array, or of each entry of a map.

    The other columns are repeated. To get the fields of structs as columns, add the transform
    `flatten`. In SQL the functions are `explode`, `explode_outer` and `posexplode`.

    Parallel by partition. Of changes, each row has the operation of its change.

    ```yaml
    type: unnest
    from: baskets
    column: items
    value_column: item
    position_column: number
    ```
    """

    def relation(self) -> Relation:
        lineage = UnnestedColumns(self.config.column)
        return Relation(incremental=True, lineage=lineage)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql import functions as f
        from pyspark.sql.types import ArrayType, MapType

        (frame,) = inputs.values()
        config, field = self.config, require_column(self, frame, "column", self.config.column)
        if isinstance(field.dataType, ArrayType):
            names = [config.value_column or field.name]
        elif isinstance(field.dataType, MapType):
            names = [config.key_column, config.value_column or "value"]
        else:
            raise OptionError.of(
                "column", code="wrong-type",
                message=f'expected an ARRAY or a MAP, and column "{field.name}" is '
                f"{field.dataType.simpleString().upper()}",
                hint="Use flatten for the fields of a STRUCT.",
            )  # fmt: skip
        column = f.col(quote_name(field.name))
        if config.position_column is None:
            elements = f.explode_outer(column) if config.outer else f.explode(column)
        else:
            names = [config.position_column, *names]
            elements = f.posexplode_outer(column) if config.outer else f.posexplode(column)
        return frame.select(
            *(
                elements.alias(*names) if name == field.name else f.col(quote_name(name))
                for name in frame.columns
            )
        )


@dataclass(frozen=True)
class UnnestedColumns(ColumnLineage):
    """The columns of a single input with several rows, or none, for a row."""

    unnested: str

    def keyed_rows(self, inputs: Mapping[str, KeyedRows]) -> KeyedRows:
        (rows,) = inputs.values()
        rest = rows.without((self.unnested,))
        return replace(rest, columns=None, key=(), keeps_changes=False)
