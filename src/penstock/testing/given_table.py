"""The values that a test case gives to a dynamic table."""

from __future__ import annotations

import pyarrow as pa

from penstock.sdk import Capability, Config, Context, LookupSource, Read


class GivenTable(LookupSource[Config]):
    """Looks up given rows of one column."""

    capabilities = frozenset({Capability.LOOKUP_BY_KEY, Capability.ROWS})

    def __init__(self, context: Context, rows: pa.RecordBatch) -> None:
        super().__init__(Config(), context)
        self._values = set(rows.column(0).to_pylist())

    def lookup(self, client: None, keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        values = [value for value in keys.column(0).to_pylist() if value in self._values]
        return pa.RecordBatch.from_arrays(
            [pa.array(values, keys.schema.types[0])], keys.schema.names
        )
