"""The generate source."""

from __future__ import annotations

import pyarrow as pa

from penstock.connectors.generate.config import GenerateSourceConfig
from penstock.sdk.columns.rows import batch_of, infer_rows
from penstock.sdk.synthetic.clock import Clock
from penstock.sdk.synthetic.random import Integers, Stream
from penstock.sdk.synthetic.source import SyntheticSource


class GenerateSource(SyntheticSource[GenerateSourceConfig]):
    """Generates rows, for first steps, tests and load.

    Rows are a function of the seed and the row number, so they can be read again. The metadata
    `position` is the row number, and `time` the time at which the row was due.

    ```yaml
    type: generate
    rate: 1000
    fields:
      id: sequence
      at: timestamp
      user: name
      page: {type: choice, of: [home, search, cart], weights: [6, 3, 1]}
      amount: {type: number, max: 100, decimals: 2}
    ```
    """

    def schema(self) -> pa.Schema:
        types = {field.name: field.type for field in infer_rows(self.config.sample)}
        types |= {name: spec.kind() for name, spec in self.config.fields.items()}
        return pa.schema(list(types.items()))

    def generate(
        self, rows: Integers, clock: Clock, columns: frozenset[str] | None
    ) -> pa.RecordBatch:
        stream = Stream(self.config.seed, "row")
        arrays: dict[str, pa.Array] = {}
        if self.config.sample:
            sample = batch_of(self.config.sample, infer_rows(self.config.sample))
            repeated = sample.take(pa.array(rows % sample.num_rows))
            arrays.update(zip(repeated.schema.names, repeated.columns, strict=True))
        for name, spec in self.config.fields.items():
            if columns is None or name in columns:
                arrays[name] = spec.column(rows, stream.child(name), clock)
            else:
                arrays[name] = pa.nulls(len(rows), spec.kind())
        return pa.record_batch(arrays)
