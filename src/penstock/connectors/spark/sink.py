"""The sink of formats of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.spark.config import SparkSinkConfig
from penstock.connectors.spark.errors import translate_error
from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.sdk import BatchId, Capability
from penstock.sdk.data_frames import DataFrameSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkSink(DataFrameSink[SparkSinkConfig]):
    """Writes each batch with any format of Spark, as `DataFrame.write.format(...)` does.

    The rows of a batch are appended; with `mode: replace` a batch replaces all rows. A batch is
    written again after a crash, so rows may be written twice. Jars of the format are set in
    `runtime.packages`. A row that the format rejects fails the batch: the sink has no dead letters.

    Use a sink of Penstock if there is one, such as `kafka`, `delta` or `files`: it writes a batch
    once, or stores rejected rows as dead letters.

    ```yaml
    type: spark
    from: orders
    provider: orc
    path: out/orders
    partition_columns: [day]
    ```
    """

    capabilities = DataFrameSink.capabilities | {Capability.REPLACE}
    acknowledges = "the job of Spark ends"

    def check_schema(self, columns: pa.Schema) -> None:
        for index, name in enumerate(self.config.partition_columns):
            if name not in columns.names:
                raise OptionError.of(
                    "partition_columns", index, message=f'there is no column "{name}"',
                    code="unknown-column", hint=did_you_mean(name, columns.names),
                )  # fmt: skip

    def write_frame(self, rows: DataFrame, batch: BatchId) -> None:
        config = self.config
        writer = rows.write.format(config.provider).options(**config.reveal_options())
        writer = writer.mode("overwrite" if self.mode == "replace" else "append")
        if config.partition_columns:
            writer = writer.partitionBy(*config.partition_columns)
        try:
            writer.save(config.path)
        except Exception as error:
            translated = translate_error(error, config.provider, "write")
            if translated is None:
                raise
            raise translated from error
