"""The plugin that the example of "Building data flows" names."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.sdk import Capability, Config, Offset, Read, ReplayableSource, plugin

NOW = dt.datetime.now(dt.UTC)
COLUMNS = pa.schema(
    [
        ("id", pa.int64()), ("amount", pa.int64()), ("created_at", pa.timestamp("us", tz="UTC")),
        ("risk_score", pa.string()), ("_gs_op", pa.string()),
    ]
)  # fmt: skip
ROWS = [
    {"id": 1, "amount": 600, "created_at": NOW, "_gs_op": "i"},
    {"id": 2, "amount": 1200, "created_at": NOW, "_gs_op": "i"},
    {"id": 3, "amount": 1800, "created_at": NOW - dt.timedelta(days=1), "_gs_op": "i"},
]


class OrdersConfig(Config):
    poll_interval_ms: str = "1000"


@plugin("acme_api.orders_source")
class Orders(ReplayableSource[OrdersConfig]):
    """Yields three orders, one of them of yesterday."""

    capabilities = frozenset({Capability.REPLAY, Capability.BOUNDED, Capability.ROWS})

    def infer_schema(self) -> pa.Schema:
        return COLUMNS

    def is_bounded(self) -> bool:
        return True

    def initial_offset(self) -> Offset:
        return {"rows": 0}

    def latest_offset(self, start: Offset) -> Offset:
        return {"rows": len(ROWS)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[int]:
        return [0] if start != end else []

    def read(self, partition: int, read: Read) -> Iterator[pa.RecordBatch]:
        assert self.columns is not None
        yield pa.RecordBatch.from_pylist(ROWS, schema=COLUMNS).select(self.columns.names)
