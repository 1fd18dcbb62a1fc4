"""The source of formats of Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.connectors.spark.config import SparkSourceConfig
from penstock.connectors.spark.errors import translate_error
from penstock.core.errors import PenstockError
from penstock.sdk.data_frames import DataFrameSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkSource(DataFrameSource[SparkSourceConfig]):
    """Reads any format of Spark once, as `spark.read.format(...)` does.

    Spark reads all rows before the first batch, and stores them in the state directory as Parquet.
    So a run that was killed continues with the same rows, and `--fresh` reads them again. Rows that
    come later are not read. Jars of the format are set in `runtime.packages`.

    Use a source of Penstock if there is one, such as `kafka`, `delta` or `files`: it also reads new
    rows, and stores records that it cannot decode as dead letters. Here the format decides what
    becomes of an invalid record; often its error ends the run.

    The columns are known once a run has read them; declare `schema` for `penstock check`. A type
    that Parquet does not have, such as an interval, is an error.

    ```yaml
    type: spark
    provider: bigquery
    options: {table: shop.orders, credentialsFile: key.json}
    ```
    """

    def frame(self, session: SparkSession) -> DataFrame:
        reader = session.read.format(self.config.provider)
        return reader.options(**self.config.reveal_options()).load(self.config.path)

    @property
    def origin(self) -> str:
        config = self.config
        return json.dumps([config.provider, config.path, config.public_options], sort_keys=True)

    def translate_error(self, error: Exception) -> PenstockError | None:
        return translate_error(error, self.config.provider, "read")
