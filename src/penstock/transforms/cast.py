"""The transform `cast`: converts columns to other types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.core.errors import OptionError, PlanError, ValidationErrors, flatten_errors, raise_all
from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Relation
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sql.column_lineage import ChangedColumns
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class CastConfig(Config):
    columns: dict[str, str] = Field(min_length=1)
    """The columns to convert, each with its new type, as in `price: DECIMAL(10, 2)`."""


class Cast(DataFrameTransform[CastConfig]):
    """Converts columns to other types, as CAST of SQL does.

    A row with a value that cannot be converted becomes a dead letter. To get null in its place,
    use `try_cast` in the transform `map`.

    Parallel by partition.

    ```yaml
    type: cast
    from: readings
    columns:
      at: TIMESTAMP
      celsius: DOUBLE
    ```
    """

    def validate(self) -> None:
        super().validate()
        try:
            arrow_schema(self.config.columns)
        except (PlanError, ValidationErrors) as error:
            raise_all(OptionError.inside("columns", inner) for inner in flatten_errors(error))

    def relation(self) -> Relation:
        return Relation(incremental=True, lineage=ChangedColumns(tuple(self.config.columns)))

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import expr

        (frame,) = inputs.values()
        require(self, frame, "columns", self.config.columns)
        types = {name.lower(): type_ for name, type_ in self.config.columns.items()}
        return frame.withColumns(
            {
                name: expr(f"CAST({quote_name(name)} AS {types[name.lower()]})")
                for name in frame.columns
                if name.lower() in types
            }
        )
