"""The source of generated rows: columns as the options describe them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pydantic import model_validator

from penstock.connectors.generate.fields import FieldSpec
from penstock.sdk.kit.clock import Clock
from penstock.sdk.kit.paced import PacedConfig, PacedSource
from penstock.sdk.kit.random import Integers, Stream
from penstock.sdk.kit.rows import batch_of, infer_rows


class GenerateSourceConfig(PacedConfig):
    fields: dict[str, FieldSpec] = {}
    """The columns: a type name (`sequence`, `uuid`, `name` ...) or a map with its options."""
    sample: list[dict[str, Any]] = []
    """Rows that are delivered over and over; `fields` add columns to them or replace some."""
    seed: int = 0
    """Another seed, other rows; the same seed, the same rows."""

    @model_validator(mode="after")
    def _something(self) -> GenerateSourceConfig:
        if not self.fields and not self.sample:
            raise ValueError("give fields, a sample, or both")
        return self


class GenerateSource(PacedSource[GenerateSourceConfig]):
    """Makes up rows: for first steps, tests and load.

    A row depends on nothing but the seed and its number, so rows can be read again. The metadata
    `position` is this number, `time` when the row was due.

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
        types = {f.name: f.type for f in infer_rows(self.config.sample)}
        types |= {name: spec.kind() for name, spec in self.config.fields.items()}
        return pa.schema(list(types.items()))

    def made(self, rows: Integers, clock: Clock, wanted: frozenset[str] | None) -> pa.RecordBatch:
        stream = Stream(self.config.seed, "row")
        made: dict[str, pa.Array] = {}
        if self.config.sample:
            listed = batch_of(self.config.sample, infer_rows(self.config.sample))
            cycled = listed.take(pa.array(rows % listed.num_rows))
            made.update(zip(cycled.schema.names, cycled.columns, strict=True))
        for name, spec in self.config.fields.items():
            if wanted is None or name in wanted:
                made[name] = spec.column(rows, stream.child(name), clock)
            else:
                made[name] = pa.nulls(len(rows), spec.kind())
        return pa.record_batch(made)
