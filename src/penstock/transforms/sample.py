"""The transform `sample`: keeps a part of the rows, chosen by their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from penstock.core.errors import OptionError
from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Relation
from penstock.transforms.columns import require
from penstock.transforms.filter import filter_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTS = 1_000_000
"""The number of parts into which hashes divide the rows."""


class SampleConfig(Config):
    fraction: float | None = Field(default=None, gt=0, le=1)
    """The part of the rows to keep, such as 0.05, exact to a millionth."""
    every: int | None = Field(default=None, ge=1)
    """Keep one of so many rows, on average."""
    key_columns: list[str] = []
    """The columns that choose a row: all rows with the same values are kept, or none. By default
    all columns."""
    seed: int = 0
    """A number that chooses other rows."""

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if (self.fraction is None) == (self.every is None):
            raise ValueError("expected either fraction or every")
        return self


class Sample(DataFrameTransform[SampleConfig]):
    """Keeps a part of the rows, chosen by a hash of their values.

    The same rows are kept in every run and in every division into batches. With the same
    `key_columns` and `seed`, samples of several streams have the same keys, if their types are the
    same.

    Parallel by partition. Of changes, an update of a row that is not kept becomes a delete.

    ```yaml
    type: sample
    from: clicks
    fraction: 0.05
    key_columns: [session]
    ```
    """

    def relation(self) -> Relation:
        return Relation(incremental=True)

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        (frame,) = inputs.values()
        require(self, frame, "key_columns", self.config.key_columns)
        condition = self._condition(frame)
        if self.changes is None or self.changes.complete:
            return frame.where(condition)
        return filter_changes(frame, condition, self.changes.column, timeless=True)

    def _condition(self, frame: DataFrame) -> str:
        """Returns the condition of the rows to keep, in Spark SQL."""
        config = self.config
        names = config.key_columns or [
            name for name in frame.columns if self.changes is None or name != self.changes.column
        ]
        chosen = {name.lower() for name in names}
        for field in frame.schema.fields:
            type_ = field.dataType.simpleString()
            if field.name.lower() in chosen and ("map<" in type_ or "variant" in type_):
                raise OptionError.of(
                    "key_columns", code="wrong-type",
                    message=f'column "{field.name}" has a MAP or a VARIANT, which has no hash',
                    hint="Set key_columns to other columns.",
                )  # fmt: skip
        columns = ", ".join(map(quote_name, names))
        number = f"xxhash64({config.seed}L, {columns})"
        if config.every is not None:
            return f"pmod({number}, {config.every}L) = 0"
        assert config.fraction is not None
        return f"pmod({number}, {_PARTS}L) < {round(config.fraction * _PARTS)}"
